package kind

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/kind/pkg/exec"

	"kubistro/internal/lab"
)

func TestProblems(t *testing.T) {
	said := func(text string) error {
		return &kindError{&exec.RunError{Command: []string{"docker", "run"}, Output: []byte(text), Inner: errors.New("exit status 125")}, ""}
	}
	for _, tc := range []struct {
		err  error
		says string
	}{
		{said("permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock"), "docker group"},
		{said("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"), "Docker isn't running"},
		{said("Cannot connect to Podman. Please verify your connection"), "Podman doesn't answer"},
		{said("Bind for 127.0.0.1:40001 failed: port is already allocated"), "taken by another program"},
		{&kindError{errors.New(`could not find a log line that matches "Reached target .*Multi-User System.*"`), ""}, "fs.inotify.max_user_watches"},
		{said("write /var/lib/docker/tmp/x: no space left on device"), "disk is full"},
		{&commandError{[]string{"docker", "pull"}, "toomanyrequests: You have reached your pull rate limit", errors.New("exit status 1")}, "registry refuses"},
		{&commandError{[]string{"docker", "pull", "kindest/nod"}, "pull access denied for kindest/nod", errors.New("exit status 1")}, "node image isn't there"},
		{&commandError{[]string{"docker", "pull", "x"}, "dial tcp: lookup registry-1.docker.io: no such host", errors.New("exit status 1")}, "registry can't be reached"},
		{&kindError{errors.New("running kind with rootless provider requires cgroup v2"), ""}, "need cgroup v2"},
		{said("cgroup v1 is deprecated in Kubernetes, please upgrade to cgroup v2\nshort: cannot allocate memory"), "short of memory"},
		{said("runc create failed: cannot allocate memory"), "short of memory"},
		{said("could not find an available, non-overlapping IPv4 address pool among the defaults"), "docker network prune"},
		{fmt.Errorf("x: %w", context.Canceled), "cancelled"},
		{&startError{stageNetwork, errors.New("boom")}, "as far as the cluster's network"},
	} {
		err := problem(tc.err)
		var e *lab.Error
		if !errors.As(err, &e) || !strings.Contains(e.Text.En, tc.says) || len(e.Text.Missing()) > 0 {
			t.Errorf("%v: %v, want %q", tc.err, err, tc.says)
		} else if !strings.Contains(err.Error(), tc.err.Error()) {
			t.Errorf("the cause of %v has lost the raw text", err)
		}
	}
	if problem(nil) != nil {
		t.Error("nothing became a problem")
	}
	for _, s := range sentences {
		if len(s.text.Missing()) > 0 || len(s.words) == 0 {
			t.Errorf("sentence %+v", s)
		}
		for _, w := range s.words {
			if w != strings.ToLower(w) {
				t.Errorf("%q never matches", w)
			}
		}
	}
}

func TestStagesHaveNames(t *testing.T) {
	general := stageName("")
	for _, s := range []string{stageImage, stageNodes, stageConfig, stageControlPlane, stageNetwork, stageStorage, stageKitchens, stagePantry, stageReady} {
		if n := stageName(s); n == general || len(n.Missing()) > 0 {
			t.Errorf("stage %s is called %v", s, n)
		}
	}
}
