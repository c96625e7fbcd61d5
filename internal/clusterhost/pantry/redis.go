package pantry

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of a redis: everything is really in the host's memory.
const (
	redisBytes   = 8 << 20
	redisClients = 128
	redisArgs    = 1024
	redisBulk    = 1 << 20
	redisQueue   = 4096 // writes that a replica may lag behind
	redisCPU     = 20 * time.Microsecond
)

const redisVersion = "7.4.2"

// redis is a key-value server that speaks Redis' protocol: strings, lists, hashes and
// sets, expiry, configuration, and replicas of its own kind. It persists nothing.
type redis struct {
	p    *Process
	log  *lineWriter
	rate *rate.Limiter // of the commands that all shells and servers of the cluster may run

	mu       sync.Mutex
	keys     map[string]*redisValue
	used     int64 // bytes of keys and values
	told     int64 // of them, what the container's memory has
	clock    int64 // counts uses, for eviction
	config   map[string]string
	clients  map[net.Conn]bool
	replicas map[chan []string]bool
	leader   string // host:port; "" is a leader itself
	linked   bool   // to its leader
	commands int64
}

// redisProgram is redis-server with a configuration file, options, or both.
func redisProgram(limit *rate.Limiter) Program {
	return func(ctx context.Context, p *Process) int {
		r := newRedis(p, limit)
		if err := r.configure(p.Args[1:]); err != nil {
			fmt.Fprintf(p.Stderr, "\n*** FATAL CONFIG FILE ERROR (Redis %s) ***\n%v\n", redisVersion, err)
			return 1
		}
		return r.run(ctx)
	}
}

// redisFollower is a replica of the leader that the guestbook's Service names.
func redisFollower(limit *rate.Limiter) Program {
	return func(ctx context.Context, p *Process) int {
		r := newRedis(p, limit)
		leader := "redis-leader"
		if p.Getenv("GET_HOSTS_FROM") == "env" {
			leader = p.Getenv("REDIS_LEADER_SERVICE_HOST")
		}
		r.leader = net.JoinHostPort(leader, "6379")
		return r.run(ctx)
	}
}

func newRedis(p *Process, limit *rate.Limiter) *redis {
	return &redis{
		p: p, rate: limit, log: &lineWriter{w: p.Stdout}, keys: map[string]*redisValue{}, clients: map[net.Conn]bool{}, replicas: map[chan []string]bool{},
		config: map[string]string{
			"maxmemory": "0", "maxmemory-policy": "noeviction", "port": "6379", "appendonly": "no", "save": "3600 1 300 100 60 10000",
			"requirepass": "", "timeout": "0", "databases": "1", "dir": "/data", "bind": "* -::*",
		},
	}
}

// configure reads `redis-server [FILE] [--name value ...]`.
func (r *redis) configure(args []string) error {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		f, err := r.p.FS.OpenFile(abs(r.p, args[0]), readOnly, 0)
		if err != nil {
			return fmt.Errorf("Fatal error, can't open config file '%s': No such file or directory", args[0])
		}
		text, err := io.ReadAll(io.LimitReader(f, redisBulk))
		f.Close()
		if err != nil {
			return err
		}
		for n, line := range strings.Split(string(text), "\n") {
			words := strings.Fields(line)
			if len(words) == 0 || strings.HasPrefix(words[0], "#") {
				continue
			}
			if err := r.set(words[0], strings.Trim(strings.Join(words[1:], " "), `"'`)); err != nil {
				return fmt.Errorf("Reading the configuration file, at line %d\n>>> '%s'\n%w", n+1, line, err)
			}
		}
		args = args[1:]
	}
	for k := 0; k < len(args); {
		name, ok := strings.CutPrefix(args[k], "--")
		if !ok {
			return fmt.Errorf("unexpected argument '%s'", args[k])
		}
		k++
		var words []string
		for ; k < len(args) && !strings.HasPrefix(args[k], "--"); k++ {
			words = append(words, args[k])
		}
		if err := r.set(name, strings.Join(words, " ")); err != nil {
			return err
		}
	}
	return nil
}

// set changes a parameter. Unknown ones are kept: most tune what isn't here.
func (r *redis) set(name, value string) error {
	name = strings.ToLower(name)
	switch name {
	case "maxmemory":
		n, err := redisSize(value)
		if err != nil {
			return errors.New("argument must be a memory value")
		}
		value = strconv.FormatInt(n, 10)
	case "maxmemory-policy":
		if !slices.Contains([]string{"noeviction", "allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"}, value) {
			return errors.New("argument(s) must be one of the following: volatile-lru, volatile-lfu, volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction")
		}
	case "port":
		if n, err := strconv.Atoi(value); err != nil || n < 1 || n > 65535 {
			return errors.New("Invalid port")
		}
	case "replicaof", "slaveof":
		host, port, ok := strings.Cut(value, " ")
		if !ok {
			return errors.New("wrong number of arguments")
		}
		r.leader = net.JoinHostPort(host, strings.TrimSpace(port))
		return nil
	}
	if len(r.config) > 500 || len(value) > 4096 {
		return errors.New("too many parameters")
	}
	r.config[name] = value
	return nil
}

