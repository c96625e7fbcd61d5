package operate_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"kubistro/internal/lab"
	"kubistro/internal/shell"
	"kubistro/internal/terminal/operate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// building is a cluster without Kubernetes in it.
type building struct {
	mu         sync.Mutex
	kitchens   []lab.KitchenState
	loops      []lab.ControlLoop
	speed      int
	keys       []string
	encryption lab.EncryptionState
	change     lab.EncryptionChange
	waits      chan struct{} // closed when a call that never ends has begun
	gaveUp     chan struct{} // closed when it was given up
}

func newBuilding() *building {
	return &building{
		kitchens: []lab.KitchenState{
			{Kitchen: lab.Kitchen{Name: "kitchen-1", CPU: "2", Memory: "2Gi", Labels: map[string]string{"kitchen": "1"}}, Address: "172.18.0.3", Power: true, Cable: true},
			{Kitchen: lab.Kitchen{Name: "kitchen-2", CPU: "2", Memory: "2Gi"}, Address: "172.18.0.4", Power: true, Cable: true},
		},
		loops: []lab.ControlLoop{{Name: "kube-scheduler", Part: lab.LoopComponent}, {Name: "coredns", Part: lab.LoopComponent},
			{Name: "kubelet/kitchen-1", Part: lab.LoopKubelet}, {Name: "deployment-controller", Part: lab.LoopController}},
		speed: 1, keys: []string{"/registry/pods/default/a", "/registry/secrets/default/door", "/registry/secrets/default/sauce"},
		encryption: lab.EncryptionState{Resources: []string{}}, waits: make(chan struct{}), gaveUp: make(chan struct{}),
	}
}

func (b *building) Kitchens(context.Context) ([]lab.KitchenState, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.kitchens), nil
}

func (b *building) AddKitchen(ctx context.Context, k lab.Kitchen) error {
	if k.Name == "never" {
		close(b.waits)
		<-ctx.Done()
		close(b.gaveUp)
		return ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kitchens = append(b.kitchens, lab.KitchenState{Kitchen: k, Power: true, Cable: true})
	return nil
}

func (b *building) at(name string) int {
	return slices.IndexFunc(b.kitchens, func(k lab.KitchenState) bool { return k.Name == name })
}

func (b *building) RemoveKitchen(_ context.Context, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kitchens = slices.Delete(b.kitchens, b.at(name), b.at(name)+1)
	return nil
}

func (b *building) SetKitchen(_ context.Context, name string, c lab.KitchenChange) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := &b.kitchens[b.at(name)]
	if c.Power != nil {
		k.Power = *c.Power
	}
	if c.Cable != nil {
		k.Cable = *c.Cable
	}
	return nil
}

func (b *building) Loops(context.Context) ([]lab.ControlLoop, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.loops), nil
}

func (b *building) SetLoop(_ context.Context, name string, home bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loops[slices.IndexFunc(b.loops, func(l lab.ControlLoop) bool { return l.Name == name })].Home = home
	return nil
}

func (b *building) ClusterClock(context.Context) (lab.Clock, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return lab.Clock{Speed: b.speed, Figures: []lab.Figure{{Component: "kube-apiserver", Name: "default-not-ready-toleration-seconds", RealMillis: 300_000, NowMillis: 300_000 / int64(b.speed)}}}, nil
}

func (b *building) SetClusterClock(_ context.Context, speed int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.speed = speed
	return nil
}

// EtcdKeys gives one key a page.
func (b *building) EtcdKeys(_ context.Context, prefix, after string, _ int) (lab.EtcdKeys, error) {
	var out lab.EtcdKeys
	for _, k := range b.keys {
		switch {
		case !strings.HasPrefix(k, prefix) || k <= after:
		case len(out.Keys) > 0:
			out.More = true
		default:
			out.Keys = append(out.Keys, lab.EtcdKey{Key: k})
		}
	}
	return out, nil
}

func (b *building) EtcdValue(_ context.Context, key string) (lab.EtcdValue, error) {
	if !slices.Contains(b.keys, key) {
		return lab.EtcdValue{}, lab.Fail(lab.CodeNotFound, "沒有。", "No.")
	}
	return lab.EtcdValue{EtcdKey: lab.EtcdKey{Key: key}, Value: []byte("k8s\x00secret sauce\x1b[2J"), Size: 1 << 20}, nil
}

func (b *building) Encryption(context.Context) (lab.EncryptionState, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.encryption, nil
}

