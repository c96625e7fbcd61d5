package pantry

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/utils/clock"
)

// cookKey is where a running cook is in its container's Store.
const cookKey = "grill-cook"

// burnDelay lets the command that burns a dish end before the container does.
const burnDelay = 150 * time.Millisecond

// cook is grill-cook's main process.
type cook struct {
	p       *Process
	version string
	station string
	log     *lineWriter
	started time.Time

	ready   atomic.Bool
	healthy atomic.Bool
	hoarded atomic.Int64 // bytes
	busy    atomic.Int64 // dishes in work
	dishes  atomic.Int64
	burnt   chan string // why; room for one

	mu       sync.Mutex
	load     int64  // millicores that it uses besides its work
	unload   func() // ends the load
	unloadAt clock.Timer
	giveBack clock.Timer // the end of a hoard for a time
	resting  bool
	timers   sync.WaitGroup
	home     chan struct{} // closed when the cook leaves
}

// cookProgram is grill-cook of a version.
func cookProgram(version string) Program {
	return func(ctx context.Context, p *Process) int {
		for _, a := range p.Args[1:] {
			if a == "--version" || a == "-v" || a == "version" {
				fmt.Fprintf(p.Stdout, "grill-cook %s\n", version)
				return 0
			}
		}
		c := &cook{
			p: p, version: version, station: p.Getenv("COOK_STATION"),
			log: &lineWriter{w: p.Stdout}, started: p.Clock.Now(),
			burnt: make(chan string, 1), unload: func() {}, home: make(chan struct{}),
		}
		if c.station == "" {
			c.station = "grill"
		}
		c.ready.Store(true)
		c.healthy.Store(true)
		p.Store.Set(cookKey, c)
		defer p.Store.Delete(cookKey)
		return c.run(ctx)
	}
}

func (c *cook) say(format string, args ...any) {
	c.log.printf("%s "+format, append([]any{c.p.Clock.Now().UTC().Format(time.RFC3339)}, args...)...)
}

// run is the cook's working day; it returns the exit code.
func (c *cook) run(ctx context.Context) int {
	port, err := c.port()
	if err != nil {
		c.say("%v", err)
		return 2
	}
	delay, err1 := duration(c.p.Getenv("COOK_START_DELAY"))
	burnAfter, err2 := duration(c.p.Getenv("COOK_BURN_AFTER"))
	drop, err3 := dropsWork(c.p.Getenv("COOK_FINISH"))
	load, err4 := millicores(c.setting("load", "COOK_LOAD", "off"))
	hoard, err5 := mebibytes(c.setting("hoard", "COOK_HOARD", "0"))
	for _, err := range []error{err1, err2, err3, err4, err5} {
		if err != nil {
			c.say("%v", err)
			return 2
		}
	}
	c.say("grill-cook %s reports for work at station %s", c.version, c.station)
	if delay > 0 {
		c.say("preparing for %s before the first dish", delay)
		if code, ended := c.prepare(ctx, delay); ended {
			return code
		}
	}
	c.setHoard(hoard, 0)
	c.setLoad(load, 0)
	defer c.rest()
	srv, err := c.p.listenHTTP(":"+strconv.Itoa(port), c.handler())
	if err != nil {
		c.say("can't listen on port %d: %s", port, listenError(err))
		return 1
	}
	c.say("listening on :%d", port)
	if burnAfter > 0 {
		timer := c.p.Clock.NewTimer(burnAfter)
		defer timer.Stop()
		return c.serve(ctx, srv, drop, timer.C())
	}
	return c.serve(ctx, srv, drop, nil)
}

