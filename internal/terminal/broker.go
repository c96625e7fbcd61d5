package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"kubistro/internal/terminal/operate"
)

const (
	maxConns    = 64 // connections of one child at once
	dialTimeout = 60 * time.Second
)

// networkStreet is the network of guests: what can be reached from outside of the cluster.
const networkStreet = "street"

// Operations that a child can ask for.
const (
	opAPI    = "api"    // a raw connection to the API server's TLS port
	opDial   = "dial"   // a connection inside the cluster's network
	opLookup = "lookup" // a cluster DNS name
	opLab    = "lab"    // a connection for one request of package operate
)

type brokerRequest struct {
	ID      uint64 `json:"id"`
	Op      string `json:"op"`
	Network string `json:"network,omitempty"`
	Address string `json:"address,omitempty"`
	Millis  int64  `json:"millis,omitempty"` // how long the child waits; 0: dialTimeout
}

type brokerAnswer struct {
	ID    uint64   `json:"id"`
	Kind  string   `json:"kind,omitempty"` // of a failure: refused, timeout, unreachable, name, busy, other
	Text  string   `json:"text,omitempty"`
	Addrs []string `json:"addrs,omitempty"`
}

// broker opens connections for a child and hands them over as file
// descriptors. It is the only network that a child has: what isn't the API
// server or inside the cluster's network can't be asked for.
type broker struct {
	c     Config
	conn  *net.UnixConn
	open  atomic.Int64
	mu    sync.Mutex
	conns map[io.Closer]struct{} // nil after close
	wg    sync.WaitGroup
}

// newBroker makes a broker and the child's end of its socket.
func newBroker(c Config) (*broker, *os.File, error) {
	ours, theirs, err := socketPair(syscall.SOCK_DGRAM)
	if err != nil {
		return nil, nil, err
	}
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return &broker{c: c, conn: conn.(*net.UnixConn), conns: map[io.Closer]struct{}{}}, theirs, nil
}

// serve answers requests until close is called, then waits for all that it started.
func (b *broker) serve(ctx context.Context) {
	defer b.wg.Wait()
	buf := make([]byte, 8<<10)
	for {
		n, err := b.conn.Read(buf)
		if err != nil {
			return
		}
		var req brokerRequest
		if json.Unmarshal(buf[:n], &req) != nil {
			continue
		}
		b.wg.Add(1)
		go func() {
			defer b.wg.Done()
			b.answer(ctx, req)
		}()
	}
}

func (b *broker) answer(ctx context.Context, req brokerRequest) {
	ans := brokerAnswer{ID: req.ID}
	if b.open.Add(1) > maxConns {
		b.open.Add(-1)
		ans.Kind, ans.Text = "busy", "too many connections at once"
		b.send(ans, nil)
		return
	}
	defer b.open.Add(-1)
	if req.Op == opLab && b.c.Cluster != nil {
		b.operate(ctx, ans)
		return
	}
	patience := dialTimeout
	if req.Millis > 0 { // who has left doesn't hold one of the connections
		patience = min(patience, time.Duration(req.Millis)*time.Millisecond)
	}
	dialCtx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var conn net.Conn
	var err error
	switch {
	case req.Op == opAPI && b.c.DialAPI != nil:
		conn, err = b.c.DialAPI(dialCtx)
	case req.Op == opDial && b.c.Dial != nil && (req.Network == "tcp" || req.Network == "udp" || req.Network == networkStreet):
		conn, err = b.c.Dial(dialCtx, req.Network, req.Address)
	case req.Op == opLookup && b.c.LookupHost != nil:
		ans.Addrs, err = b.c.LookupHost(dialCtx, req.Address)
	default:
		err = errors.New("not available")
	}
	if err != nil {
		ans.Kind, ans.Text = failureKind(err), err.Error()
	}
	if conn == nil {
		b.send(ans, nil)
		return
	}
	b.hand(ans, conn)
}

// operate gives the child one end of a socket pair and answers the request that comes over it.
func (b *broker) operate(ctx context.Context, ans brokerAnswer) {
	end := b.pair(ans)
	if end == nil {
		return
	}
	defer end.Close()
	if !b.track(end) {
		return
	}
	defer b.untrack(end)
	operate.Serve(ctx, end, b.c.Cluster)
}

// pair sends one end of a socket pair with an answer and returns the other; nil
// when there are no more.
func (b *broker) pair(ans brokerAnswer) net.Conn {
	ours, theirs, err := socketPair(syscall.SOCK_STREAM)
	if err != nil {
		ans.Kind, ans.Text = "busy", "no more connections"
		b.send(ans, nil)
		return nil
	}
	end, err := net.FileConn(ours)
	ours.Close()
	defer theirs.Close()
	if err != nil {
		return nil
	}
	if err := b.send(ans, theirs); err != nil {
		end.Close()
		return nil
	}
	return end
}

// hand gives the child one end of a socket pair and carries bytes between the
// other end and conn until both directions have ended.
func (b *broker) hand(ans brokerAnswer, conn net.Conn) {
	defer conn.Close()
	end := b.pair(ans)
	if end == nil {
		return
	}
	defer end.Close()
	if !b.track(conn, end) {
		return
	}
	defer b.untrack(conn, end)
	var wg sync.WaitGroup
	wg.Go(func() { carry(conn, end) })
	carry(end, conn)
	wg.Wait()
}

// carry copies from src to dst and passes the end on.
func carry(dst, src net.Conn) {
	_, err := io.Copy(dst, src)
	if half, ok := dst.(interface{ CloseWrite() error }); ok && err == nil {
		half.CloseWrite()
		return
	}
	dst.Close()
	src.Close()
}

func (b *broker) track(cs ...io.Closer) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conns == nil {
		return false
	}
	for _, c := range cs {
		b.conns[c] = struct{}{}
	}
	return true
}

func (b *broker) untrack(cs ...io.Closer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range cs {
		delete(b.conns, c)
	}
}

// send answers, with a file descriptor when f isn't nil.
func (b *broker) send(ans brokerAnswer, f *os.File) error {
	msg, err := json.Marshal(ans)
	if err != nil {
		return err
	}
	var oob []byte
	if f != nil {
		raw, err := f.SyscallConn()
		if err != nil {
			return err
		}
		if err := raw.Control(func(fd uintptr) { oob = syscall.UnixRights(int(fd)) }); err != nil {
			return err
		}
	}
	b.conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
	_, _, err = b.conn.WriteMsgUnix(msg, oob, nil)
	return err
}

// close ends serve and all connections.
func (b *broker) close() {
	b.conn.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.conns {
		c.Close()
	}
	b.conns = nil
}

// failureKind sorts a dial failure into what the learner's tools show.
func failureKind(err error) string {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &dns):
		return "name"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "unreachable"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	}
	// What came through another process has lost its type.
	switch text := err.Error(); {
	case strings.Contains(text, "connection refused"):
		return "refused"
	case strings.Contains(text, "no such host"):
		return "name"
	case strings.Contains(text, "no route to host"), strings.Contains(text, "unreachable"):
		return "unreachable"
	}
	return "other"
}