// redisSize reads 2mb, 1g and 1000000.
func redisSize(s string) (int64, error) {
	s = strings.ToLower(s)
	for _, u := range []struct {
		suffix string
		factor int64
	}{{"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30}, {"k", 1000}, {"m", 1e6}, {"g", 1e9}, {"b", 1}, {"", 1}} {
		if digits, ok := strings.CutSuffix(s, u.suffix); ok {
			n, err := strconv.ParseInt(digits, 10, 40)
			if err != nil || n < 0 {
				return 0, fmt.Errorf("%q is no size", s)
			}
			return n * u.factor, nil
		}
	}
	return 0, nil
}

func (r *redis) option(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.config[name]
}

func (r *redis) say(role, format string, args ...any) {
	r.log.printf("1:%s %s * "+format, append([]any{role, r.p.Clock.Now().UTC().Format("02 Jan 2006 15:04:05.000")}, args...)...)
}

func (r *redis) run(ctx context.Context) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	role := "M"
	if r.leader != "" {
		role = "S"
	}
	r.say("C", "oO0OoO0OoO0Oo Redis is starting oO0OoO0OoO0Oo")
	r.say("C", "Redis version=%s, bits=64, a program of Kubistro that speaks its protocol", redisVersion)
	l, err := r.p.Net.Listen(":" + r.config["port"])
	if err != nil {
		r.say(role, "Warning: Could not create server TCP listening socket *:%s: bind: %s", r.config["port"], listenError(err))
		return 1
	}
	var all sync.WaitGroup
	all.Go(func() { r.accept(ctx, l, &all) })
	if r.leader != "" {
		all.Go(func() { r.follow(ctx) })
	}
	r.say(role, "Ready to accept connections tcp")
	s, ok := r.p.terminated(ctx)
	cancel()
	l.Close()
	r.mu.Lock()
	for c := range r.clients {
		c.Close()
	}
	r.mu.Unlock()
	all.Wait()
	r.p.Usage.AddMemory(-r.told)
	if !ok {
		return exitSigkill
	}
	r.say(role, "User requested shutdown... (%s)", signalName(s))
	r.say(role, "Redis is now ready to exit, bye bye...")
	return 0
}

func (r *redis) accept(ctx context.Context, l net.Listener, all *sync.WaitGroup) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		room := len(r.clients) < redisClients && ctx.Err() == nil
		if room {
			r.clients[c] = true
		}
		r.mu.Unlock()
		if !room {
			io.WriteString(c, "-ERR max number of clients reached\r\n")
			c.Close()
			continue
		}
		all.Go(func() {
			defer func() {
				c.Close()
				r.mu.Lock()
				delete(r.clients, c)
				r.mu.Unlock()
			}()
			r.serve(ctx, c)
		})
	}
}

// serve answers one client until it leaves.
func (r *redis) serve(ctx context.Context, c net.Conn) {
	in, out := bufio.NewReader(c), bufio.NewWriter(c)
	known := r.option("requirepass") == ""
	for {
		args, err := readCommand(in)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				fmt.Fprintf(out, "-ERR Protocol error: %v\r\n", err)
				out.Flush()
			}
			return
		}
		if len(args) == 0 {
			continue
		}
		if r.p.Usage.Work(ctx, redisCPU) != nil || r.rate.Wait(ctx) != nil {
			return
		}
		name := strings.ToUpper(args[0])
		var answer any
		switch {
		case name == "QUIT":
			io.WriteString(out, "+OK\r\n")
			out.Flush()
			return
		case name == "AUTH":
			answer = redisError("ERR Client sent AUTH, but no password is set. Did you mean AUTH <username> <password>?")
			if want := r.option("requirepass"); want != "" {
				if answer = redisError("WRONGPASS invalid username-password pair or user is disabled."); args[len(args)-1] == want {
					known, answer = true, redisStatus("OK")
				}
			}
		case !known:
			answer = redisError("NOAUTH Authentication required.")
		case name == "SYNC":
			r.feed(ctx, c, out)
			return
		default:
			answer = r.do(args)
		}
		writeAnswer(out, answer)
		if in.Buffered() == 0 && out.Flush() != nil {
			return
		}
	}
}