// prepare waits before the cook can serve.
func (c *cook) prepare(ctx context.Context, delay time.Duration) (code int, ended bool) {
	timer := c.p.Clock.NewTimer(delay)
	defer timer.Stop()
	for {
		select {
		case <-timer.C():
			return 0, false
		case why := <-c.burnt:
			return c.fall(why), true
		case <-ctx.Done():
			return exitSigkill, true
		case s := <-c.p.Signals:
			if s == syscall.SIGTERM || s == syscall.SIGINT {
				c.say("got %s while preparing: leaving", signalName(s))
				return 0, true
			}
		}
	}
}

// serve cooks until the dish burns, the cook is told to leave or is shown out.
func (c *cook) serve(ctx context.Context, srv *server, drop bool, burn <-chan time.Time) int {
	signals := c.p.Signals
	for {
		select {
		case <-ctx.Done():
			srv.stop()
			return exitSigkill
		case <-burn:
			srv.stop()
			return c.fall("COOK_BURN_AFTER is over")
		case why := <-c.burnt:
			timer := c.p.Clock.NewTimer(burnDelay)
			select {
			case <-timer.C():
			case <-ctx.Done():
			}
			timer.Stop()
			srv.stop()
			return c.fall(why)
		case s := <-signals:
			if s != syscall.SIGTERM && s != syscall.SIGINT {
				continue
			}
			return c.leave(ctx, srv, drop, s)
		}
	}
}

// leave ends the working day: work in flight is finished, or dropped.
func (c *cook) leave(ctx context.Context, srv *server, drop bool, s syscall.Signal) int {
	if drop {
		c.say("got %s: dropping everything (%d dishes in work)", signalName(s), c.busy.Load())
		srv.stop()
		return 0
	}
	c.say("got %s: no new orders, finishing %d dishes in work", signalName(s), c.busy.Load())
	if err := srv.finish(ctx); err != nil {
		return exitSigkill
	}
	c.say("all dishes are served, goodbye")
	return 0
}

// fall is the end of a container whose cook burnt a dish.
func (c *cook) fall(why string) int {
	fmt.Fprintf(c.p.Stderr, "%s the dish is burnt: %s\n", c.p.Clock.Now().UTC().Format(time.RFC3339), why)
	return 1
}

// burn makes the cook fall soon; only the first reason counts.
func (c *cook) burn(why string) {
	select {
	case c.burnt <- why:
	default:
	}
}

// setting is a flag (--load=500m or --load 500m), else an environment variable, else what is usual.
func (c *cook) setting(flag, env, usual string) string {
	s := c.p.Getenv(env)
	args := c.p.Args[1:]
	for k, a := range args {
		if v, ok := strings.CutPrefix(a, "--"+flag+"="); ok {
			s = v
		} else if a == "--"+flag && k+1 < len(args) {
			s = args[k+1]
		}
	}
	if s == "" {
		return usual
	}
	return s
}

// port is the flag --port, PORT, or 8080.
func (c *cook) port() (int, error) {
	s := c.setting("port", "PORT", "8080")
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 65535 {
		return 0, fmt.Errorf("PORT must be a number from 1 to 65535, not %q", s)
	}
	return n, nil
}

// duration reads 40s, 1m30s, or a number of seconds.
func duration(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	if n, err := strconv.Atoi(s); err == nil {
		s = strconv.Itoa(n) + "s"
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration such as 40s or 1m30s", s)
	}
	return d, nil
}

// dropsWork reads COOK_FINISH: finish (the default) or drop.
func dropsWork(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "", "finish", "true", "yes", "1":
		return false, nil
	case "drop", "false", "no", "0":
		return true, nil
	}
	return false, fmt.Errorf("COOK_FINISH must be finish or drop, not %q", s)
}

func signalName(s syscall.Signal) string {
	switch s {
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGINT:
		return "SIGINT"
	}
	return s.String()
}

// fromHere reports whether a request comes from the Pod itself.
func fromHere(r *http.Request) bool {
	host, _, _ := strings.Cut(r.RemoteAddr, ":")
	return host == "127.0.0.1" || strings.HasPrefix(r.RemoteAddr, "[::1]:")
}
