//go:build !linux

package main

// forgetProgramPages does nothing where the system has no such call.
func forgetProgramPages() error { return nil }
