package pantry

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"time"
)

// feed sends a replica everything that there is, then every write.
func (r *redis) feed(ctx context.Context, c net.Conn, out *bufio.Writer) {
	queue := make(chan []string, redisQueue)
	r.mu.Lock()
	var all [][]string
	for _, key := range slices.Sorted(maps.Keys(r.keys)) {
		all = append(all, r.keys[key].commands(key, r.p.Clock.Now())...)
	}
	r.replicas[queue] = true
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.replicas, queue)
		r.mu.Unlock()
	}()
	r.say("M", "Replica %s asks for synchronization", c.RemoteAddr())
	writeCommand(out, []string{"FLUSHALL"})
	for _, cmd := range all {
		writeCommand(out, cmd)
	}
	gone := make(chan struct{})
	go func() { // a replica sends nothing: reading ends when it has left, or at the end of serve
		defer close(gone)
		io.Copy(io.Discard, c)
	}()
	defer func() { c.Close(); <-gone }()
	for out.Flush() == nil {
		select {
		case cmd, ok := <-queue:
			if !ok {
				return // it lags too far behind; it will come again
			}
			writeCommand(out, cmd)
		case <-gone:
			return
		case <-ctx.Done():
			return
		}
	}
}

// follow keeps this replica in step with its leader.
func (r *redis) follow(ctx context.Context) {
	for ctx.Err() == nil {
		err := r.followOnce(ctx)
		r.mu.Lock()
		r.linked = false
		r.mu.Unlock()
		if ctx.Err() == nil {
			r.say("S", "Error condition on socket for SYNC: %v", err)
		}
		t := r.p.Clock.NewTimer(time.Second)
		select {
		case <-t.C():
		case <-ctx.Done():
			t.Stop()
		}
	}
}

func (r *redis) followOnce(ctx context.Context) error {
	r.say("S", "Connecting to MASTER %s", r.leader)
	dctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	c, err := r.p.Net.DialContext(dctx, "tcp", r.leader)
	cancel()
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	r.say("S", "MASTER <-> REPLICA sync started")
	if _, err := io.WriteString(c, "*1\r\n$4\r\nSYNC\r\n"); err != nil {
		return err
	}
	for in, first := bufio.NewReader(c), true; ; first = false {
		cmd, err := readCommand(in)
		if err != nil {
			return err
		}
		if len(cmd) == 0 {
			continue
		}
		if e, refused := strings.CutPrefix(cmd[0], "-"); refused {
			return errors.New(e)
		}
		if first {
			r.say("S", "MASTER <-> REPLICA sync: Finished with success")
		}
		r.mu.Lock()
		r.linked = true
		room := r.evictFor(cmd, redisBytes, "noeviction")
		if room {
			r.execute(strings.ToUpper(cmd[0]), cmd)
		}
		r.mu.Unlock()
		if !room {
			return errors.New("the leader sends more than fits into memory")
		}
	}
}
