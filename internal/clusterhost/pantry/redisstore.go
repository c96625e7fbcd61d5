package pantry

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// redisValue is what a key holds; one of the four is set, text where kind is "string".
type redisValue struct {
	kind   string
	text   string
	list   []string
	hash   map[string]string
	set    map[string]bool
	end    time.Time // zero: never
	recent int64
}

// commands make the value anew at a replica.
func (v *redisValue) commands(key string, now time.Time) [][]string {
	var out [][]string
	switch v.kind {
	case "string":
		out = append(out, []string{"SET", key, v.text})
	case "list":
		for part := range slices.Chunk(v.list, redisArgs/2) {
			out = append(out, append([]string{"RPUSH", key}, part...))
		}
	case "hash":
		for _, f := range slices.Sorted(maps.Keys(v.hash)) {
			out = append(out, []string{"HSET", key, f, v.hash[f]})
		}
	case "set":
		for part := range slices.Chunk(slices.Sorted(maps.Keys(v.set)), redisArgs/2) {
			out = append(out, append([]string{"SADD", key}, part...))
		}
	}
	if !v.end.IsZero() {
		out = append(out, []string{"PEXPIRE", key, strconv.FormatInt(max(v.end.Sub(now).Milliseconds(), 1), 10)})
	}
	return out
}

// redisSample is how many keys are looked at to find one that hasn't been used for long.
const redisSample = 16

