// Package shell is the small Unix userland that learners meet in the web
// terminal and inside simulated containers: a POSIX shell (mvdan.cc/sh) whose
// commands are Go functions over an abstract file system and dialer, and the
// line discipline of a terminal. It never starts a process and never touches
// the host's files or network by itself.
package shell

import (
	"context"
	"io"
	"io/fs"
	"net"
	"time"

	"golang.org/x/time/rate"
)

// File is an open file of an FS.
type File interface {
	fs.File
	io.Writer
	io.Seeker
}

// FS is a file system with absolute, slash-separated, cleaned paths. Errors are *fs.PathError.
type FS interface {
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	ReadDir(name string) ([]fs.DirEntry, error)
	Mkdir(name string, perm fs.FileMode) error
	Remove(name string) error
	Rename(oldname, newname string) error
	Chtimes(name string, atime, mtime time.Time) error
	Chmod(name string, mode fs.FileMode) error
}

// Net is how commands reach the network; nil fields: no network.
type Net struct {
	Dial       func(ctx context.Context, network, address string) (net.Conn, error)
	LookupHost func(ctx context.Context, name string) ([]string, error)
	Nameserver string // what nslookup prints as Server
}

// Streams are a command's standard streams.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// TTY: Out is a terminal of Cols by Rows; commands may use colours and columns.
	TTY  bool
	Size func() (cols, rows int)
	// Term is the terminal itself, for commands that need key presses as they
	// come (kubectl exec -it, watch, less); nil without a terminal.
	Term Terminal
}

// Terminal lets a command switch its terminal to raw input.
type Terminal interface {
	// Raw makes In deliver key presses unchanged, without echo and without
	// turning Ctrl-C into a cancellation, until restore is called.
	Raw() (restore func())
	// Resizes returns a channel with each new size until stop is called.
	Resizes() (sizes <-chan Size, stop func())
}

// Command is a program that the shell can run. args[0] is the name it was
// called by; the return value is the exit code (0 to 255). It must return soon
// after ctx is done, and must bound what it keeps in memory.
type Command func(ctx context.Context, env Env, args []string) int

// Env is what a command sees of the shell that runs it.
type Env struct {
	Streams
	FS       FS
	Net      Net
	Dir      string // working directory, absolute
	Getenv   func(name string) string
	Environ  func() []string // NAME=value, exported only
	Hostname string
	User     *User // nil: who the environment's USER says
	// Run runs another command line (argv) in the same environment: for xargs, env, time, watch, timeout.
	Run func(ctx context.Context, env Env, argv []string) int

	buffers *outputs
}

// Options configure a shell.
type Options struct {
	FS       FS
	Net      Net
	Commands map[string]Command // external commands by name; missing ones give "sh: foo: not found" and 127
	Dir      string
	Env      []string // NAME=value
	Hostname string
	User     *User  // what commands see as theirs
	Name     string // in messages; default sh
	Ash      bool   // words some messages as busybox's ash does
	Limits   Limits
}

// User is who a process runs as.
type User struct {
	UID, GID int64
	Groups   []int64 // supplementary ones
}

// Limits bound what one shell may use; zero means the default of each.
type Limits struct {
	Jobs     int   // background jobs and pipeline stages at once (default 64)
	Depth    int   // function and subshell nesting (default 200)
	VarBytes int64 // one variable or command substitution (default 1 MiB)
	// Rate is how many commands and blocks of output a second may be had; shells
	// can share one. Who wants more waits. nil: no bound.
	Rate *rate.Limiter
	// Work is called with how many commands and writes were had, every so many of
	// them, and may wait: for CPU time that is scarce. Its error ends the run. nil: nobody counts.
	Work func(ctx context.Context, commands int) error
}

// InteractiveOptions configure an interactive shell.
type InteractiveOptions struct {
	In       io.Reader
	Out      io.Writer
	Resize   <-chan Size
	Size     Size
	Prompt   func() string     // may hold ANSI colours
	Complete Completer         // nil: files and command names
	History  []string          // oldest first
	OnLine   func(line string) // a command line was entered (for history)
	Lang     string            // "zh" for Chinese notices, English otherwise
}

// Size is a terminal's size in character cells.
type Size struct{ Cols, Rows int }

// Completer proposes completions of the word at byte position pos of line. The proposals
// replace line[start:pos].
type Completer func(ctx context.Context, line string, pos int) (start int, proposals []string)
