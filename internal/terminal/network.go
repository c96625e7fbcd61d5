package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// brokerClient is a child's way to the network.
type brokerClient struct {
	conn *net.UnixConn
	mu   sync.Mutex
	next uint64
	wait map[uint64]chan brokerReply
}

type brokerReply struct {
	brokerAnswer
	conn net.Conn
}

// newBrokerClient uses the inherited socket.
func newBrokerClient(f *os.File) (*brokerClient, error) {
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	f.Close()
	b := &brokerClient{conn: c.(*net.UnixConn), wait: map[uint64]chan brokerReply{}}
	go b.receive()
	return b, nil
}

func (b *brokerClient) receive() {
	buf, oob := make([]byte, 16<<10), make([]byte, 256)
	for {
		n, oobn, _, _, err := b.conn.ReadMsgUnix(buf, oob)
		if err != nil {
			return
		}
		var r brokerReply
		if json.Unmarshal(buf[:n], &r.brokerAnswer) != nil {
			continue
		}
		r.conn = passedConn(oob[:oobn])
		b.mu.Lock()
		ch := b.wait[r.ID]
		delete(b.wait, r.ID)
		b.mu.Unlock()
		if ch != nil {
			ch <- r
		} else if r.conn != nil {
			r.conn.Close()
		}
	}
}

// passedConn takes the connection out of a control message; nil when there is none.
func passedConn(oob []byte) net.Conn {
	msgs, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	var conn net.Conn
	for _, m := range msgs {
		fds, err := syscall.ParseUnixRights(&m)
		if err != nil {
			continue
		}
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
			f := os.NewFile(uintptr(fd), "conn")
			if conn == nil {
				conn, _ = net.FileConn(f)
			}
			f.Close()
		}
	}
	return conn
}

func (b *brokerClient) ask(ctx context.Context, req brokerRequest) (brokerReply, error) {
	ch := make(chan brokerReply, 1)
	b.mu.Lock()
	b.next++
	req.ID = b.next
	if end, ok := ctx.Deadline(); ok {
		req.Millis = max(1, time.Until(end).Milliseconds())
	}
	b.wait[req.ID] = ch
	b.mu.Unlock()
	forget := func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.wait, req.ID)
	}
	msg, err := json.Marshal(req)
	if err == nil {
		_, err = b.conn.Write(msg)
	}
	if err != nil {
		forget()
		return brokerReply{}, err
	}
	select {
	case r := <-ch:
		return r, r.failure(req)
	case <-ctx.Done():
		forget()
		select {
		case r := <-ch:
			if r.conn != nil {
				r.conn.Close()
			}
		default:
		}
		return brokerReply{}, ctx.Err()
	}
}

// failure rebuilds the network error that the server met.
func (r brokerReply) failure(req brokerRequest) error {
	op := func(err error) error { return &net.OpError{Op: "dial", Net: req.Network, Err: err} }
	switch r.Kind {
	case "":
		return nil
	case "name":
		host, _, err := net.SplitHostPort(req.Address)
		if err != nil {
			host = req.Address
		}
		return &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	case "refused":
		return op(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	case "unreachable":
		return op(os.NewSyscallError("connect", syscall.EHOSTUNREACH))
	case "timeout":
		return op(os.ErrDeadlineExceeded)
	}
	return op(errors.New(r.Text))
}

// dial opens a connection inside the cluster's network.
func (b *brokerClient) dial(ctx context.Context, network, address string) (net.Conn, error) {
	r, err := b.ask(ctx, brokerRequest{Op: opDial, Network: network, Address: address})
	if err == nil && r.conn == nil {
		err = errors.New("no connection came")
	}
	return r.conn, err
}

// dialStreet opens a connection as somebody outside of the cluster.
func (b *brokerClient) dialStreet(ctx context.Context, address string) (net.Conn, error) {
	return b.dial(ctx, networkStreet, address)
}

// dialAPI opens a connection to the API server.
func (b *brokerClient) dialAPI(ctx context.Context) (net.Conn, error) {
	r, err := b.ask(ctx, brokerRequest{Op: opAPI})
	if err == nil && r.conn == nil {
		err = errors.New("no connection came")
	}
	return r.conn, err
}

// dialLab opens a connection for one request of package operate.
func (b *brokerClient) dialLab(ctx context.Context) (net.Conn, error) {
	r, err := b.ask(ctx, brokerRequest{Op: opLab})
	if err == nil && r.conn == nil {
		err = errors.New("no connection came")
	}
	return r.conn, err
}

func (b *brokerClient) lookup(ctx context.Context, name string) ([]string, error) {
	r, err := b.ask(ctx, brokerRequest{Op: opLookup, Address: name})
	return r.Addrs, err
}

// bridge listens on a loopback port and carries each connection to the API
// server: client-go's streaming transports can't be given a dialer.
type bridge struct {
	l     net.Listener
	b     *brokerClient
	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func newBridge(b *brokerClient) (*bridge, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	br := &bridge{l: l, b: b, conns: map[net.Conn]struct{}{}}
	go br.serve()
	return br, nil
}

// reset closes the connections that are open now.
func (br *bridge) reset() {
	br.mu.Lock()
	defer br.mu.Unlock()
	for c := range br.conns {
		c.Close()
	}
}

func (br *bridge) addr() *net.TCPAddr { return br.l.Addr().(*net.TCPAddr) }

func (br *bridge) serve() {
	for {
		c, err := br.l.Accept()
		if err != nil {
			return
		}
		go br.carry(c)
	}
}

func (br *bridge) carry(c net.Conn) {
	defer c.Close()
	api, err := br.b.dialAPI(context.Background())
	if err != nil {
		return
	}
	defer api.Close()
	br.mu.Lock()
	br.conns[c] = struct{}{}
	br.mu.Unlock()
	defer func() {
		br.mu.Lock()
		delete(br.conns, c)
		br.mu.Unlock()
	}()
	var wg sync.WaitGroup
	wg.Go(func() { carry(api, c) })
	carry(c, api)
	wg.Wait()
}
