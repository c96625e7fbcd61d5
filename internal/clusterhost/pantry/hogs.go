package pantry

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Bounds of what one of these programs may ask for; what it gets is the cgroup's business.
const (
	maxHogs      = 256
	maxHogMemory = int64(64 << 30)
	hogStep      = 16 * mib // memory isn't taken all at once
	hogPause     = 10 * time.Millisecond
)

// stressProgram is stress(1): workers that want CPU and hold memory, until a timeout.
// What they use is accounted, not burnt.
func stressProgram(ctx context.Context, p *Process) int {
	o, code := readStress(p)
	if o == nil {
		return code
	}
	say := func(format string, args ...any) {
		if !o.quiet {
			fmt.Fprintf(p.Stdout, "stress: info: [1] "+format+"\n", args...)
		}
	}
	say("dispatching hogs: %d cpu, %d io, %d vm, %d hdd", o.cpu, o.io, o.vm, o.hdd)
	// a worker that touches memory again and again wants a core as well
	spinning := o.cpu + o.hdd
	if o.hang == 0 {
		spinning += o.vm
	}
	stop := p.Usage.Load(int64(spinning) * 1000)
	defer stop()
	var limit <-chan time.Time
	if o.timeout > 0 {
		t := p.Clock.NewTimer(o.timeout)
		defer t.Stop()
		limit = t.C()
	}
	began := p.Clock.Now()
	free, code := p.hoard(ctx, int64(o.vm)*o.bytes, hogStep, hogPause, 1)
	defer free()
	if code != 0 {
		return code
	}
	for {
		select {
		case <-ctx.Done():
			return exitSigkill
		case <-limit:
			say("successful run completed in %ds", int(p.Clock.Since(began).Seconds()))
			return 0
		case s := <-p.Signals:
			if name := signalName(s); name == "SIGTERM" || name == "SIGINT" {
				return 1
			}
		}
	}
}

type stressOptions struct {
	cpu, io, vm, hdd int
	bytes            int64
	hang             int // seconds; 0: touches its memory all the time
	timeout          time.Duration
	quiet            bool
}

// readStress reads the options; nil when there is nothing to run, with the exit code.
func readStress(p *Process) (*stressOptions, int) {
	o := &stressOptions{bytes: 256 * mib}
	fail := func(format string, args ...any) (*stressOptions, int) {
		fmt.Fprintf(p.Stderr, "stress: FAIL: [1] "+format+"\n", args...)
		return nil, 1
	}
	long := map[string]string{"-c": "--cpu", "-i": "--io", "-m": "--vm", "-d": "--hdd", "-t": "--timeout", "-q": "--quiet", "-v": "--verbose", "-n": "--dry-run"}
	args := p.Args[1:]
	if len(args) == 0 {
		fmt.Fprintf(p.Stdout, "`stress' imposes certain types of compute stress on your system\n\nUsage: stress [--cpu N] [--io N] [--vm N [--vm-bytes B] [--vm-hang N] [--vm-keep]] [--hdd N] [--timeout N]\n")
		return nil, 0
	}
	for k := 0; k < len(args); k++ {
		name, value, given := strings.Cut(args[k], "=")
		if full := long[name]; full != "" {
			name = full
		}
		switch name {
		case "--quiet":
			o.quiet = true
			continue
		case "--verbose", "--vm-keep", "--dry-run":
			continue
		case "--cpu", "--io", "--vm", "--hdd", "--vm-bytes", "--vm-hang", "--vm-stride", "--hdd-bytes", "--timeout", "--backoff":
		default:
			return fail("unrecognized option: %s", args[k])
		}
		if !given {
			if k++; k == len(args) {
				return fail("missing argument to option '%s'", name)
			}
			value = args[k]
		}
		n, err := stressNumber(value)
		if err != nil {
			return fail("invalid number: %s", value)
		}
		count := int(min(n, maxHogs))
		switch name {
		case "--cpu":
			o.cpu = count
		case "--io":
			o.io = count
		case "--vm":
			o.vm = count
		case "--hdd":
			o.hdd = count
		case "--vm-bytes":
			o.bytes = min(n, maxHogMemory)
		case "--vm-hang":
			o.hang = int(min(n, 1<<30))
		case "--timeout":
			o.timeout = time.Duration(min(n, 1<<30)) * time.Second
		}
	}
	return o, 0
}