func (b *building) SetEncryption(_ context.Context, c lab.EncryptionChange) error {
	if c.Provider == "rot13" {
		return lab.Fail(lab.CodeInvalid, "沒有 rot13。", "There is no rot13.")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.change = c
	b.encryption = lab.EncryptionState{On: c.On, Provider: "secretbox", Key: "key1", Resources: []string{"secrets"}}
	return nil
}

// remote is the building as a terminal's child sees it: through connections.
func remote(t *testing.T, b operate.Cluster) operate.Cluster {
	t.Helper()
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	return operate.Remote(func(ctx context.Context) (net.Conn, error) {
		ours, theirs := net.Pipe()
		wg.Go(func() {
			defer theirs.Close()
			operate.Serve(context.WithoutCancel(ctx), theirs, b)
		})
		return ours, nil
	})
}

// oneFile is a home with one file.
type oneFile struct {
	shell.FS
	name, text string
}

type opened struct {
	shell.File
	*strings.Reader
}

func (o opened) Close() error                                 { return nil }
func (o opened) Read(p []byte) (int, error)                   { return o.Reader.Read(p) }
func (o opened) Seek(offset int64, whence int) (int64, error) { return o.Reader.Seek(offset, whence) }

func (f oneFile) OpenFile(name string, _ int, _ fs.FileMode) (shell.File, error) {
	if name != f.name {
		return nil, fs.ErrNotExist
	}
	return opened{Reader: strings.NewReader(f.text)}, nil
}

func run(ctx context.Context, c operate.Cluster, lang lab.Lang, line string) (out string, code int) {
	var b bytes.Buffer
	env := shell.Env{Streams: shell.Streams{In: strings.NewReader(""), Out: &b, Err: &b}, Dir: "/home/learner", FS: oneFile{name: "/home/learner/lock.yaml", text: "kind: EncryptionConfiguration\n"}}
	code = operate.Command(c, lang)(ctx, env, strings.Fields(line))
	return b.String(), code
}

func TestCommands(t *testing.T) {
	b := newBuilding()
	c := remote(t, b)
	for _, tc := range []struct {
		line, want string
		code       int
	}{
		{"lab", "usage: lab", 0},
		{"lab node off --help", "usage: lab", 0},
		{"lab dance", `no command "dance"`, 2},
		{"lab nodes", "kitchen-1   on      in      2     2Gi      172.18.0.3   kitchen=1   <none>", 0},
		{"lab nodes --json", `"address": "172.18.0.3"`, 0},
		{"lab nodes --yaml", "can't understand", 2},
		{"lab node off kitchen-1 node/kitchen-2", "node/kitchen-1 powered off\nnode/kitchen-2 powered off\n", 0},
		{"lab node on kitchen-1", "node/kitchen-1 powered on\n", 0},
		{"lab node cut kitchen-1", "node/kitchen-1 disconnected\n", 0},
		{"lab nodes", "kitchen-1   on      cut", 0},
		{"lab node mend kitchen-1", "node/kitchen-1 connected\n", 0},
		{"lab node off kitchen-3", `did you mean "kitchen-`, 1},
		{"lab node off kitchen-1 cellar", `no node "cellar"; there are kitchen-1, kitchen-2`, 1},
		{"lab node off office", "office is the control plane", 1},
		{"lab node off", "a node must be named", 2},
		{"lab node burn kitchen-1", `not "burn"`, 2},
		{"lab node open annex --cpu 4 --memory 8Gi --label zone=b,disk=ssd --taint a=b:NoSchedule --resource nvidia.com/gpu=2", "node/annex opened\n", 0},
		{"lab node open annex --cpu", "flag needs an argument", 2},
		{"lab node open annex --label zone", "must be name=value", 2},
		{"lab node open", "one new node must be named", 2},
		{"lab node close kitchen-2", "node/kitchen-2 closed\n", 0},
		{"lab loops", "and 1 controllers at work", 0},
		{"lab loops -a", "deployment-controller   controller   working", 0},
		{"lab loop off scheduler", "kube-scheduler sent home\n", 0},
		{"lab loop off deployment", "deployment-controller sent home\n", 0},
		{"lab loop off kubelet kitchen-1", "kubelet/kitchen-1 sent home\n", 0},
		{"lab loops", "kube-scheduler          component    home", 0},
		{"lab loop on scheduler deployment-controller kubelet/kitchen-1", "kube-scheduler back at work\n", 0},
		{"lab loop off kubelet", "which node's kubelet", 2},
		{"lab loop off kube-schedular", `did you mean "kube-scheduler"?`, 1},
		{"lab loop off", "a control loop must be named", 2},
		{"lab loop fire scheduler", `not "fire"`, 2},
		{"lab clock", "clock: real time\nCOMPONENT", 0},
		{"lab clock 10", "default-not-ready-toleration-seconds   30s    5m", 0},
		{"lab clock real", "clock: real time", 0},
		{"lab clock 61", "from 1 to 60", 2},
		{"lab clock 1 2", "one speed is enough", 2},
		{"lab etcd list /registry/secrets/", "/registry/secrets/default/door\n/registry/secrets/default/sauce\n", 0},
		{"lab etcd get /registry/secrets/default/sauce", "00000000  6b 38 73 00 73 65 63 72  65 74 20 73 61 75 63 65  |k8s.secret sauce|\n", 0},
		{"lab etcd get /registry/secrets/default/sauce", "of 1048576 bytes these are the first 20", 0},
		{"lab etcd get /registry/secrets/default/sauce --raw", "k8s\x00secret sauce", 0},
		{"lab etcd get /nothing", "etcd has no key /nothing", 1},
		{"lab etcd get", "one key must be named", 2},
		{"lab etcd put a b", "can be asked", 2},
		{"lab encryption", "encryption at rest: off", 0},
		{"lab encryption on --provider aescbc --resource secrets,configmaps", "kubectl get secrets -A -o json | kubectl replace -f -", 0},
		{"lab encryption --json", `"provider": "secretbox"`, 0},
		{"lab encryption on --provider rot13", "There is no rot13.", 1},
		{"lab encryption maybe", `not "maybe"`, 2},
		{"lab encryption off", "encryption at rest: off", 0},
		{"lab encryption -f lock.yaml", "encryption at rest: on", 0},
		{"lab encryption -f nothing.yaml", "can't read nothing.yaml", 1},
	} {
		out, code := run(t.Context(), c, lab.En, tc.line)
		if code != tc.code || !strings.Contains(out, tc.want) {
			t.Errorf("%s: %d, want %d and %q\n%s", tc.line, code, tc.code, tc.want, out)
		}
	}
	want := lab.Kitchen{Name: "annex", CPU: "4", Memory: "8Gi", Labels: map[string]string{"zone": "b", "disk": "ssd"}, Taints: []string{"a=b:NoSchedule"}, Resources: map[string]string{"nvidia.com/gpu": "2"}}
	if diff := cmp.Diff(want, b.kitchens[b.at("annex")].Kitchen); diff != "" {
		t.Errorf("annex (-want +got):\n%s", diff)
	}
	if b.at("kitchen-2") >= 0 || b.change.Config != "kind: EncryptionConfiguration\n" {
		t.Errorf("in the end: %+v %+v", b.kitchens, b.change)
	}
	if out, _ := run(t.Context(), c, lab.ZhTW, "lab node off annexe"); !strings.Contains(out, "是不是 \"annex\"") {
		t.Errorf("in Chinese: %s", out)
	}
}

func TestWhoLeavesEndsTheWork(t *testing.T) {
	b := newBuilding()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-b.waits
		cancel()
	}()
	if out, code := run(ctx, remote(t, b), lab.En, "lab node open never"); code != 130 {
		t.Errorf("%d %s", code, out)
	}
	<-b.gaveUp
}

