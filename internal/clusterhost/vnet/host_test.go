package vnet

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// kitchens attaches two nodes with Pods: a and b on the first, c on the second.
func kitchens(t *testing.T) (n *Network, first, a, b, c *Interface) {
	t.Helper()
	n = New()
	t.Cleanup(func() { n.Close() })
	attach := func(name, ip string, node *Interface) *Interface {
		i, err := n.Attach(name, netip.MustParseAddr(ip))
		if err != nil {
			t.Fatal(err)
		}
		if node != nil {
			i.SetNode(node)
		}
		return i
	}
	first = attach("kitchen-1", "172.18.0.3", nil)
	second := attach("kitchen-2", "172.18.0.4", nil)
	return n, first, attach("a", "10.244.1.2", first), attach("b", "10.244.1.3", first), attach("c", "10.244.2.2", second)
}

func TestCutNodeTalksToItself(t *testing.T) {
	_, node, a, b, c := kitchens(t)
	within, echo := connected(t, a, b)
	across, far := connected(t, a, c)
	node.SetCut(true)
	if _, err := within.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(echo, make([]byte, 1)); err != nil {
		t.Errorf("a connection within the node: %v", err)
	}
	if _, err := across.Write([]byte("later")); err != nil {
		t.Fatal(err)
	}
	far.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := far.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("through a cut cable came %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	var ne net.Error
	if _, err := c.DialContext(ctx, "tcp", "172.18.0.3:10250"); !errors.As(err, &ne) || !ne.Timeout() {
		t.Errorf("dial to the node: %v, want a timeout", err)
	}
	if _, err := a.DialContext(t.Context(), "tcp", "172.18.0.3:10250"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial from a Pod to its own node: %v, want refused", err)
	}
	across.Close() // its FIN waits for the cable
	far.SetReadDeadline(time.Time{})
	node.SetCut(false)
	if got, err := io.ReadAll(far); string(got) != "later" || err != nil {
		t.Errorf("after the cut: %q %v", got, err)
	}
}

func TestCutConnectionsTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, node, a, b, c := kitchens(t)
		defer n.Close()
		within, _ := connected(t, a, b)
		across, far := connected(t, a, c)
		node.SetCut(true)
		begin := time.Now()
		for _, end := range []net.Conn{across, far} {
			if _, err := end.Read(make([]byte, 1)); !errors.Is(err, syscall.ETIMEDOUT) {
				t.Errorf("silence ends with %v", err)
			}
		}
		if took := time.Since(begin); took != keepAlive {
			t.Errorf("after %v", took)
		}
		within.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := within.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a connection within the node ended: %v", err)
		}
	})
}
