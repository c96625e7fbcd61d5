package main

import landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"

// landlockVersion is the kernel's Landlock ABI; 0 means that it has none.
func landlockVersion() int {
	v, err := landlock.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return v
}
