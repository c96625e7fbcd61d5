package shell

import "context"

// Interactive reads command lines from the terminal with line editing, history
// and completion until EOF or exit, and returns the exit code. in carries raw
// key presses, out gets what a terminal shows; this is the line discipline
// too: echo, Ctrl-C (cancels the running command's context), Ctrl-D, and cooked
// input for commands that read standard input.
func (sh *Shell) Interactive(ctx context.Context, o InteractiveOptions) int { panic("being built") }