// stressNumber reads 150M, 1G, 10s or 5m: bytes by B, K, M, G, times by s, m, h, d.
func stressNumber(s string) (int64, error) {
	units := map[byte]int64{'B': 1, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30, 's': 1, 'm': 60, 'h': 3600, 'd': 86400}
	factor := int64(1)
	if s != "" && units[s[len(s)-1]] != 0 {
		factor, s = units[s[len(s)-1]], s[:len(s)-1]
	}
	n, err := strconv.ParseInt(s, 10, 40)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is no number", s)
	}
	return min(n, maxHogMemory) * factor, nil
}

// goStressProgram is vish/stress: -cpus threads that want all they can get, and memory
// in pieces of -mem-alloc-size each -mem-alloc-sleep until -mem-total.
func goStressProgram(ctx context.Context, p *Process) int {
	cpus, total, size, pause := 0, int64(0), int64(4<<10), time.Millisecond
	shown := [2]string{"0", "4Ki"}
	args := p.Args[1:]
	for k := 0; k < len(args); k++ {
		name, value, given := strings.Cut("-"+strings.TrimLeft(args[k], "-"), "=")
		if !given {
			if k++; k == len(args) {
				fmt.Fprintf(p.Stderr, "flag needs an argument: %s\n", name)
				return 2
			}
			value = args[k]
		}
		var err error
		switch name {
		case "-cpus":
			cpus, err = strconv.Atoi(value)
		case "-mem-total":
			total, err = quantity(value)
			shown[0] = value
		case "-mem-alloc-size":
			size, err = quantity(value)
			shown[1] = value
		case "-mem-alloc-sleep":
			pause, err = time.ParseDuration(value)
		case "-logtostderr", "-v":
		default:
			fmt.Fprintf(p.Stderr, "flag provided but not defined: %s\n", name)
			return 2
		}
		if err != nil {
			fmt.Fprintf(p.Stderr, "invalid value %q for flag %s: %v\n", value, name, err)
			return 2
		}
	}
	log := func(format string, args ...any) {
		fmt.Fprintf(p.Stderr, "I%s       1 main.go] %s\n", p.Clock.Now().UTC().Format("0102 15:04:05.000000"), fmt.Sprintf(format, args...))
	}
	log(`Allocating %q memory, in %q chunks, with a %s sleep between allocations`, shown[0], shown[1], pause)
	cpus = min(max(cpus, 0), maxHogs)
	for range cpus {
		log("Spawning a thread to consume CPU")
	}
	defer p.Usage.Load(int64(cpus) * 1000)()
	free, code := p.hoard(ctx, total, max(size, 1), max(pause, hogPause), 2)
	defer free()
	if code != 0 {
		return code
	}
	log("Allocated %q memory", shown[0])
	if _, ok := p.terminated(ctx); !ok {
		return exitSigkill
	}
	return 2 // what Go programs without a handler exit with
}

// hoard takes memory in steps with a pause after each until it has want bytes, which free
// gives back. It ends early with an exit code: signalled for a signal.
func (p *Process) hoard(ctx context.Context, want, step int64, pause time.Duration, signalled int) (free func(), code int) {
	held := int64(0)
	free = func() { p.Usage.AddMemory(-held) }
	for held < want {
		n := min(step, want-held)
		p.Usage.AddMemory(n)
		held += n
		t := p.Clock.NewTimer(pause)
		select {
		case <-t.C():
		case <-ctx.Done():
			t.Stop()
			return free, exitSigkill
		case <-p.Signals:
			t.Stop()
			return free, signalled
		}
	}
	return free, 0
}

func quantity(s string) (int64, error) {
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return 0, err
	}
	return min(max(q.Value(), 0), maxHogMemory), nil
}

// hpaRequest is about what the example's million square roots cost a core.
const hpaRequest = 60 * time.Millisecond

// hpaExampleProgram is the web server of the autoscaling walk-through: each request
// costs CPU time.
func hpaExampleProgram(ctx context.Context, p *Process) int {
	return p.apache(ctx, "2.4.10", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.Usage.Work(r.Context(), hpaRequest) == nil {
			w.Header().Set("X-Powered-By", "PHP/5.6.14")
			io.WriteString(w, "OK!")
		}
	}))
}
