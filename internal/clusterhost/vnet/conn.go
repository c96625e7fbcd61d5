package vnet

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// conn is one end of a connection. It is a net.Conn that can be half-closed.
type conn struct {
	net           *Network
	stack, peer   *stack
	in, out       *half
	local, remote *net.TCPAddr // as this end sees them; Service addresses are translated
	sockets       *socketSet   // the process that opened or accepted it
	port          uint16       // ephemeral port to give back; 0 at the accepting end
	other         *conn
}

var _ net.Conn = (*conn)(nil)

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.in.read(b)
	switch {
	case err == io.EOF:
		c.out.tellEnd()
	case err != nil:
		err = c.opError("read", err)
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.out.write(b)
	if err != nil {
		err = c.opError("write", err)
	}
	return n, err
}

// Close sends FIN and gives up what has not been read. What was written can
// still be read by the peer.
func (c *conn) Close() error {
	if !c.in.closeRead() {
		return c.opError("close", net.ErrClosed)
	}
	c.out.closeWrite(true)
	c.release()
	return nil
}

// CloseWrite sends FIN: the peer reads to the end, and can still write.
func (c *conn) CloseWrite() error {
	if c.in.readClosed() {
		return c.opError("close", net.ErrClosed)
	}
	c.out.closeWrite(false)
	return nil
}

func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

func (c *conn) SetReadDeadline(t time.Time) error {
	if c.in.readClosed() {
		return c.opError("set", net.ErrClosed)
	}
	c.in.setReadDeadline(t)
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	if c.in.readClosed() {
		return c.opError("set", net.ErrClosed)
	}
	c.out.setWriteDeadline(t)
	return nil
}

// fail ends the connection at this end with err: RST arrives (after the data,
// and not through silence) or, when now is set, this end gives up by itself.
func (c *conn) fail(err error, now bool) {
	c.in.failRead(err, now)
	c.out.failWrite(err, now)
}

// release forgets the connection in its interface, the network's count and its process.
func (c *conn) release() {
	n := c.net
	n.mu.Lock()
	c.releaseLocked()
	n.mu.Unlock()
	c.sockets.remove(c)
}

func (c *conn) releaseLocked() {
	s := c.stack
	if _, ok := s.conns[c]; !ok {
		return
	}
	delete(s.conns, c)
	c.net.conns--
	if s.down && s != c.peer {
		s.lost = append(s.lost, c.other)
	} else if node := s.nodeLocked(); node.cut && !s.reachesLocked(c.peer) {
		node.lost = append(node.lost, c.other)
	}
	if c.port != 0 {
		delete(s.ports, c.port)
		s.connsOut--
	} else {
		s.connsIn--
	}
}

func (c *conn) opError(op string, err error) error {
	if errno, ok := err.(syscall.Errno); ok {
		err = os.NewSyscallError(op, errno)
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}
