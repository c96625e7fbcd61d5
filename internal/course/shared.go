package course

import (
	"io/fs"
	"strings"
)

// sharedFolder is the folder beside the courses whose files every level sees
// under the same name.
const sharedFolder = "shared"

// withShared is a level's folder in which shared/... are the files of the folder that all
// courses have in common.
type withShared struct{ level, all fs.FS }

// Open opens a file of the level, or a shared one.
func (w withShared) Open(name string) (fs.File, error) {
	if name == sharedFolder || strings.HasPrefix(name, sharedFolder+"/") {
		return w.all.Open(name)
	}
	return w.level.Open(name)
}
