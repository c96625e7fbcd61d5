package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// runtimeName is the name under which this program is an OCI runtime: runc, but
// without the capabilities that nobody has here.
//
// A privileged container asks for all capabilities that the kernel knows. Where the
// bounding set of this machine lacks one, runc fails ("unable to apply caps"), though
// kind's nodes work without.
const runtimeName = "runc-bounded"

// capabilities are the kernel's, by number (linux/capability.h).
var capabilities = strings.Fields(`CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE
	NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT
	SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE
	MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE`)

// boundingSet reads the capabilities that no process here can exceed.
func boundingSet(status string) (uint64, error) {
	data, err := os.ReadFile(status)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, "CapBnd:"); ok {
			return strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		}
	}
	return 0, fmt.Errorf("%s doesn't tell CapBnd", status)
}

// without are the capabilities that a set lacks, as OCI names them.
func without(set uint64) []string {
	var missing []string
	for bit, name := range capabilities {
		if set>>bit&1 == 0 {
			missing = append(missing, "CAP_"+name)
		}
	}
	return missing
}

// runtimeMain becomes runc after it has changed the configuration that runc is given.
func runtimeMain(args []string) error {
	bounding, err := boundingSet("/proc/self/status")
	if err != nil {
		return err
	}
	for _, file := range configurations(args) {
		data, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // runc knows better what that means
		} else if err != nil {
			return err
		}
		changed, err := strip(data, without(bounding))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(file, changed, 0o600); err != nil {
			return err
		}
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		return err
	}
	return syscall.Exec(runc, append([]string{"runc"}, args...), os.Environ())
}

// configurations are the files that runc's arguments name: a container's, by its
// bundle, or that of a process to start in one.
func configurations(args []string) []string {
	var files []string
	for i, a := range args {
		name, value, joined := strings.Cut(a, "=")
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		switch name {
		case "--bundle", "-bundle", "-b":
			files = append(files, filepath.Join(value, "config.json"))
		case "--process", "-process", "-p":
			files = append(files, value)
		}
	}
	return files
}

// strip takes capabilities out of an OCI configuration or a process of one.
func strip(data []byte, missing []string) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // limits need all 64 bits
	var config map[string]any
	if err := decoder.Decode(&config); err != nil {
		return nil, err
	}
	process := config
	if p, ok := config["process"].(map[string]any); ok {
		process = p
	}
	sets, _ := process["capabilities"].(map[string]any)
	for name, set := range sets {
		if list, ok := set.([]any); ok {
			sets[name] = slices.DeleteFunc(list, func(c any) bool {
				s, ok := c.(string)
				return ok && slices.Contains(missing, s)
			})
		}
	}
	return json.Marshal(config)
}