// do runs a client's command.
func (r *redis) do(args []string) any {
	name := strings.ToUpper(args[0])
	c, known := r.known(name)
	switch n := len(args) - 1; {
	case !known:
		return redisError(fmt.Sprintf("ERR unknown command '%s', with args beginning with: ", args[0]))
	case c.args > 0 && n != c.args, c.args < 0 && n < -c.args, c.args == 0 && n > 0 && name == "DBSIZE":
		return redisError(fmt.Sprintf("ERR wrong number of arguments for '%s' command", strings.ToLower(args[0])))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commands++
	if !c.write {
		return c.run(r, args[1:])
	}
	if r.leader != "" {
		return redisError("READONLY You can't write against a read only replica.")
	}
	if !r.makeRoom(args) {
		return redisError("OOM command not allowed when used memory > 'maxmemory'.")
	}
	answer := r.execute(name, args)
	for queue := range r.replicas {
		select {
		case queue <- args:
		default: // it lags too far behind: it has to begin anew
			delete(r.replicas, queue)
			close(queue)
		}
	}
	return answer
}

var redisTable = sync.OnceValue(redisCommands)

func (r *redis) known(name string) (redisCommand, bool) {
	c, ok := redisTable()[name]
	return c, ok
}

// execute runs a command that is known to be right; the caller holds mu.
func (r *redis) execute(name string, args []string) any {
	c, ok := r.known(name)
	if !ok || len(args)-1 < max(c.args, -c.args) {
		return nil
	}
	size := func() int64 {
		if len(args) < 2 || name == "DEL" { // it accounts by itself
			return 0
		}
		if v := r.find(args[1]); v != nil {
			return v.size(args[1])
		}
		return 0
	}
	before := size()
	answer := c.run(r, args[1:])
	r.used += size() - before
	r.p.Usage.AddMemory(r.used - r.told)
	r.told = r.used
	return answer
}

// drop takes a key away.
func (r *redis) drop(key string) {
	if v := r.keys[key]; v != nil {
		r.used -= v.size(key)
		delete(r.keys, key)
	}
}

func (r *redis) flush([]string) any {
	clear(r.keys)
	r.used = 0
	return redisStatus("OK")
}

func (v *redisValue) size(key string) int64 {
	n := len(key) + len(v.text) + 64
	for _, x := range v.list {
		n += len(x) + 16
	}
	for f, x := range v.hash {
		n += len(f) + len(x) + 32
	}
	for x := range v.set {
		n += len(x) + 32
	}
	return int64(n)
}

// makeRoom evicts as the configuration says until a write fits, and reports whether it does.
// Beyond what maxmemory says there is a bound that no configuration lifts.
func (r *redis) makeRoom(args []string) bool {
	limit := int64(redisBytes)
	if n, err := strconv.ParseInt(r.config["maxmemory"], 10, 64); err == nil && n > 0 {
		limit = min(limit, n)
	}
	return r.evictFor(args, limit, r.config["maxmemory-policy"])
}

// evictFor is makeRoom for a limit and a policy.
func (r *redis) evictFor(args []string, limit int64, policy string) bool {
	need := int64(64)
	for _, a := range args {
		need += int64(len(a)) + 32
	}
	for r.used+need > limit {
		victim, oldest, seen := "", int64(0), 0
		for k, v := range r.keys { // a sample, as the real one looks at: a map has no order
			if seen++; seen > redisSample && victim != "" {
				break
			}
			if (strings.HasPrefix(policy, "allkeys-") || strings.HasPrefix(policy, "volatile-") && !v.end.IsZero()) && (victim == "" || v.recent < oldest) {
				victim, oldest = k, v.recent
			}
		}
		if victim == "" {
			return strings.EqualFold(args[0], "DEL") || strings.HasPrefix(strings.ToUpper(args[0]), "FLUSH")
		}
		r.drop(victim)
	}
	return true
}

// find gives a key's value if there is one, and takes it away when its time is over.
func (r *redis) find(key string) *redisValue {
	v := r.keys[key]
	if v == nil {
		return nil
	}
	if !v.end.IsZero() && !r.p.Clock.Now().Before(v.end) {
		r.drop(key)
		return nil
	}
	r.clock++
	v.recent = r.clock
	return v
}

// value is find for a kind of value; a missing one is made on demand.
func (r *redis) value(key, kind string, create bool) (v *redisValue, wrong bool) {
	v = r.find(key)
	switch {
	case v != nil:
		return v, v.kind != kind
	case !create:
		return nil, false
	}
	r.clock++
	v = &redisValue{kind: kind, recent: r.clock}
	switch kind {
	case "hash":
		v.hash = map[string]string{}
	case "set":
		v.set = map[string]bool{}
	}
	r.keys[key] = v
	return v, false
}

// count is how many f is true for.
func (r *redis) count(names []string, f func(string) bool) int64 {
	n := int64(0)
	for _, x := range names {
		if f(x) {
			n++
		}
	}
	return n
}

func (r *redis) setCommand(a []string) any {
	v := &redisValue{kind: "string", text: a[1]}
	there := r.find(a[0]) != nil
	for k := 2; k < len(a); k++ {
		switch option := strings.ToUpper(a[k]); {
		case option == "NX" && there, option == "XX" && !there:
			return nil
		case option == "NX", option == "XX":
		case (option == "EX" || option == "PX") && k+1 < len(a):
			k++
			n, err := strconv.ParseInt(a[k], 10, 40)
			if err != nil || n <= 0 {
				return redisError("ERR invalid expire time in 'set' command")
			}
			v.end = r.p.Clock.Now().Add(time.Duration(n) * map[string]time.Duration{"EX": time.Second, "PX": time.Millisecond}[option])
		default:
			return redisError("ERR syntax error")
		}
	}
	r.clock++
	v.recent = r.clock
	r.keys[a[0]] = v
	return redisStatus("OK")
}

func (r *redis) configCommand(a []string) any {
	switch sub := strings.ToUpper(a[0]); {
	case sub == "GET" && len(a) == 2:
		out := []any{}
		for _, name := range slices.Sorted(maps.Keys(r.config)) {
			if match, err := path.Match(strings.ToLower(a[1]), name); err == nil && match {
				out = append(out, name, r.config[name])
			}
		}
		return out
	case sub == "SET" && len(a) == 3:
		if err := r.set(a[1], a[2]); err != nil {
			return redisError(fmt.Sprintf("ERR CONFIG SET failed (possibly related to argument '%s') - %v", a[1], err))
		}
		return redisStatus("OK")
	}
	return redisError("ERR unknown subcommand or wrong number of arguments for '" + a[0] + "'. Try CONFIG HELP.")
}

func (r *redis) info() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Server\r\nredis_version:%s\r\nos:Kubistro\r\n\r\n# Clients\r\nconnected_clients:%d\r\n\r\n# Memory\r\nused_memory:%d\r\nmaxmemory:%s\r\nmaxmemory_policy:%s\r\n\r\n# Stats\r\ntotal_commands_processed:%d\r\n\r\n# Replication\r\n",
		redisVersion, len(r.clients), r.used, r.config["maxmemory"], r.config["maxmemory-policy"], r.commands)
	if r.leader == "" {
		fmt.Fprintf(&b, "role:master\r\nconnected_slaves:%d\r\n", len(r.replicas))
	} else {
		host, port, _ := strings.Cut(r.leader, ":")
		fmt.Fprintf(&b, "role:slave\r\nmaster_host:%s\r\nmaster_port:%s\r\nmaster_link_status:%s\r\n", host, port, map[bool]string{true: "up", false: "down"}[r.linked])
	}
	fmt.Fprintf(&b, "\r\n# Keyspace\r\n")
	if len(r.keys) > 0 {
		fmt.Fprintf(&b, "db0:keys=%d,expires=0,avg_ttl=0\r\n", len(r.keys))
	}
	return b.String()
}
