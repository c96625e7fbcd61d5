package pantry

import (
	"context"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"kubistro/internal/clusterhost/vnet"
)

// withDNS gives the network a Service "web" in namespace "floor2", and name servers that answer.
func withDNS(t *testing.T, n *vnet.Network) {
	client := fake.NewSimpleClientset(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "floor2"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "floor2", Name: "web"}, Spec: corev1.ServiceSpec{
			ClusterIP: "10.96.0.20", ClusterIPs: []string{"10.96.0.20"}, Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}}}},
	)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	factory := informers.NewSharedInformerFactory(client, 0)
	table := vnet.NewServiceTable(factory)
	factory.Start(ctx.Done())
	t.Cleanup(func() { cancel(); factory.Shutdown() })
	factory.WaitForCacheSync(ctx.Done())
	for !table.HasSynced() {
		if ctx.Err() != nil {
			t.Fatal("the table never gets in step")
		}
	}
	n.SetServices(table)
	n.SetDNSReady(func() bool { return true })
}

func TestNslookupAndDig(t *testing.T) {
	n, _ := network(t)
	withDNS(t, n)
	c := pod(t, n, "toolbox", "10.244.1.2")
	c.network().SetDNS(vnet.DNSConfig{Nameserver: netip.MustParseAddr("10.96.0.10"), Ndots: 5, Search: []string{"floor2.svc.cluster.local", "svc.cluster.local", "cluster.local"}})
	head := "Server:\t\t10.96.0.10\nAddress:\t10.96.0.10:53\n\n"
	for _, tc := range []struct {
		line, want string
		code       int
	}{
		{"nslookup web", head + "Name:\tweb.floor2.svc.cluster.local\nAddress: 10.96.0.20\n\n", 0},
		{"nslookup nosuch", head + "** server can't find nosuch: NXDOMAIN\n\n", 1},
		{"nslookup -type=SRV _http._tcp.web", head + "_http._tcp.web.floor2.svc.cluster.local\tservice = 0 100 80 web.floor2.svc.cluster.local.\n\n", 0},
		{"nslookup 10.96.0.20", head + "20.0.96.10.in-addr.arpa\tname = web.floor2.svc.cluster.local.\n\n", 0},
		{"dig +short web.floor2.svc.cluster.local", "10.96.0.20\n", 0},
		{"dig +short web", "", 0},
		{"dig +search +short web", "10.96.0.20\n", 0},
		{"dig +noall +answer web.floor2.svc.cluster.local", "web.floor2.svc.cluster.local.\t30\tIN\tA\t10.96.0.20\n", 0},
		{"sh -c 'dig web.floor2 | grep -c NXDOMAIN'", "1\n", 0},
	} {
		if out, code := c.exec("", "sh", "-c", tc.line); out != tc.want || code != tc.code {
			t.Errorf("%s: %d\n%q, want\n%q", tc.line, code, out, tc.want)
		}
	}
}

func TestInteractiveShell(t *testing.T) {
	n, _ := network(t)
	c := pod(t, n, "toolbox", "10.244.1.2")
	in, keys := io.Pipe()
	c.proc.Stdin, c.proc.TTY = in, true
	defer keys.Close()
	c.start("bash")
	c.out.wait(t, "root@cook-1:/root# ")
	io.WriteString(keys, "echo $((6*7))dishes\r")
	c.out.wait(t, "42dishes")
	io.WriteString(keys, "exit 3\r")
	keys.Close()
	if code := c.ended(); code != 3 {
		t.Errorf("exit code %d\n%s", code, strings.ReplaceAll(c.out.String(), "\x1b", "^"))
	}
}
