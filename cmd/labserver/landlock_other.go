//go:build !linux

package main

// landlockVersion is 0: only Linux has Landlock.
func landlockVersion() int { return 0 }
