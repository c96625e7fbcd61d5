package pantry

import (
	"context"
	"errors"
	"fmt"
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

// loadProgram has the cook use CPU: load 500m, load 500m 30s, load off.
func loadProgram(_ context.Context, p *Process) int {
	c, ok := findCook(p)
	if !ok {
		return 1
	}
	if len(p.Args) > 3 {
		fmt.Fprintln(p.Stderr, "usage: load [500m|off [TIME]]")
		return 2
	}
	if len(p.Args) > 1 {
		load, err := millicores(p.Args[1])
		d, err2 := duration(strings.Join(p.Args[2:], ""))
		if err := errors.Join(err, err2); err != nil {
			fmt.Fprintf(p.Stderr, "load: %v\n", err)
			return 2
		}
		c.setLoad(load, d)
	}
	c.mu.Lock()
	load := c.load
	c.mu.Unlock()
	fmt.Fprintf(p.Stdout, "%s uses %dm CPU besides its dishes\n", p.Hostname, load)
	return 0
}

// hoardProgram has the cook hold memory: hoard 100, hoard 100Mi 30s, hoard 0.
func hoardProgram(_ context.Context, p *Process) int {
	c, ok := findCook(p)
	if !ok {
		return 1
	}
	if len(p.Args) > 3 {
		fmt.Fprintln(p.Stderr, "usage: hoard [MIB [TIME]]")
		return 2
	}
	if len(p.Args) > 1 {
		bytes, err := mebibytes(p.Args[1])
		d, err2 := duration(strings.Join(p.Args[2:], ""))
		if err := errors.Join(err, err2); err != nil {
			fmt.Fprintf(p.Stderr, "hoard: %v\n", err)
			return 2
		}
		c.setHoard(bytes, d)
	}
	fmt.Fprintf(p.Stdout, "%s holds %d MiB on the counter\n", p.Hostname, c.hoarded.Load()>>20)
	return 0
}
