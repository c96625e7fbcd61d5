package terminal

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/klog/v2"

	"kubistro/internal/lab"
	"kubistro/internal/shell"
	"kubistro/internal/shell/guest"
	"kubistro/internal/terminal/operate"
)

const (
	memoryGoal = 192 << 20 // what the garbage collector aims at
	memorySoft = 320 << 20 // ends the running command
	memoryHard = 640 << 20 // ends the child
	brokerFD   = 3
	// An endless loop gets a few per cent of a core; no script for people notices.
	commandsPerSecond = 50_000
	commandBurst      = 100_000
)

// inside is a child process as it sees itself.
type inside struct {
	hello
	lang   lab.Lang
	home   *homeFS
	frames *frameWriter
	in     *bufio.Reader
	broker *brokerClient
	kube   *kubectl

	mu     sync.Mutex
	cancel context.CancelFunc // of all running commands
	edits  map[uint64]chan editAnswer
	nextID uint64
}

// ChildMain is the child's main function; it never returns to the caller with work left.
func ChildMain(_ []string) int {
	signal.Ignore(syscall.SIGPIPE, syscall.SIGINT, syscall.SIGHUP)
	debug.SetMemoryLimit(memoryGoal)
	debug.SetMaxStack(256 << 20)
	c := &inside{frames: &frameWriter{w: os.Stdout}, in: bufio.NewReaderSize(os.Stdin, 64<<10), edits: map[uint64]chan editAnswer{}}
	if err := c.prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "terminal child:", err)
		return exitCrash
	}
	go c.watchMemory()
	if c.Mode == modeExec {
		return c.exec()
	}
	return c.interactive()
}

// prepare takes what is needed from the outside and then closes the door.
func (c *inside) prepare() error {
	kind, payload, err := readFrame(c.in, maxHello)
	if err != nil || kind != frameHello {
		return errors.Join(errors.New("no hello"), err)
	}
	if err := json.Unmarshal(payload, &c.hello); err != nil {
		return err
	}
	c.lang = lab.Lang(c.Lang)
	if c.home, err = newHomeFS(c.Home); err != nil {
		return err
	}
	if err := os.Chdir(c.Home); err != nil {
		return err
	}
	for k, v := range map[string]string{"HOME": c.Home, "TMPDIR": c.Home, "TZ": "UTC", "KUBECTL_KUBERC": "false", "PATH": "/nonexistent"} {
		if err := os.Setenv(k, v); err != nil {
			return err
		}
	}
	_, _ = time.Now().Local().Zone() // loads the time zone before files are out of reach
	if c.broker, err = newBrokerClient(os.NewFile(brokerFD, "broker")); err != nil {
		return err
	}
	if err := closeSideDoors(); err != nil {
		return err
	}
	if c.kube, err = newKubectl(c); err != nil {
		return err
	}
	return confine(c.Home, c.kube.ports())
}

// closeSideDoors takes away the process-wide defaults that libraries use when
// nobody gives them something else: the standard streams (which carry the
// server's frames), the HTTP client and the name resolver.
func closeSideDoors() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	os.Stdin, os.Stdout = null, null
	klog.LogToStderr(false) // client-go's own log would land in the learner's terminal
	klog.SetOutput(io.Discard)
	http.DefaultTransport = noTransport{}
	http.DefaultClient = &http.Client{Transport: noTransport{}}
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errNoInternet }}
	return nil
}

var errNoInternet = errors.New("there is no way to the internet from here")

type noTransport struct{}

func (noTransport) RoundTrip(*http.Request) (*http.Response, error) { return nil, errNoInternet }

// commands are those of the shell and kubectl.
func (c *inside) commands() map[string]shell.Command {
	cmds := maps.Clone(shell.Commands())
	cmds["kubectl"], cmds["k"] = c.kube.run, c.kube.run
	cmds["guest"] = guest.Command(c.broker.dialStreet, c.say("zh", "en") == "zh")
	if c.CanOperate {
		cmds["lab"] = operate.Command(operate.Remote(c.broker.dialLab), c.lang)
	}
	for _, name := range []string{"docker", "kind", "minikube", "helm", "ssh", "sudo", "apt", "apt-get", "git", "python", "python3"} {
		cmds[name] = c.absent
	}
	return cmds
}

func (c *inside) absent(_ context.Context, env shell.Env, args []string) int {
	fmt.Fprintf(env.Err, "%s: %s\n", args[0], c.say("這個教室終端機沒有這個程式；這裡有 kubectl、curl 和常用的文字工具（輸入 help 看清單）。",
		"isn't in this classroom terminal; there are kubectl, curl and the usual text tools (type help for a list)."))
	return 127
}

func (c *inside) say(zhTW, en string) string { return lab.Text{ZhTW: zhTW, En: en}.In(c.lang) }

func (c *inside) newShell() (*shell.Shell, error) {
	return shell.New(shell.Options{
		FS: c.home, Commands: c.commands(), Dir: homePath, Hostname: "kubistro",
		Limits: shell.Limits{Rate: rate.NewLimiter(commandsPerSecond, commandBurst)},
		Net:    shell.Net{Dial: c.broker.dial, LookupHost: c.lookup, Nameserver: "10.96.0.10"},
		Env:    []string{"HOME=" + homePath, "USER=learner", "LOGNAME=learner", "SHELL=/bin/sh", "TERM=xterm-256color", "LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin"},
	})
}

func (c *inside) lookup(ctx context.Context, name string) ([]string, error) {
	if c.CanLookup {
		return c.broker.lookup(ctx, name)
	}
	return c.kube.lookup(ctx, name)
}

