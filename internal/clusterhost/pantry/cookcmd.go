package pantry

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// cookCommands are what kubectl exec can do to the cook that runs in the container.
func cookCommands() map[string]Program {
	return map[string]Program{
		"burn-dish": burnDish,
		"ready":     switchProgram("ready", "ready for guests", "not ready for guests", func(c *cook) switchable { return &c.ready }),
		"health":    switchProgram("health", "healthy", "not healthy", func(c *cook) switchable { return &c.healthy }),
		"load":      loadProgram,
		"hoard":     hoardProgram,
	}
}

// switchable is an atomic.Bool.
type switchable interface {
	Load() bool
	Store(bool)
}

// findCook finds the main process.
func findCook(p *Process) (*cook, bool) {
	if v, ok := p.Store.Get(cookKey); ok {
		if c, ok := v.(*cook); ok {
			return c, true
		}
	}
	fmt.Fprintf(p.Stderr, "%s: no grill-cook is at work in this container\n", p.Args[0])
	return nil, false
}

func burnDish(_ context.Context, p *Process) int {
	c, ok := findCook(p)
	if !ok {
		return 1
	}
	why := strings.Join(p.Args[1:], " ")
	if why == "" {
		why = "burn-dish was run in the container"
	}
	fmt.Fprintf(p.Stdout, "%s burns a dish ...\n", p.Hostname)
	c.burn(why)
	return 0
}

// switchProgram turns something of the cook on or off, or says how it is.
func switchProgram(name, on, off string, which func(*cook) switchable) Program {
	return func(_ context.Context, p *Process) int {
		c, ok := findCook(p)
		if !ok {
			return 1
		}
		s := which(c)
		switch {
		case len(p.Args) == 1:
		case len(p.Args) == 2 && p.Args[1] == "on":
			s.Store(true)
			c.say("somebody switched %s on", name)
		case len(p.Args) == 2 && p.Args[1] == "off":
			s.Store(false)
			c.say("somebody switched %s off", name)
		default:
			fmt.Fprintf(p.Stderr, "usage: %s [on|off]\n", name)
			return 2
		}
		state := off
		if s.Load() {
			state = on
		}
		fmt.Fprintf(p.Stdout, "%s is %s\n", p.Hostname, state)
		return 0
	}
}

func loadProgram(_ context.Context, p *Process) int {
	c, ok := findCook(p)
	if !ok {
		return 1
	}
	if len(p.Args) == 2 {
		load, err := millicores(p.Args[1])
		if err != nil {
			fmt.Fprintf(p.Stderr, "load: %v\n", err)
			return 2
		}
		c.setLoad(load)
	} else if len(p.Args) > 2 {
		fmt.Fprintln(p.Stderr, "usage: load [500m|off]")
		return 2
	}
	fmt.Fprintf(p.Stdout, "%s uses %dm CPU besides its dishes\n", p.Hostname, c.load.Load())
	return 0
}

func hoardProgram(_ context.Context, p *Process) int {
	c, ok := findCook(p)
	if !ok {
		return 1
	}
	if len(p.Args) == 2 {
		mib, err := strconv.ParseInt(strings.TrimSuffix(p.Args[1], "Mi"), 10, 32)
		if err != nil || mib < 0 || mib<<20 > maxHoard {
			fmt.Fprintf(p.Stderr, "hoard: %q is not a number of MiB\n", p.Args[1])
			return 2
		}
		c.setHoard(mib << 20)
	} else if len(p.Args) > 2 {
		fmt.Fprintln(p.Stderr, "usage: hoard [MIB]")
		return 2
	}
	fmt.Fprintf(p.Stdout, "%s holds %d MiB on the counter\n", p.Hostname, c.hoarded.Load()>>20)
	return 0
}
