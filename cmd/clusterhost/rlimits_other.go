//go:build !unix

package main

// setRlimits does nothing where the system has no such limits.
func setRlimits() error { return nil }