// runContext is the context of all commands; the watchdog and the end of input cancel it.
func (c *inside) runContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	c.mu.Lock()
	c.cancel = cancel
	c.mu.Unlock()
	return ctx
}

// exec runs one script, for the server.
func (c *inside) exec() int {
	ctx := c.runContext()
	go func() {
		c.readFrames(nil, nil)
		os.Exit(exitCrash) // the server is gone
	}()
	sh, err := c.newShell()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitCrash
	}
	out := &outStream{frames: c.frames}
	code := sh.Run(ctx, c.Script, shell.Streams{In: strings.NewReader(""), Out: out, Err: out})
	c.frames.json(frameExit, code)
	return 0
}

// interactive is a learner's terminal.
func (c *inside) interactive() int {
	inR, inW := io.Pipe()
	sizes := make(chan shell.Size, 4)
	go func() {
		c.readFrames(inW, sizes)
		os.Exit(0) // the server is gone or has closed the tab
	}()
	sh, err := c.newShell()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitCrash
	}
	go c.kube.warm()
	return sh.Interactive(c.runContext(), shell.InteractiveOptions{
		In: inR, Out: &outStream{frames: c.frames}, Resize: sizes, Size: shell.Size{Cols: c.Cols, Rows: c.Rows},
		Prompt: func() string { return c.prompt(sh) },
		Complete: func(ctx context.Context, line string, pos int) (int, []string) {
			return c.complete(ctx, sh, line, pos)
		},
		History: c.loadHistory(), OnLine: c.saveHistory, Lang: strings.SplitN(c.Lang, "-", 2)[0],
	})
}

// complete proposes what can come at pos in a line.
func (c *inside) complete(ctx context.Context, sh *shell.Shell, line string, pos int) (int, []string) {
	start, first := shell.WordStart(line[:pos])
	if words := lastCommand(line[:start]); !first && c.CanOperate && len(words) > 0 && words[0] == "lab" {
		if words[len(words)-1] == "-f" {
			return start, sh.CompleteFile(line[start:pos])
		}
		return start, operate.Complete(ctx, operate.Remote(c.broker.dialLab), append(words[1:], line[start:pos]))
	}
	return c.kube.complete(ctx, sh, line, pos)
}

func (c *inside) prompt(sh *shell.Shell) string {
	dir := sh.Dir()
	if rest, ok := strings.CutPrefix(dir, homePath); ok {
		dir = "~" + rest
	}
	ns := ""
	if n := c.kube.namespace(); n != "default" {
		ns = " \x1b[33m(" + n + ")\x1b[0m"
	}
	return "\x1b[32mlearner@kubistro\x1b[0m:\x1b[34m" + dir + "\x1b[0m" + ns + "$ "
}

// readFrames takes the server's frames until its end is closed.
func (c *inside) readFrames(in *io.PipeWriter, sizes chan shell.Size) {
	input := make(chan []byte, 64)
	if in != nil {
		go func() { // the editor may be slow for a moment; resizes and answers must not wait
			for p := range input {
				in.Write(p)
			}
			in.Close()
		}()
	}
	defer close(input)
	for {
		kind, payload, err := readFrame(c.in, maxFrame)
		if err != nil {
			return
		}
		switch kind {
		case frameInput:
			if in != nil {
				input <- payload
			}
		case frameSize:
			var s [2]int
			if json.Unmarshal(payload, &s) == nil && sizes != nil {
				select {
				case sizes <- shell.Size{Cols: s[0], Rows: s[1]}:
				default:
				}
			}
		case frameEdited:
			var a editAnswer
			if json.Unmarshal(payload, &a) == nil {
				c.mu.Lock()
				ch := c.edits[a.ID]
				delete(c.edits, a.ID)
				c.mu.Unlock()
				if ch != nil {
					ch <- a
				}
			}
		}
	}
}

// edit opens a file of the home in the browser's editor and waits.
func (c *inside) edit(ctx context.Context, name string) error {
	ch := make(chan editAnswer, 1)
	c.mu.Lock()
	c.nextID++
	id := c.nextID
	c.edits[id] = ch
	c.mu.Unlock()
	if err := c.frames.json(frameEdit, editRequest{ID: id, Path: name}); err != nil {
		return err
	}
	select {
	case a := <-ch:
		if a.Error != "" {
			return errors.New(a.Error)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// outStream sends output in frames.
type outStream struct{ frames *frameWriter }

func (o *outStream) Write(p []byte) (int, error) {
	total := len(p)
	for len(p) > 0 {
		n := min(len(p), maxFrame/2)
		if err := o.frames.write(frameOutput, p[:n]); err != nil {
			return total - len(p), err
		}
		p = p[n:]
	}
	return total, nil
}

// watchMemory ends what uses too much memory: first the running commands, then the child.
func (c *inside) watchMemory() {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for range time.Tick(100 * time.Millisecond) {
		metrics.Read(samples)
		used := samples[0].Value.Uint64() - samples[1].Value.Uint64()
		switch {
		case used > memoryHard:
			os.Exit(exitMemory)
		case used > memorySoft:
			debug.FreeOSMemory()
			metrics.Read(samples)
			if samples[0].Value.Uint64()-samples[1].Value.Uint64() <= memorySoft {
				continue
			}
			out := outStream{frames: c.frames}
			out.Write([]byte("\r\n" + c.say("記憶體不足：指令已停止。", "Out of memory: the command was stopped.") + "\r\n"))
			os.Exit(exitMemory)
		}
	}
}
