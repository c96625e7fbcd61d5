// Package lessons holds the courses as files: prose, manifests, checks, quizzes
// and solutions. It has no code besides the embedding.
package lessons

import "embed"

// FS has one folder per course, and shared: manifests that any course may use.
//
//go:embed all:compose all:platform all:restaurant shared
var FS embed.FS
