package terminal

import (
	"fmt"
	"net"
	"os"
	"os/exec"
)

// ProbeConfinement confines this process to the folder args[0] and then tries
// to reach what it must not, with plain system calls.
func ProbeConfinement(args []string) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println("listen:", err)
		return 1
	}
	defer l.Close()
	if err := confine(args[0], nil); err != nil {
		fmt.Println("confine:", err)
		return 1
	}
	report := func(what string, err error) {
		if err == nil {
			fmt.Println("REACHED " + what)
		} else {
			fmt.Println("refused " + what)
		}
	}
	for _, p := range []string{"/etc/passwd", "/proc/self/environ", "/proc/1/cmdline", args[0] + "/../x", "/tmp", args[0] + "/link", "/proc/self/root/etc/passwd", "/dev/ptmx"} {
		f, err := os.Open(p)
		if err == nil {
			f.Close()
		}
		report("open "+p, err)
	}
	report("write /tmp", os.WriteFile("/tmp/kubistro-probe", []byte("x"), 0o600))
	report("exec /bin/true", exec.Command("/bin/true").Run())
	_, err = net.Dial("tcp", l.Addr().String())
	report("dial loopback", err)
	_, err = os.ReadFile(args[0] + "/own")
	if err != nil {
		fmt.Println("REACHED nothing: own file can't be read:", err)
	}
	report("read own file (must work)", nil)
	return 0
}
