package shell

import (
	"context"
	"fmt"
	"slices"
)

// tool is a command with the text of its --help.
type tool struct {
	run   Command
	usage string
}

// Commands is the standard set: cat, ls, grep, sed, awk, curl and so on.
func Commands() map[string]Command {
	out := map[string]Command{}
	for _, group := range []map[string]tool{textTools(), fileTools(), searchTools(), systemTools(), networkTools(), dataTools()} {
		for name, t := range group {
			out[name] = t.command(name)
		}
	}
	return out
}

func (t tool) command(name string) Command {
	return func(ctx context.Context, env Env, args []string) int {
		if len(args) == 2 && args[1] == "--help" && !slices.Contains([]string{"echo", "true", "false", "test"}, name) {
			fmt.Fprintf(env.Out, "usage: %s %s\n", name, t.usage)
			return 0
		}
		return t.run(ctx, env, args)
	}
}
