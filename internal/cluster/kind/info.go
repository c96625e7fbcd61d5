package kind

import (
	"encoding/json"
	"errors"
	"fmt"
)

// runtimeInfo is what matters of the answer to docker info; podman has it elsewhere.
type runtimeInfo struct {
	NCPU          int64
	MemTotal      int64
	CgroupVersion string
	CgroupDriver  string
	ServerVersion string
	ServerErrors  []string
	DockerRootDir string
	Host          struct { // podman
		CPUs          int64  `json:"cpus"`
		MemTotal      int64  `json:"memTotal"`
		CgroupVersion string `json:"cgroupVersion"`
	} `json:"host"`
}

// parseInfo reads the machine's size.
func parseInfo(text string) (machine, error) {
	var i runtimeInfo
	if err := json.Unmarshal([]byte(text), &i); err != nil {
		return machine{}, fmt.Errorf("container runtime's info: %w", err)
	}
	m := machine{max(i.NCPU, i.Host.CPUs), max(i.MemTotal, i.Host.MemTotal)}
	if m.cpus == 0 || m.memory == 0 {
		return m, errors.Join(errors.New("container runtime doesn't tell its machine's size"), errors.New(firstOf(i.ServerErrors)))
	}
	return m, nil
}

func firstOf(list []string) string {
	if len(list) > 0 {
		return list[0]
	}
	return "no reason given"
}
