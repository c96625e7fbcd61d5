package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// forgetProgramPages unmaps the pages of the program's file that the start has
// touched, some hundred megabytes of which little is needed again. They stay in the
// system's page cache, shared by all clusters, and come back at a touch.
func forgetProgramPages() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) < 6 || fields[5] != program || !strings.HasPrefix(fields[1], "r-") {
			continue // writable pages aren't the file's any more
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if err1 != nil || err2 != nil {
			return fmt.Errorf("unknown form of maps: %q", s.Text())
		}
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, uintptr(start), uintptr(end-start), syscall.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("madvise: %w", errno)
		}
	}
	return nil
}
