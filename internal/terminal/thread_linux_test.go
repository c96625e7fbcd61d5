package terminal_test

import (
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"kubistro/internal/terminal"
)

// A child dies with the server (Pdeathsig), which the kernel takes for the
// thread that started it; other parts of the server end threads.
func TestChildOutlivesTheThreadThatAskedForIt(t *testing.T) {
	const threads = 3 // at most one of them is the process's first, which doesn't end
	terms := make([]*terminal.Terminal, threads)
	c := config(t)
	var ready, ended sync.WaitGroup
	ready.Add(threads)
	for i := range threads {
		ended.Go(func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			ready.Done()
			ready.Wait()
			if syscall.Gettid() == os.Getpid() {
				return
			}
			term, err := terminal.Start(t.Context(), c)
			if err != nil {
				t.Error(err)
				return
			}
			terms[i] = term
		})
	}
	ended.Wait()
	for _, term := range terms {
		if term == nil {
			continue
		}
		defer func() {
			if err := term.Close(); err != nil {
				t.Error(err)
			}
		}()
		s := &screen{t: t, term: term}
		s.wait("$ ")
		s.send("echo $((20+22)) lives\r")
		s.wait("42 lives")
	}
}
