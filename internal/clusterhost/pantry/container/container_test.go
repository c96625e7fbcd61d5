package container

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"

	"kubistro/internal/clusterhost/pantry"
	"kubistro/internal/clusterhost/pantry/cgroup"
	"kubistro/internal/clusterhost/vnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestResolvConf(t *testing.T) {
	got := resolvConf("search default.svc.cluster.local svc.cluster.local\nnameserver 10.96.0.10\nnameserver 10.96.0.11\noptions ndots:5 edns0\n# end\n")
	want := vnet.DNSConfig{
		Nameserver: netip.MustParseAddr("10.96.0.10"), More: []netip.Addr{netip.MustParseAddr("10.96.0.11")},
		Search: []string{"default.svc.cluster.local", "svc.cluster.local"}, Ndots: 5,
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

func TestReadAnswer(t *testing.T) {
	name, srv := dnsmessage.MustNewName("grill.default.svc.cluster.local."), dnsmessage.MustNewName("_http._tcp.grill.default.svc.cluster.local.")
	message := func(m dnsmessage.Message) []byte {
		t.Helper()
		b, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	header := func(n dnsmessage.Name, typ dnsmessage.Type) dnsmessage.ResourceHeader {
		return dnsmessage.ResourceHeader{Name: n, Type: typ, Class: dnsmessage.ClassINET, TTL: 30}
	}
	got, err := readAnswer(7, message(dnsmessage.Message{
		Header:      dnsmessage.Header{ID: 7, Response: true},
		Answers:     []dnsmessage.Resource{{Header: header(srv, dnsmessage.TypeSRV), Body: &dnsmessage.SRVResource{Priority: 0, Weight: 100, Port: 80, Target: name}}},
		Additionals: []dnsmessage.Resource{{Header: header(name, dnsmessage.TypeA), Body: &dnsmessage.AResource{A: [4]byte{10, 96, 1, 2}}}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := vnet.Answer{
		Code:    "NOERROR",
		Records: []vnet.Record{{Name: srv.String(), Type: "SRV", TTL: 30, Text: name.String(), Weight: 100, Port: 80}},
		Extra:   []vnet.Record{{Name: name.String(), Type: "A", TTL: 30, Addr: netip.MustParseAddr("10.96.1.2")}},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if a, err := readAnswer(7, message(dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RCode: dnsmessage.RCodeNameError}})); err != nil || a.Code != "NXDOMAIN" {
		t.Errorf("%v %v", a, err)
	}
	for what, reply := range map[string][]byte{
		"another question's answer": message(dnsmessage.Message{Header: dnsmessage.Header{ID: 8}}),
		"a server's failure":        message(dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RCode: dnsmessage.RCodeServerFailure}}),
		"rubbish":                   []byte("x"),
	} {
		if a, err := readAnswer(7, reply); err == nil {
			t.Errorf("%s was taken: %v", what, a)
		}
	}
}

func TestQuestion(t *testing.T) {
	q, err := question(9, "Grill.default", "a")
	if err != nil {
		t.Fatal(err)
	}
	var m dnsmessage.Message
	if err := m.Unpack(q); err != nil {
		t.Fatal(err)
	}
	if m.ID != 9 || !m.RecursionDesired || m.Questions[0].Name.String() != "Grill.default." || m.Questions[0].Type != dnsmessage.TypeA {
		t.Errorf("%+v", m)
	}
	if _, err := question(9, strings.Repeat("x", 300), "A"); err == nil {
		t.Error("a name that is too long was taken")
	}
}

// An image whose main process keeps a number that a control program changes.
func counterImage() *pantry.Image {
	add := func(_ context.Context, p *pantry.Process) int {
		n, ok := p.Store.Get("n")
		if !ok {
			fmt.Fprintln(p.Stderr, "nobody is there")
			return 1
		}
		*n.(*int)++
		fmt.Fprintf(p.Stdout, "%v %d\n", p.Args, *n.(*int))
		fmt.Fprintln(p.Stderr, "done")
		return 42
	}
	return &pantry.Image{Entrypoint: []string{"main"}, Controls: []string{"add"}, Programs: map[string]pantry.Program{"add": add}}
}

func TestControlProgramsRunInTheMainProcess(t *testing.T) {
	img := counterImage()
	dir := t.TempDir()
	sockets := []string{filepath.Join(dir, "missing", "s"), filepath.Join(dir, "s")} // the first can't be made
	n := 0
	p := &pantry.Process{Store: new(pantry.Store), Usage: new(cgroup.Group)}
	p.Store.Set("n", &n)
	if err := os.WriteFile(sockets[1], nil, 0o600); err != nil { // what a killed container left
		t.Fatal(err)
	}
	stop := serveControls(t.Context(), sockets, img, p)

	elsewhere := func() (code int, out, errs string) {
		var stdout, stderr bytes.Buffer
		other := &pantry.Process{Args: []string{"/bin/add", "one"}, Stdout: &stdout, Stderr: &stderr, Store: new(pantry.Store)}
		code = withRemote(sockets, img, img.Programs)["add"](t.Context(), other)
		return code, stdout.String(), stderr.String()
	}
	for want := 1; want <= 2; want++ {
		code, out, errs := elsewhere()
		if code != 42 || out != fmt.Sprintf("[add one] %d\n", want) || errs != "done\n" {
			t.Errorf("%d %q %q", code, out, errs)
		}
	}
	stop()
	if code, _, errs := elsewhere(); code != 1 || errs != "nobody is there\n" {
		t.Errorf("without a main process: %d %q", code, errs)
	}
}

func TestFilesAreTheContainers(t *testing.T) {
	dir := t.TempDir()
	var f kernelFS
	file, err := f.OpenFile(filepath.Join(dir, "a"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	var wrong *fs.PathError
	if err := f.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "c")); !errors.As(err, &wrong) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want a PathError", err)
	}
	if file, err := f.OpenFile(filepath.Join(dir, "a"), os.O_RDONLY, 0); err == nil || file != nil {
		t.Errorf("got %v, %v", file, err)
	}
}

func TestBurner(t *testing.T) {
	b := &burner{size: 10 << 20}
	start := time.Now()
	if err := b.Work(t.Context(), 5*time.Millisecond); err != nil || time.Since(start) < 5*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Work(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	b.Load(1500)() // goleak sees a thread that goes on
	b.Hold(12 << 20)
	if len(b.held) != 2<<20 {
		t.Errorf("holds %d", len(b.held))
	}
	b.Hold(1 << 20)
	if b.held != nil {
		t.Error("holds something though the process is big enough")
	}
}