func TestServeBounds(t *testing.T) {
	for name, request := range map[string]string{
		"nonsense":        "GET / HTTP/1.1\n",
		"unknown request": `{"do":"burn"}` + "\n",
		"no kitchen":      `{"do":"add-kitchen"}` + "\n",
	} {
		ours, theirs := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			operate.Serve(t.Context(), theirs, newBuilding())
			theirs.Close()
		}()
		go fmt.Fprint(ours, request)
		b := make([]byte, 200)
		n, _ := ours.Read(b)
		if strings.Contains(string(b[:n]), `"out"`) {
			t.Errorf("%s: %s", name, b[:n])
		}
		ours.Close()
		<-done
	}
}

func TestComplete(t *testing.T) {
	b := newBuilding()
	b.keys = []string{"/registry/pods/default/a", "/registry/secrets/default/door", "/registry/secrets/kube-system/x"}
	for line, want := range map[string]string{
		"no":                           "node nodes",
		"node c":                       "close cut",
		"node off kitchen-1 ":          "kitchen-2",
		"node open x --":               "--cpu --label --memory --resource --taint",
		"loop off k":                   "kube-scheduler kubelet kubelet/kitchen-1",
		"loop off kubelet ":            "kitchen-1 kitchen-2",
		"loop on ":                     "",
		"etcd get /registry/p":         "/registry/pods/",
		"encryption on --provider aes": "aescbc aesgcm",
		"encryption ":                  "off on",
	} {
		if got := strings.Join(operate.Complete(t.Context(), b, strings.Split(line, " ")), " "); got != want {
			t.Errorf("lab %s: %q, want %q", line, got, want)
		}
	}
}
