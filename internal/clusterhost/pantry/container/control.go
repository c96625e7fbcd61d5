package container

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"sync"

	"kubistro/internal/clusterhost/pantry"
)

// sockets are where a main process listens for the programs that control it: the
// first folder that it may write to. Both belong to the container alone, as a network
// name or shared memory would not.
func sockets() []string { return []string{"/dev/.pantry.sock", "/tmp/.pantry.sock"} }

// maxCall bounds a call: a command line.
const maxCall = 1 << 20

// call is what a control program asks of the main process: to be run in it.
type call struct {
	Args []string `json:"args"`
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
}

// part is a piece of the answer: output, or the end.
type part struct {
	Out  string `json:"out,omitempty"`
	Err  string `json:"err,omitempty"`
	Exit *int   `json:"exit,omitempty"`
}

// serveControls runs control programs for other processes of the container until the
// returned function is called. Without a place for its socket there are none.
func serveControls(ctx context.Context, sockets []string, img *pantry.Image, p *pantry.Process) (stop func()) {
	for _, s := range sockets {
		_ = os.Remove(s) // of the container's last run
		l, err := net.Listen("unix", s)
		if err != nil {
			continue
		}
		var calls sync.WaitGroup
		calls.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				calls.Go(func() { answer(ctx, img, p, c) })
			}
		})
		return func() { l.Close(); calls.Wait() }
	}
	return func() {}
}

// answer runs one control program.
func answer(ctx context.Context, img *pantry.Image, p *pantry.Process, c net.Conn) {
	defer c.Close()
	var asked call
	if err := json.NewDecoder(io.LimitReader(c, maxCall)).Decode(&asked); err != nil || len(asked.Args) == 0 || !slices.Contains(img.Controls, asked.Args[0]) {
		return // it sees the connection end
	}
	var mu sync.Mutex
	enc := json.NewEncoder(c)
	send := func(x part) error {
		mu.Lock()
		defer mu.Unlock()
		return enc.Encode(x)
	}
	child := *p
	child.Args, child.Env, child.Dir, child.Signals = asked.Args, asked.Env, asked.Dir, nil
	child.Stdin = new(eof)
	child.Stdout = writer(func(b []byte) error { return send(part{Out: string(b)}) })
	child.Stderr = writer(func(b []byte) error { return send(part{Err: string(b)}) })
	code := img.Programs[asked.Args[0]](ctx, &child)
	_ = send(part{Exit: &code}) // who asked may have gone
}

// withRemote is the programs with those that control the main process replaced by
// ones that ask it.
func withRemote(sockets []string, img *pantry.Image, programs map[string]pantry.Program) map[string]pantry.Program {
	out := maps.Clone(programs)
	for _, name := range img.Controls {
		local := programs[name]
		out[name] = func(ctx context.Context, p *pantry.Process) int {
			args := slices.Clone(p.Args)
			args[0] = name
			for _, s := range sockets {
				if c, err := net.Dial("unix", s); err == nil {
					defer c.Close()
					return ask(c, call{Args: args, Env: p.Env, Dir: p.Dir}, p.Stdout, p.Stderr)
				}
			}
			return local(ctx, p) // which says that nobody is there
		}
	}
	return out
}

func ask(c net.Conn, what call, stdout, stderr io.Writer) int {
	if err := json.NewEncoder(c).Encode(what); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", what.Args[0], err)
		return exitFailure
	}
	for dec := json.NewDecoder(bufio.NewReader(c)); ; {
		var x part
		if err := dec.Decode(&x); err != nil {
			fmt.Fprintf(stderr, "%s: the main process has ended\n", what.Args[0])
			return exitFailure
		}
		io.WriteString(stdout, x.Out)
		io.WriteString(stderr, x.Err)
		if x.Exit != nil {
			return *x.Exit
		}
	}
}

// writer makes a writer of a function that takes all or fails.
type writer func([]byte) error

func (w writer) Write(b []byte) (int, error) {
	if err := w(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// eof is empty input.
type eof struct{}

func (*eof) Read([]byte) (int, error) { return 0, io.EOF }
