package web

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"kubistro/internal/lab"
)

// Limits keep one learner from taking what others need.
type Limits struct {
	Requests      rate.Limit // API requests a second and learner
	RequestBurst  int
	Heavy         rate.Limit // requests that start work on a cluster (open, reset, solve, kubeconfig)
	HeavyBurst    int
	NewLearners   rate.Limit // first visits a second and address
	NewBurst      int
	Sockets       int   // open WebSockets and event streams of a learner
	SocketMessage int64 // bytes of one message from the browser
	Messages      rate.Limit
	MessageBurst  int
	SocketBytes   rate.Limit // bytes a second that all WebSockets of a learner may send
	SocketBurst   int
	Body          int64         // bytes of a JSON body
	FileBody      int64         // bytes of a file
	BodyTime      time.Duration // in which a body has to arrive
	AnswerTime    time.Duration // in which a client has to take each piece of an answer
}

// DefaultLimits are generous for a person and tight for a loop.
func DefaultLimits() Limits {
	return Limits{
		Requests: 30, RequestBurst: 120,
		Heavy: 1, HeavyBurst: 12,
		NewLearners: 1, NewBurst: 200, // a class behind one address comes at once
		Sockets: 24, SocketMessage: 64 << 10,
		Messages: 200, MessageBurst: 600,
		SocketBytes: 256 << 10, SocketBurst: 8 << 20, // a paste of 5 MB at once
		Body: 64 << 10, FileBody: 1 << 20,
		BodyTime: time.Minute, AnswerTime: 30 * time.Second,
	}
}

// maxBuckets bounds the memory of the limiter; the longest unused bucket goes first.
const maxBuckets = 20_000

// limiter holds a token bucket per learner and class of request.
type limiter struct {
	limits Limits
	now    func() time.Time

	mu      sync.Mutex
	buckets map[string]*bucket
	sockets map[lab.LearnerID]int
}

type bucket struct {
	*rate.Limiter
	used time.Time
}

func newLimiter(l Limits, now func() time.Time) *limiter {
	return &limiter{limits: l, now: now, buckets: map[string]*bucket{}, sockets: map[lab.LearnerID]int{}}
}

// allow takes one token of a bucket.
func (l *limiter) allow(class, who string, limit rate.Limit, burst int) bool {
	return l.bucket(class, who, limit, burst).AllowN(l.now(), 1)
}

// bucket is the one of a class and learner.
func (l *limiter) bucket(class, who string, limit rate.Limit, burst int) *bucket {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	key := class + " " + who
	b := l.buckets[key]
	if b == nil {
		if len(l.buckets) >= maxBuckets {
			l.prune(now)
		}
		b = &bucket{Limiter: rate.NewLimiter(limit, burst)}
		l.buckets[key] = b
	}
	b.used = now
	return b
}

// prune forgets the buckets that have filled up again, and all when that isn't enough.
func (l *limiter) prune(now time.Time) {
	for key, b := range l.buckets {
		if now.Sub(b.used) > time.Minute {
			delete(l.buckets, key)
		}
	}
	if len(l.buckets) >= maxBuckets {
		clear(l.buckets)
	}
}

// socket counts an open connection; release must be called when it has ended.
func (l *limiter) socket(who lab.LearnerID) (release func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sockets[who] >= l.limits.Sockets {
		return nil, false
	}
	l.sockets[who]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.sockets[who]--; l.sockets[who] <= 0 {
			delete(l.sockets, who)
		}
	}, true
}

var (
	errTooFast = lab.Fail(lab.CodeBusy,
		"請求太頻繁了，請稍等幾秒再試。",
		"That was too many requests in a short time. Wait a few seconds and try again.")
	errTooManySockets = lab.Fail(lab.CodeBusy,
		"你開啟的分頁或終端機太多了，請關掉一些再試。",
		"Too many pages or terminals are open at once. Close some and try again.")
)
