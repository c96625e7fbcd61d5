package clustertest

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"kubistro/internal/cluster"
	"kubistro/internal/lab"
)

// memoryInstance is a running cluster of a Memory driver.
type memoryInstance struct {
	id      string
	process *process
	disk    *objects
}

var _ cluster.Instance = (*memoryInstance)(nil)

func (i *memoryInstance) ID() string            { return i.id }
func (i *memoryInstance) Lost() <-chan struct{} { return i.process.lost }

// REST reaches the API server, which speaks plain HTTP.
func (i *memoryInstance) REST() *rest.Config {
	return &rest.Config{Host: "http://memory", QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"},
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return i.DialAPI(ctx) }}
}

func (i *memoryInstance) DialAPI(ctx context.Context) (net.Conn, error) {
	return i.process.api.dial(ctx)
}

// Dial connects to Pods: they listen on port 80 only, and addresses that no Pod has keep silent.
func (i *memoryInstance) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	fail := func(err error) error { return &net.OpError{Op: "dial", Net: network, Err: err} }
	select {
	case <-i.process.ended:
		return nil, errEnded
	default:
	}
	switch pod := i.disk.podWithIP(host); {
	case net.ParseIP(host) == nil:
		return nil, fail(&net.DNSError{Err: "no such host", Name: host, IsNotFound: true})
	case pod == "":
		select {
		case <-ctx.Done():
		case <-i.process.ended:
		}
		return nil, fail(os.ErrDeadlineExceeded)
	case port != "80":
		return nil, fail(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	default:
		return i.process.api.pods.dial(ctx)
	}
}

// answerAsPod is what a Pod says to anybody.
func answerAsPod(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "Hostname: a Pod\n") // who has gone doesn't want it
}

// Audit streams the writes.
func (i *memoryInstance) Audit(ctx context.Context, after uint64) (<-chan lab.AuditEntry, error) {
	out := make(chan lab.AuditEntry)
	go func() {
		defer close(out)
		for {
			entries, more := i.disk.audited(after)
			for _, e := range entries {
				select {
				case out <- e:
					after = e.N
				case <-ctx.Done():
					return
				case <-i.process.ended:
					return
				}
			}
			select {
			case <-more:
			case <-ctx.Done():
				return
			case <-i.process.ended:
				return
			}
		}
	}()
	return out, nil
}

// Usage pretends.
func (i *memoryInstance) Usage(context.Context) (cluster.Usage, error) {
	select {
	case <-i.process.ended:
		return cluster.Usage{}, errEnded
	default:
		return cluster.Usage{PSSBytes: 1 << 20, CPU: time.Millisecond, DiskBytes: 1 << 10}, nil
	}
}
