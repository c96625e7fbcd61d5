package shell

import (
	"errors"
	"io/fs"
	"os"
)

// ashError says in the words of busybox's ash why a redirection fails.
func ashError(shell, file string, flag int, err error) error {
	op, text := ": can't open", errText(err)
	if flag&os.O_CREATE != 0 {
		op = ": can't create"
	}
	if errors.Is(err, fs.ErrNotExist) {
		text = "no such file"
		if flag&os.O_CREATE != 0 {
			text = "nonexistent directory"
		}
	}
	return &fs.PathError{Op: shell + op, Path: file, Err: errors.New(text)}
}
