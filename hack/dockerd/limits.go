package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// inotifyLimits are what several kind clusters need: with Linux' own figures kube-proxy of the second one ends over
// "too many open files". They are for the whole machine, containers included.
var inotifyLimits = map[string]int{"/proc/sys/fs/inotify/max_user_instances": 4096, "/proc/sys/fs/inotify/max_user_watches": 524288}

// raise sets limits that are lower, and returns how to set them back.
func raise(limits map[string]int) (back func() error, err error) {
	var undo []func() error
	back = func() error {
		var errs []error
		for _, u := range undo {
			errs = append(errs, u())
		}
		return errors.Join(errs...)
	}
	for file, want := range limits {
		old, err := os.ReadFile(file)
		if err != nil {
			return nil, errors.Join(err, back())
		}
		has, err := strconv.Atoi(strings.TrimSpace(string(old)))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", file, err), back())
		}
		if has >= want {
			continue
		}
		if err := os.WriteFile(file, []byte(strconv.Itoa(want)), 0); err != nil {
			return nil, errors.Join(err, back())
		}
		undo = append(undo, func() error { return os.WriteFile(file, old, 0) })
	}
	return back, nil
}
