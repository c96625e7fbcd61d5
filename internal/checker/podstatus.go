package checker

import (
	"fmt"
	"strings"
)

// PodStatus is kubectl's STATUS column for a Pod in its JSON form: Running,
// CrashLoopBackOff, Init:0/1, Terminating, Completed and so on.
func PodStatus(pod map[string]any) string {
	status := text(pod, "status", "phase")
	if r := text(pod, "status", "reason"); r != "" {
		status = r
	}
	for _, c := range conditions(pod) {
		if text(c, "type") == "PodScheduled" && text(c, "reason") == "SchedulingGated" {
			status = "SchedulingGated"
		}
	}
	s, initializing := initializing(pod)
	if initializing {
		status = s
	}
	if !initializing || initialized(pod) {
		status = containersStatus(pod, status)
	}
	return deletionStatus(pod, status)
}

// initializing reports whether an init container is still to be waited for, and
// the STATUS of a Pod in that state.
func initializing(pod map[string]any) (status string, waits bool) {
	total := len(items(pod, "spec", "initContainers"))
	for i, c := range items(pod, "status", "initContainerStatuses") {
		if status, waits = initStatus(pod, c, i, total); waits {
			return status, true
		}
	}
	return "", false
}

// initStatus is what an init container adds to STATUS; waits is false when it is done.
func initStatus(pod, c map[string]any, i, total int) (status string, waits bool) {
	terminated := object(c, "state", "terminated")
	waiting := text(c, "state", "waiting", "reason")
	switch {
	case terminated != nil && number(terminated, "exitCode") == 0:
		return "", false
	case restartable(pod, text(c, "name")) && flag(c, "started"):
		return "", false
	case terminated != nil:
		return "Init:" + endReason(terminated), true
	case waiting != "" && waiting != "PodInitializing":
		return "Init:" + waiting, true
	}
	return fmt.Sprintf("Init:%d/%d", i, total), true
}

// endReason is the reason of a terminated container, or what stands in for it.
func endReason(terminated map[string]any) string {
	if r := text(terminated, "reason"); r != "" {
		return r
	}
	if s := number(terminated, "signal"); s != 0 {
		return fmt.Sprintf("Signal:%d", s)
	}
	return fmt.Sprintf("ExitCode:%d", number(terminated, "exitCode"))
}

// containersStatus is STATUS once the init containers are done.
func containersStatus(pod map[string]any, status string) string {
	running, failure := false, ""
	list := items(pod, "status", "containerStatuses")
	for i := len(list) - 1; i >= 0; i-- {
		c := list[i]
		terminated := object(c, "state", "terminated")
		switch waiting := text(c, "state", "waiting", "reason"); {
		case waiting != "":
			status = waiting
		case terminated != nil:
			status = endReason(terminated)
			if number(terminated, "exitCode") != 0 {
				failure = status
			}
		case flag(c, "ready") && object(c, "state", "running") != nil:
			running = true
		}
	}
	if status != "Completed" {
		return status
	}
	switch {
	case running && condition(pod, "Ready") == "True":
		return "Running"
	case failure != "":
		return failure
	case running:
		return "NotReady"
	}
	return status
}

// deletionStatus is STATUS of a Pod that may have a deletion timestamp.
func deletionStatus(pod map[string]any, status string) string {
	phase := text(pod, "status", "phase")
	switch {
	case text(pod, "metadata", "deletionTimestamp") == "":
		return status
	case text(pod, "status", "reason") == "NodeLost":
		return "Unknown"
	case phase == "Failed" || phase == "Succeeded":
		return status
	}
	return "Terminating"
}

// PodReady counts the ready containers of a Pod and all of them: kubectl's READY column.
func PodReady(pod map[string]any) (ready, total int) {
	total = len(items(pod, "spec", "containers"))
	for _, c := range items(pod, "status", "containerStatuses") {
		if flag(c, "ready") && object(c, "state", "running") != nil {
			ready++
		}
	}
	for _, c := range items(pod, "spec", "initContainers") {
		if text(c, "restartPolicy") == "Always" {
			total++
		}
	}
	for _, c := range items(pod, "status", "initContainerStatuses") {
		if restartable(pod, text(c, "name")) && flag(c, "ready") && flag(c, "started") {
			ready++
		}
	}
	return ready, total
}

// PodRestarts is kubectl's RESTARTS column without its age.
func PodRestarts(pod map[string]any) int {
	n := 0
	_, waits := initializing(pod)
	waits = waits && !initialized(pod)
	for _, c := range items(pod, "status", "initContainerStatuses") {
		if waits || restartable(pod, text(c, "name")) {
			n += int(number(c, "restartCount"))
		}
	}
	if waits {
		return n
	}
	for _, c := range items(pod, "status", "containerStatuses") {
		n += int(number(c, "restartCount"))
	}
	return n
}

// restartable reports whether an init container of the Pod is a sidecar.
func restartable(pod map[string]any, name string) bool {
	for _, c := range items(pod, "spec", "initContainers") {
		if text(c, "name") == name {
			return text(c, "restartPolicy") == "Always"
		}
	}
	return false
}

func initialized(pod map[string]any) bool { return condition(pod, "Initialized") == "True" }

// images lists the images of a Pod or of a workload's Pod template, containers only.
func images(obj map[string]any) []string {
	list := items(obj, "spec", "template", "spec", "containers")
	if list == nil {
		list = items(obj, "spec", "containers")
	}
	if list == nil {
		list = items(obj, "spec", "jobTemplate", "spec", "template", "spec", "containers")
	}
	out := []string{}
	for _, c := range list {
		out = append(out, strings.TrimSpace(text(c, "image")))
	}
	return out
}
