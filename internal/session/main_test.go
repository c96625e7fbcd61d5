package session_test

import (
	"os"
	"testing"

	"kubistro/internal/terminal"
)

// TestMain is also the child of the tests' terminals.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "terminal-child" {
		os.Exit(terminal.ChildMain(os.Args[2:]))
	}
	os.Exit(m.Run())
}
