package testprocess

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const roleEnv = "TESTPROCESS_ROLE"

// As the middle one, this program starts a child, says its number, and waits to be killed.
func TestMain(m *testing.M) {
	if os.Getenv(roleEnv) != "middle" {
		os.Exit(m.Run())
	}
	child := exec.Command("sleep", "600")
	if _, err := Start(child, syscall.SIGTERM); err != nil {
		os.Exit(1)
	}
	os.Stdout.WriteString(strconv.Itoa(child.Process.Pid) + "\n")
	select {}
}

func TestChildDiesWithAKilledParent(t *testing.T) {
	middle := exec.Command(os.Args[0])
	middle.Env = append(os.Environ(), roleEnv+"=middle")
	out, err := middle.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	wait, err := Start(middle, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || !alive(pid) {
		t.Fatalf("child %q: %v, want one that runs", line, err)
	}
	if err := middle.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := wait(); err == nil {
		t.Error("the parent ended by itself")
	}
	end := time.Now().Add(time.Minute)
	for tick := time.Tick(5 * time.Millisecond); alive(pid); <-tick {
		if time.Now().After(end) {
			t.Fatal("the child lives on")
		}
	}
}

// A thread that asked for a child may end before the process does.
func TestChildOutlivesTheThreadThatAskedForIt(t *testing.T) {
	child := exec.Command("cat")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var wait func() error
	asked := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		var err error
		wait, err = Start(child, syscall.SIGKILL)
		asked <- err
	}()
	if err := <-asked; err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := wait(); err != nil {
			t.Errorf("wait = %v, want the child's own good end", err)
		}
	}
}

func TestProgramThatIsNotThere(t *testing.T) {
	if _, err := Start(exec.Command(t.TempDir()+"/nothing"), syscall.SIGKILL); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("start = %v, want %v", err, os.ErrNotExist)
	}
}

// alive is false for a zombie too: nobody may have waited for it yet.
func alive(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z")
}
