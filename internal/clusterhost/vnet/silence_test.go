package vnet

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestSilence(t *testing.T) {
	a, b := two(t)
	client, server := connected(t, a, b)
	b.SetDown(true)
	if _, err := server.Write([]byte("into the void")); err != nil {
		t.Fatal(err)
	}
	client.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read from a silent peer: %v, want a deadline", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	var ne net.Error
	if _, err := a.DialContext(ctx, "tcp", "10.244.2.2:80"); !errors.As(err, &ne) || !ne.Timeout() {
		t.Fatalf("dial to a silent address: %v, want a timeout", err)
	}
	server.Close()
	client.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("FIN was seen through silence: %v", err)
	}
	client.SetReadDeadline(time.Time{})
	b.SetDown(false)
	if got, err := io.ReadAll(client); string(got) != "into the void" || err != nil {
		t.Fatalf("after the silence: %q, %v", got, err)
	}
}

func TestDialSucceedsWhenSilenceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := two(t)
		l, err := b.Listen(":80")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		b.SetDown(true)
		time.AfterFunc(5*time.Second, func() { b.SetDown(false) })
		start := time.Now()
		c, err := a.DialContext(t.Context(), "tcp", "10.244.2.2:80")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if took := time.Since(start); took != 7*time.Second { // SYN at 0, 1, 3, 7 s
			t.Errorf("connected after %v", took)
		}
	})
}

func TestSilenceEndsByKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := two(t)
		client, _ := connected(t, a, b)
		b.SetDown(true)
		start := time.Now()
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ETIMEDOUT) {
			t.Errorf("read: %v, want ETIMEDOUT", err)
		}
		if took := time.Since(start); took != keepAlive {
			t.Errorf("gave up after %v, want %v", took, keepAlive)
		}
		start = time.Now()
		if _, err := a.DialContext(t.Context(), "tcp", "10.244.2.2:80"); !errors.Is(err, syscall.ETIMEDOUT) {
			t.Errorf("dial: %v, want ETIMEDOUT", err)
		}
		if took := time.Since(start); took != connectTimeout {
			t.Errorf("gave up after %v, want %v", took, connectTimeout)
		}
	})
}

func TestPowerLossThenNewOwner(t *testing.T) {
	a, b := two(t)
	client, _ := connected(t, a, b)
	b.SetDown(true)
	b.Close() // the Pod's sockets died with the power; its peers can't know
	client.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("reset was seen through silence: %v", err)
	}
	client.SetReadDeadline(time.Time{})
	attach(t, a.stack.net, "b again", "10.244.2.2")
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("with a new owner of the address: %v, want ECONNRESET", err)
	}
}

func TestCloseOfNetworkWakesEverybody(t *testing.T) {
	n := New()
	a, b := attach(t, n, "a", "10.0.0.1"), attach(t, n, "b", "10.0.0.2")
	client, _ := connected(t, a, b)
	b.SetDown(true)
	dialed, read := make(chan error), make(chan error)
	go func() {
		_, err := a.DialContext(context.Background(), "tcp", "10.0.0.2:80")
		dialed <- err
	}()
	go func() {
		_, err := client.Read(make([]byte, 1))
		read <- err
	}()
	n.Close()
	if err := <-dialed; err == nil {
		t.Error("dial succeeded")
	}
	if err := <-read; err == nil {
		t.Error("read succeeded")
	}
}
