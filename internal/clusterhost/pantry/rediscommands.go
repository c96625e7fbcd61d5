package pantry

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

const redisWrongType = redisError("WRONGTYPE Operation against a key holding the wrong kind of value")

// redisCommand is a command with the number of arguments that it needs after its name
// (negative: at least so many), and whether it writes.
type redisCommand struct {
	args  int
	write bool
	run   func(r *redis, a []string) any
}

// redisCommands are what this server knows; a is the arguments after the name.
func redisCommands() map[string]redisCommand {
	ok := redisStatus("OK")
	push := func(front bool) func(*redis, []string) any {
		return func(r *redis, a []string) any {
			v, wrong := r.value(a[0], "list", true)
			if wrong {
				return redisWrongType
			}
			for _, x := range a[1:] {
				if front {
					v.list = slices.Insert(v.list, 0, x)
				} else {
					v.list = append(v.list, x)
				}
			}
			return int64(len(v.list))
		}
	}
	pop := func(front bool) func(*redis, []string) any {
		return func(r *redis, a []string) any {
			v, wrong := r.value(a[0], "list", false)
			if wrong {
				return redisWrongType
			}
			if v == nil {
				return nil
			}
			at := len(v.list) - 1
			if front {
				at = 0
			}
			x := v.list[at]
			if v.list = slices.Delete(v.list, at, at+1); len(v.list) == 0 {
				delete(r.keys, a[0])
			}
			return x
		}
	}
	add := func(sign int64) func(*redis, []string) any {
		return func(r *redis, a []string) any {
			by := int64(1)
			if len(a) > 1 {
				var err error
				if by, err = strconv.ParseInt(a[1], 10, 64); err != nil {
					return redisError("ERR value is not an integer or out of range")
				}
			}
			v, wrong := r.value(a[0], "string", true)
			if wrong {
				return redisWrongType
			}
			n, err := strconv.ParseInt("0"+strings.TrimPrefix(v.text, "-"), 10, 64)
			if err != nil {
				return redisError("ERR value is not an integer or out of range")
			}
			if strings.HasPrefix(v.text, "-") {
				n = -n
			}
			n += sign * by
			v.text = strconv.FormatInt(n, 10)
			return n
		}
	}
	expire := func(unit time.Duration) func(*redis, []string) any {
		return func(r *redis, a []string) any {
			n, err := strconv.ParseInt(a[1], 10, 40)
			if err != nil {
				return redisError("ERR value is not an integer or out of range")
			}
			v := r.find(a[0])
			if v == nil {
				return int64(0)
			}
			v.end = r.p.Clock.Now().Add(time.Duration(n) * unit)
			return int64(1)
		}
	}
	return map[string]redisCommand{
		"PING": {-0, false, func(_ *redis, a []string) any {
			if len(a) > 0 {
				return a[0]
			}
			return redisStatus("PONG")
		}},
		"ECHO": {1, false, func(_ *redis, a []string) any { return a[0] }},
		"SELECT": {1, false, func(_ *redis, a []string) any {
			return map[bool]any{true: ok, false: redisError("ERR DB index is out of range")}[a[0] == "0"]
		}},
		"COMMAND": {-0, false, func(*redis, []string) any { return []any{} }},
		"CLIENT":  {-0, false, func(*redis, []string) any { return ok }},
		"HELLO":   {-0, false, func(*redis, []string) any { return redisError("NOPROTO unsupported protocol version") }},
		"CONFIG":  {-1, false, (*redis).configCommand},
		"INFO":    {-0, false, func(r *redis, _ []string) any { return r.info() }},
		"DBSIZE":  {0, false, func(r *redis, _ []string) any { return int64(len(r.keys)) }},
		"KEYS": {1, false, func(r *redis, a []string) any {
			out := []any{}
			for _, k := range slices.Sorted(maps.Keys(r.keys)) {
				if match, err := path.Match(strings.ReplaceAll(a[0], "/", "\x00"), strings.ReplaceAll(k, "/", "\x00")); err == nil && match && r.find(k) != nil {
					out = append(out, k)
				}
			}
			return out
		}},
		"TYPE": {1, false, func(r *redis, a []string) any {
			if v := r.find(a[0]); v != nil {
				return redisStatus(v.kind)
			}
			return redisStatus("none")
		}},
		"EXISTS": {-1, false, func(r *redis, a []string) any { return r.count(a, func(k string) bool { return r.find(k) != nil }) }},
		"DEL": {-1, true, func(r *redis, a []string) any {
			return r.count(a, func(k string) bool {
				there := r.find(k) != nil
				r.drop(k)
				return there
			})
		}},
		"FLUSHALL": {-0, true, (*redis).flush}, "FLUSHDB": {-0, true, (*redis).flush},
		"TTL": {1, false, func(r *redis, a []string) any {
			switch v := r.find(a[0]); {
			case v == nil:
				return int64(-2)
			case v.end.IsZero():
				return int64(-1)
			default:
				return int64((v.end.Sub(r.p.Clock.Now()) + time.Second - 1) / time.Second)
			}
		}},
		"EXPIRE": {2, true, expire(time.Second)}, "PEXPIRE": {2, true, expire(time.Millisecond)},
		"GET": {1, false, func(r *redis, a []string) any {
			v, wrong := r.value(a[0], "string", false)
			switch {
			case wrong:
				return redisWrongType
			case v == nil:
				return nil
			}
			return v.text
		}},
		"SET": {-2, true, (*redis).setCommand},
		"SETNX": {2, true, func(r *redis, a []string) any {
			if r.find(a[0]) != nil {
				return int64(0)
			}
			r.keys[a[0]] = &redisValue{kind: "string", text: a[1]}
			return int64(1)
		}},
		"APPEND": {2, true, func(r *redis, a []string) any {
			v, wrong := r.value(a[0], "string", true)
			if wrong {
				return redisWrongType
			}
			v.text += a[1]
			return int64(len(v.text))
		}},
		"STRLEN": {1, false, func(r *redis, a []string) any {
			if v, wrong := r.value(a[0], "string", false); wrong {
				return redisWrongType
			} else if v != nil {
				return int64(len(v.text))
			}
			return int64(0)
		}},
		"INCR": {1, true, add(1)}, "DECR": {1, true, add(-1)}, "INCRBY": {2, true, add(1)}, "DECRBY": {2, true, add(-1)},
		"LPUSH": {-2, true, push(true)}, "RPUSH": {-2, true, push(false)}, "LPOP": {1, true, pop(true)}, "RPOP": {1, true, pop(false)},
		"LLEN": {1, false, func(r *redis, a []string) any {
			if v, wrong := r.value(a[0], "list", false); wrong {
				return redisWrongType
			} else if v != nil {
				return int64(len(v.list))
			}
			return int64(0)
		}},
		"LRANGE": {3, false, func(r *redis, a []string) any {
			v, wrong := r.value(a[0], "list", false)
			from, err1 := strconv.Atoi(a[1])
			to, err2 := strconv.Atoi(a[2])
			switch {
			case wrong:
				return redisWrongType
			case err1 != nil || err2 != nil:
				return redisError("ERR value is not an integer or out of range")
			case v == nil:
				return []any{}
			}
			n := len(v.list)
			if from < 0 {
				from = max(from+n, 0)
			}
			if to < 0 {
				to += n
			}
			out := []any{}
			for k := from; k <= min(to, n-1); k++ {
				out = append(out, v.list[k])
			}
			return out
		}},
		"HSET": {-3, true, func(r *redis, a []string) any {
			v, wrong := r.value(a[0], "hash", true)
			if wrong {
				return redisWrongType
			}
			fresh := int64(0)
			for k := 1; k+1 < len(a); k += 2 {
				if _, there := v.hash[a[k]]; !there {
					fresh++
				}
				v.hash[a[k]] = a[k+1]
			}
			return fresh
		}},
		"HGET": {2, false, func(r *redis, a []string) any {
			v, wrong := r.value(a[0], "hash", false)
			if wrong {
				return redisWrongType
			}
			if v != nil {
				if x, there := v.hash[a[1]]; there {
					return x
				}
			}
			return nil
		}},
		"HGETALL": {1, false, func(r *redis, a []string) any {
			v, wrong := r.value(a[0], "hash", false)
			if wrong {
				return redisWrongType
			}
			out := []any{}
			if v != nil {
				for _, f := range slices.Sorted(maps.Keys(v.hash)) {
					out = append(out, f, v.hash[f])
				}
			}
			return out
		}},
		"SADD": {-2, true, func(r *redis, a []string) any {
			v, wrong := r.value(a[0], "set", true)
			if wrong {
				return redisWrongType
			}
			return r.count(a[1:], func(x string) bool {
				fresh := !v.set[x]
				v.set[x] = true
				return fresh
			})
		}},
		"SMEMBERS": {1, false, func(r *redis, a []string) any {
			v, wrong := r.value(a[0], "set", false)
			if wrong {
				return redisWrongType
			}
			out := []any{}
			if v != nil {
				for _, x := range slices.Sorted(maps.Keys(v.set)) {
					out = append(out, x)
				}
			}
			return out
		}},
	}
}
