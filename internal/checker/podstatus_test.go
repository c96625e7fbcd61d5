package checker

import "testing"

func TestPodColumns(t *testing.T) {
	tests := []struct {
		name, pod       string
		status          string
		ready, total, n int
	}{
		{"running", `
spec: {containers: [{name: a}, {name: b}]}
status: {phase: Running, containerStatuses: [{name: a, ready: true, restartCount: 2, state: {running: {}}}, {name: b, ready: false, restartCount: 1, state: {running: {}}}]}`,
			"Running", 1, 2, 3},
		{"waits for its second init container", `
spec: {initContainers: [{name: i}, {name: j}], containers: [{name: a}]}
status: {phase: Pending, initContainerStatuses: [{name: i, state: {terminated: {exitCode: 0}}}, {name: j, restartCount: 4, state: {running: {}}}], containerStatuses: [{name: a, state: {waiting: {reason: PodInitializing}}}]}`,
			"Init:1/2", 0, 1, 4},
		{"init container fails", `
spec: {initContainers: [{name: i}], containers: [{name: a}]}
status: {phase: Pending, initContainerStatuses: [{name: i, state: {terminated: {exitCode: 1, reason: Error}}}]}`, "Init:Error", 0, 1, 0},
		{"init container backs off", `
spec: {initContainers: [{name: i}], containers: [{name: a}]}
status: {phase: Pending, initContainerStatuses: [{name: i, restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}}]}`, "Init:CrashLoopBackOff", 0, 1, 3},
		{"sidecar", `
spec: {initContainers: [{name: s, restartPolicy: Always}], containers: [{name: a}]}
status: {phase: Running, conditions: [{type: Initialized, status: "True"}], initContainerStatuses: [{name: s, started: true, ready: true, restartCount: 1, state: {running: {}}}], containerStatuses: [{name: a, ready: true, state: {running: {}}}]}`,
			"Running", 2, 2, 1},
		{"crash loop", `
spec: {containers: [{name: a}]}
status: {phase: Running, containerStatuses: [{name: a, restartCount: 5, state: {waiting: {reason: CrashLoopBackOff}}}]}`, "CrashLoopBackOff", 0, 1, 5},
		{"error without reason", `
spec: {containers: [{name: a}]}
status: {phase: Running, containerStatuses: [{name: a, state: {terminated: {exitCode: 3}}}]}`, "ExitCode:3", 0, 1, 0},
		{"signal", `
spec: {containers: [{name: a}]}
status: {phase: Running, containerStatuses: [{name: a, state: {terminated: {exitCode: 137, signal: 9}}}]}`, "Signal:9", 0, 1, 0},
		{"one container completed, one runs", `
spec: {containers: [{name: a}, {name: b}]}
status: {phase: Running, conditions: [{type: Ready, status: "False"}], containerStatuses: [{name: a, state: {terminated: {exitCode: 0, reason: Completed}}}, {name: b, ready: true, state: {running: {}}}]}`,
			"NotReady", 1, 2, 0},
		{"one completed, one failed", `
spec: {containers: [{name: a}, {name: b}]}
status: {phase: Failed, containerStatuses: [{name: a, state: {terminated: {exitCode: 0, reason: Completed}}}, {name: b, state: {terminated: {exitCode: 1, reason: Error}}}]}`,
			"Error", 0, 2, 0},
		{"terminating", `
metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}
spec: {containers: [{name: a}]}
status: {phase: Running, containerStatuses: [{name: a, ready: true, state: {running: {}}}]}`, "Terminating", 1, 1, 0},
		{"node lost", `
metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}
spec: {containers: [{name: a}]}
status: {phase: Running, reason: NodeLost}`, "Unknown", 0, 1, 0},
		{"completed and deleted", `
metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}
spec: {containers: [{name: a}]}
status: {phase: Succeeded, containerStatuses: [{name: a, state: {terminated: {exitCode: 0, reason: Completed}}}]}`, "Completed", 0, 1, 0},
		{"evicted", "spec: {containers: [{name: a}]}\nstatus: {phase: Failed, reason: Evicted}", "Evicted", 0, 1, 0},
		{"pending", "spec: {containers: [{name: a}]}\nstatus: {phase: Pending}", "Pending", 0, 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pod := worldOf(t, tt.pod).objects[0]
			ready, total := PodReady(pod)
			if s, n := PodStatus(pod), PodRestarts(pod); s != tt.status || n != tt.n || ready != tt.ready || total != tt.total {
				t.Errorf("%d/%d %s %d, want %d/%d %s %d", ready, total, s, n, tt.ready, tt.total, tt.status, tt.n)
			}
		})
	}
}
