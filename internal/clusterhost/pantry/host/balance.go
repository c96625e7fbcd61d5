package host

import (
	"sync"
	"time"
)

// server is an address that requests go to.
type server struct {
	scheme  string
	address string // host:port
}

func (s server) String() string { return s.scheme + "://" + s.address }

// balancer takes the servers of a Service in turn. It is safe for concurrent use.
type balancer struct {
	servers        []server
	passHostHeader bool

	mu   sync.Mutex
	next int
}

// pick returns the next server; ok is false when there is none.
func (b *balancer) pick() (s server, ok bool) {
	if len(b.servers) == 0 {
		return server{}, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s = b.servers[b.next%len(b.servers)]
	b.next++
	return s, true
}

// backend is one of an action's weighted choices.
type backend struct {
	weight   int
	balancer *balancer // nil: what the reference names doesn't exist, answer 500
	filters  *filters  // of this backend only
	current  int
}

// action is what a rule does.
type action struct {
	filters  *filters
	fail     int // status of every answer, with nothing behind it
	backends []*backend
	retries  int           // attempts in all when greater than 1
	interval time.Duration // before the first further attempt; doubles
	timeout  time.Duration // of a request; 0: none
	perTry   time.Duration // of the answer of one server

	mu sync.Mutex
}

// choose takes a backend by smooth weighted round robin: ten choices of 9 and 1
// are nine and one, well mixed. Nil: all weights are zero.
func (a *action) choose() *backend {
	a.mu.Lock()
	defer a.mu.Unlock()
	var best *backend
	total := 0
	for _, b := range a.backends {
		if b.weight <= 0 {
			continue
		}
		total += b.weight
		b.current += b.weight
		if best == nil || b.current > best.current {
			best = b
		}
	}
	if best != nil {
		best.current -= total
	}
	return best
}
