// Package terminal is the learner's terminal: an interpreter and kubectl in a
// confined child process per tab. The child has an emptied environment, sees the
// learner's home only (Landlock and rlimits where the system has them) and
// reaches nothing but the learner's cluster, by connections that the server
// process opens and hands over.
package terminal

import (
	"context"
	"net"
)

// Config is what a terminal needs.
type Config struct {
	// Program is the path of the executable that runs ChildMain (labserver
	// itself); Args are put before the child's own (for instance "terminal-child").
	Program string
	Args    []string
	// Home is the learner's folder on the server's disk; it appears as /home/learner.
	Home string
	// Token is the bearer token for the API server; ServerName and CAPEM verify it.
	Token      string
	ServerName string
	CAPEM      []byte
	// DialAPI opens a raw connection to the API server's TLS port; Dial one inside
	// the cluster's network (for curl, nslookup goes through LookupHost).
	DialAPI    func(ctx context.Context) (net.Conn, error)
	Dial       func(ctx context.Context, network, address string) (net.Conn, error)
	Lang       string // messages of the terminal itself
	Cols, Rows int
	// Edit opens a file of the home in the browser's editor and returns when the
	// learner is done with it (kubectl edit); nil: editing is refused with a reason.
	Edit func(ctx context.Context, path string) error
	// Activity is called for each key press.
	Activity func()
}

// Block is one numbered piece of output. Numbers start at 1 and have no gaps.
type Block struct {
	N   uint64 `json:"n"`
	Out string `json:"out"`
}

// Terminal is one tab. It lives as long as its session, whoever is connected.
// All methods are safe for concurrent use.
type Terminal struct{}

// Start starts the child. When the child ends (exit, crash, limit) a notice is
// printed and a new one is started at the next key press; files, history and numbering stay.
func Start(ctx context.Context, c Config) (*Terminal, error) { panic("being built") }

// Input types raw key presses (UTF-8).
func (t *Terminal) Input(in string) error { panic("being built") }

// Resize sets the size in character cells.
func (t *Terminal) Resize(cols, rows int) { panic("being built") }

// Output returns the blocks after number n, oldest first, and a channel that is
// closed when there are more. When n is too old to have everything, the first
// block returned has reset=true meaning: clear the screen, this is the kept scrollback.
func (t *Terminal) Output(n uint64) (blocks []Block, reset bool, more <-chan struct{}) {
	panic("being built")
}

// Ack says that a client has everything up to n (flow control: a command's output
// is held back when the newest acknowledged block is too far behind, if a client is connected).
func (t *Terminal) Ack(n uint64) { panic("being built") }

// Done is closed when the terminal has been closed.
func (t *Terminal) Done() <-chan struct{} { panic("being built") }

// Close ends the child and waits for it.
func (t *Terminal) Close() error { panic("being built") }

// Exec runs one script in a fresh confined child without a terminal, as if a
// learner had typed it, and returns its combined output and exit code (for
// solutions and verification).
func Exec(ctx context.Context, c Config, script string) (output string, code int, err error) {
	panic("being built")
}

// ChildMain is the child's main function; it never returns to the caller with work left.
func ChildMain(args []string) int { panic("being built") }
