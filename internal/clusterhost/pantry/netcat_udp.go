package pantry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// ncProbe is how long nc -uz waits for somebody to say that the port is closed.
const ncProbe = time.Second

// ncTalkUDP sends each read of standard input as a datagram and prints what comes back,
// until nothing has passed for -w; without it, for ever.
func ncTalkUDP(ctx context.Context, p *Process, a ncArgs, c net.Conn) int {
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if a.zero {
		io.WriteString(c, "X")
		c.SetReadDeadline(time.Now().Add(ncProbe))
		if _, err := c.Read(make([]byte, 1)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return 1
		}
		if a.verbose {
			fmt.Fprintf(p.Stderr, "%s (%s) open\n", a.rest[0], c.RemoteAddr())
		}
		return 0
	}
	var last atomic.Int64
	used := func() { last.Store(time.Now().UnixNano()) }
	used()
	go func() {
		io.CopyBuffer(sentWriter{c, used}, p.Stdin, make([]byte, copyBuffer))
		used()
	}()
	b := make([]byte, copyBuffer)
	for {
		if a.wait > 0 {
			c.SetReadDeadline(time.Unix(0, last.Load()).Add(a.wait))
		}
		n, err := c.Read(b)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			if time.Since(time.Unix(0, last.Load())) >= a.wait {
				return 0
			}
			continue
		case ctx.Err() != nil:
			return exitSigkill
		case err != nil:
			fmt.Fprintf(p.Stderr, "nc: read: %s\n", ncReason(err))
			return 1
		}
		used()
		if _, err := p.Stdout.Write(b[:n]); err != nil {
			return 1
		}
	}
}

// ncListenUDP prints what arrives and sends standard input to who wrote first; with -k
// everybody is heard.
func ncListenUDP(ctx context.Context, p *Process, a ncArgs) int {
	l, err := p.Net.ListenPacket(":" + a.port)
	if err != nil {
		fmt.Fprintf(p.Stderr, "nc: bind: %s\n", listenError(err))
		return 1
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	if a.verbose {
		fmt.Fprintf(p.Stderr, "listening on %s ...\n", l.LocalAddr())
	}
	var peer net.Addr
	b := make([]byte, copyBuffer)
	for {
		n, from, err := l.ReadFrom(b)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return 0
		case err != nil:
			return exitSigkill
		case peer == nil:
			peer = from
			if a.verbose {
				fmt.Fprintf(p.Stderr, "connect to %s from %s\n", l.LocalAddr(), from)
			}
			go io.CopyBuffer(packetWriter{l, from}, p.Stdin, make([]byte, copyBuffer))
		case !a.keep && from.String() != peer.String():
			continue
		}
		if a.wait > 0 && !a.keep {
			l.SetReadDeadline(time.Now().Add(a.wait))
		}
		if _, err := p.Stdout.Write(b[:n]); err != nil {
			return 1
		}
	}
}

// packetWriter sends to one address.
type packetWriter struct {
	c  net.PacketConn
	to net.Addr
}

func (w packetWriter) Write(b []byte) (int, error) { return w.c.WriteTo(b, w.to) }
