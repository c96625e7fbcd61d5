package terminal

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

const landlockCreateRuleset = 444 // the same number on all architectures

// landlockABI is the version of Landlock that the kernel speaks; 0: none.
func landlockABI() int {
	v, _, errno := syscall.Syscall(landlockCreateRuleset, 0, 0, 1 /* LANDLOCK_CREATE_RULESET_VERSION */)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// Confinement says how far this system can confine terminals to the learner's
// home; enforced is false where it can't, and then the server should be used by
// its owner only.
func Confinement() (description string, enforced bool) {
	if v := landlockABI(); v > 0 {
		return fmt.Sprintf("Landlock ABI %d, resource limits, no capabilities", v), true
	}
	return "no Landlock in this kernel: resource limits only", false
}

// homeAccess is reading and writing of files, never executing them or making
// devices, sockets or pipes.
const homeAccess = landlock.AccessFSSet(1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<5 | 1<<7 | 1<<8 | 1<<14)

// confine gives up everything that the child doesn't need. It must be called
// before anything that a learner typed is looked at.
func confine(home string, ports []uint16) error {
	lowerPriority()
	for _, l := range []struct {
		resource int
		limit    uint64
	}{
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_FSIZE, 2 * maxHome},
		{unix.RLIMIT_NOFILE, 1024},
		{unix.RLIMIT_DATA, 2 << 30}, // Go maps its heap in large arenas; the watchdog is the finer limit
		{unix.RLIMIT_MEMLOCK, 0},
		{unix.RLIMIT_MSGQUEUE, 0},
	} {
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.limit, Max: l.limit}); err != nil {
			return fmt.Errorf("rlimit %d: %w", l.resource, err)
		}
	}
	rules := []landlock.Rule{landlock.PathAccess(homeAccess, home)}
	for _, p := range ports {
		rules = append(rules, landlock.ConnectTCP(p))
	}
	if err := landlock.V6.BestEffort().Restrict(rules...); err != nil && landlockABI() > 0 {
		return fmt.Errorf("landlock: %w", err)
	}
	return dropPrivileges()
}

// lowerPriority lets the server and the clusters go first. Priorities are per thread on Linux.
func lowerPriority() {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range tasks {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			unix.Setpriority(unix.PRIO_PROCESS, tid, 10)
		}
	}
}

// dropPrivileges makes sure on all threads that no program can be gained by
// executing, and takes the capabilities away that root has.
func dropPrivileges() error {
	if _, _, errno := syscall.AllThreadsSyscall6(syscall.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("no_new_privs: %w", errno)
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	_, _, errno := syscall.AllThreadsSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&hdr)), uintptr(unsafe.Pointer(&data[0])), 0)
	if errno != 0 && !errors.Is(errno, syscall.EPERM) {
		return fmt.Errorf("capset: %w", errno)
	}
	return nil
}
