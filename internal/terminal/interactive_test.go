package terminal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kubistro/internal/terminal"
)

func TestBadInput(t *testing.T) {
	s := open(t, config(t))
	s.send("cat /etc/passwd\r")
	s.wait("only your own folder")
	s.wait("$ ")
	s.send("cd ..\r")
	s.wait("only your own folder")
	s.wait("$ ")
	s.send("kubectl --kubeconfig x get pods\r")
	s.wait("always talks to your own cluster")
	s.wait("$ ")
	s.send("kubectl apply -f http://example.com/x.yaml\r")
	s.wait("no way to the internet")
	s.wait("$ ")
	s.send(":(){ :|:& };:\r")
	s.wait("too many jobs")
	s.send("\r")
	s.wait("$ ")
	s.send("echo still $((40+2))\r")
	s.wait("still 42")
}

func TestBigPaste(t *testing.T) {
	s := open(t, config(t))
	text := strings.Repeat("echo 0123456789 0123456789 0123456789 0123456789\n", 5<<20/50)
	s.send("\x1b[200~")
	for i := 0; i < len(text); i += 64 << 10 {
		s.send(text[i:min(i+64<<10, len(text))])
	}
	s.send("\x1b[201~")
	s.wait("too long")
	s.send("echo still $((40+2))\r")
	s.wait("still 42")
}

func TestPasteOfLines(t *testing.T) {
	s := open(t, config(t))
	s.send("\x1b[200~echo a1\ncat <<EOF\nline $((1+1))\nEOF\necho b\x1b[201~")
	s.wait("a1\r\n")
	s.wait("line 2")
	s.wait("echo b")
	s.send("3\r")
	s.wait("b3\r\n")
}

func TestManyLines(t *testing.T) {
	s := open(t, config(t))
	s.send("seq 1 10000; echo end\"\"ed\r")
	s.wait("ended")
	text := s.text.String()
	for _, n := range []int{2, 3, 5000, 9999, 10000} {
		if strings.Count(text, fmt.Sprintf("\r\n%d\r\n", n)) != 1 {
			t.Errorf("line %d isn't there exactly once", n)
		}
	}
}

func TestFloodIsHeldBack(t *testing.T) {
	c := config(t)
	term, err := terminal.Start(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer term.Close()
	s := &screen{t: t, term: term}
	s.wait("$ ")
	s.send("yes\r")
	s.wait("y\r\ny\r\n")
	// The client stops reading: the newest block must not run away.
	newest := func() uint64 {
		blocks, _, _ := term.Output(0)
		return blocks[len(blocks)-1].N
	}
	term.Ack(s.n)
	first := newest()
	for range 20 {
		blocks, _, more := term.Output(newest())
		_ = blocks
		timer := time.NewTimer(50 * time.Millisecond)
		select {
		case <-more:
		case <-timer.C:
		}
		timer.Stop()
	}
	if d := newest() - first; d > 400 {
		t.Errorf("%d blocks without an acknowledgement", d)
	}
	s.n = newest()
	term.Ack(s.n)
	s.send("\x03")
	s.wait("^C")
	s.wait("$ ")
}

func TestReconnect(t *testing.T) {
	s := open(t, config(t))
	s.send("for i in 1 2 3 4 5 6 7 8 9; do echo line-$i; sleep 0.05; done; echo over\"\"\r")
	var got strings.Builder
	var n uint64
	for !strings.Contains(got.String(), "\r\nover\r\n") {
		// Each round is a new connection that says the last number it has.
		blocks, reset, more := s.term.Output(n)
		if reset {
			t.Fatal("reset")
		}
		for _, b := range blocks {
			if b.N != n+1 {
				t.Fatalf("block %d after %d", b.N, n)
			}
			got.WriteString(b.Out)
			n = b.N
		}
		if len(blocks) == 0 {
			<-more
		}
	}
	for i := 1; i < 10; i++ {
		if c := strings.Count(got.String(), fmt.Sprintf("line-%d\r\n", i)); c != 1 {
			t.Errorf("line %d %d times", i, c)
		}
	}
	s.send("echo half-ty")
	s.wait("half-ty")
	s.send("ped\r") // after another reconnect
	s.wait("half-typed\r\n")
	if _, reset, _ := s.term.Output(1 << 40); !reset {
		t.Error("a number from the future isn't answered by a reset")
	}
}

func TestHistorySurvives(t *testing.T) {
	c := config(t)
	s := open(t, c)
	s.send("echo remember-me\r")
	s.wait("remember-me\r\n")
	s.wait("$ ")
	if err := s.term.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, c)
	s.send("\x1b[A")
	s.wait("echo remember-me")
}

func TestCloseEndsEverything(t *testing.T) {
	for _, cmd := range []string{"sleep 1000", "yes", "while :; do :; done", "cat", "watch -n 1 date"} {
		s := open(t, config(t))
		s.send(cmd + "\r")
		s.wait("\n")
		start := time.Now()
		s.term.Close()
		if d := time.Since(start); d > 3*time.Second {
			t.Errorf("%s: closed after %v", cmd, d)
		}
		<-s.term.Done()
	}
}

func TestMemoryHog(t *testing.T) {
	s := open(t, config(t))
	s.send("x=$(head -c 500000 /dev/zero | tr '\\0' x); for i in $(seq 1 3000); do declare \"v$i=$x\"; done\r")
	s.wait("memory")
	s.wait("Press any key")
	s.send("x")
	s.wait("$ ")
	s.send("echo al\"\"ive\r")
	s.wait("alive")
}

func TestHomeQuota(t *testing.T) {
	c := config(t)
	out, _ := execIn(t, c, "yes > big; ls -l big; for i in $(seq 1 300); do echo x > f$i; done 2>&1 | head -n 1; kubectl create configmap x --from-file=big --dry-run=client -o name 2>&1 | tail -c 300")
	if !strings.Contains(out, "quota") {
		t.Errorf("no word of the quota: %.500s", out)
	}
	info, err := os.Stat(filepath.Join(c.Home, "big"))
	if err != nil || info.Size() > 11<<20 {
		t.Errorf("size %v, %v", info.Size(), err)
	}
	list, err := os.ReadDir(c.Home)
	if err != nil || len(list) > 210 {
		t.Errorf("%d files, %v", len(list), err)
	}
}
