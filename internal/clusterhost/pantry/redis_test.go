package pantry

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubistro/internal/clusterhost/vnet"
)

func TestRedis(t *testing.T) {
	n, _ := network(t)
	c := pod(t, n, "redis:8.0.2", "10.244.1.1")
	if out, code := c.exec("maxmemory 1mb\nmaxmemory-policy allkeys-lru\n", "sh", "-c", "mkdir /redis-master; cat > /redis-master/redis.conf"); code != 0 {
		t.Fatal(out)
	}
	c.start("redis-server", "/redis-master/redis.conf")
	c.out.wait(t, "Ready to accept connections")
	for _, tc := range [][2]string{
		{"CONFIG GET maxmemory", "maxmemory\n1048576"}, {"CONFIG GET maxmemory-policy", "maxmemory-policy\nallkeys-lru"},
		{"CONFIG SET maxmemory-policy nonsense", "ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy') - argument(s) must be one of the following: volatile-lru, volatile-lfu, volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction"},
		{"PING", "PONG"}, {"SET a 1", "OK"}, {"GET a", "1"}, {"INCR a", "2"}, {"INCRBY a -5", "-3"}, {"DECR a", "-4"}, {"GET none", ""}, {"EXISTS a none", "1"},
		{"APPEND a x", "3"}, {"INCR a", "ERR value is not an integer or out of range"}, {"RPUSH l 1 2 3", "3"}, {"LPUSH l 0", "4"}, {"LRANGE l 0 -1", "0\n1\n2\n3"},
		{"LPOP l", "0"}, {"LLEN l", "3"}, {"GET l", "WRONGTYPE Operation against a key holding the wrong kind of value"}, {"HSET h f v g w", "2"}, {"HGETALL h", "f\nv\ng\nw"},
		{"SADD s b a b", "2"}, {"SMEMBERS s", "a\nb"}, {"KEYS *", "a\nh\nl\ns"}, {"TYPE h", "hash"}, {"SET e 1 EX 100", "OK"}, {"TTL e", "100"}, {"TTL a", "-1"}, {"SET a 2 NX", ""},
		{"DEL a h", "2"}, {"DBSIZE", "3"}, {"GET", "ERR wrong number of arguments for 'get' command"}, {"NOSUCH x", "ERR unknown command 'NOSUCH', with args beginning with: "}, {"FLUSHALL", "OK"}, {"DBSIZE", "0"},
	} {
		if out, _ := c.exec("", append([]string{"redis-cli"}, strings.Fields(tc[0])...)...); out != tc[1]+"\n" {
			t.Errorf("%s: %q, want %q", tc[0], out, tc[1]+"\n")
		}
	}
	// more than fits: what wasn't used for long leaves
	var script bytes.Buffer
	for k := range 40 {
		fmt.Fprintf(&script, "SET key%d %s\n", k, strings.Repeat("x", 40_000))
	}
	if out, code := c.exec(script.String(), "redis-cli"); code != 0 || strings.Count(out, "OK") != 40 {
		t.Errorf("%d %.200s", code, out)
	}
	if out, _ := c.exec("", "redis-cli", "EXISTS", "key39"); out != "1\n" {
		t.Errorf("the newest key: %q", out)
	}
	if out, _ := c.exec("", "redis-cli", "DBSIZE"); out == "40\n" {
		t.Error("40 keys of 40 kB fit into 1 MB")
	}
	c.exec("", "redis-cli", "CONFIG", "SET", "maxmemory-policy", "noeviction")
	if out, code := c.exec(script.String(), "redis-cli"); code != 1 || !strings.Contains(out, "OOM command not allowed when used memory > 'maxmemory'.") {
		t.Errorf("without eviction: %d %.200s", code, out)
	}
	c.signals <- 15
	if code := c.ended(); code != 0 {
		t.Errorf("exit code %d\n%s", code, c.out)
	}
	if held := c.proc.Usage.Memory(); held > 1<<20 {
		t.Errorf("%d bytes are held after the end", held)
	}
}

// TestGuestbook is the tutorial: a leader, a follower, and the page that uses both.
func TestGuestbook(t *testing.T) {
	n, guest := network(t)
	leader := pod(t, n, "redis:6.0.5", "10.244.1.1")
	leader.start()
	leader.out.wait(t, "Ready to accept connections")
	names := map[string][]netip.Addr{"redis-leader": {netip.MustParseAddr("10.244.1.1")}, "redis-follower": {netip.MustParseAddr("10.244.1.2")}}
	knows := func(c *container) { c.proc.Net.(*vnet.Interface).SetDNS(vnet.DNSConfig{Hosts: names}) }
	follower := pod(t, n, "us-docker.pkg.dev/google-samples/containers/gke/gb-redis-follower:v2", "10.244.1.2")
	knows(follower)
	follower.exec("", "true")
	leader.exec("", "redis-cli", "SET", "early", "bird")
	follower.start()
	follower.out.wait(t, "Finished with success")
	front := pod(t, n, "us-docker.pkg.dev/google-samples/containers/gke/gb-frontend:v5", "10.244.1.3")
	knows(front)
	front.start()
	const page = "http://10.244.1.3/"
	if body := answer(t, guest, page); !strings.Contains(body, "<title>Guestbook</title>") {
		t.Errorf("%q", body)
	}
	if _, body := get(t, guest, "GET", page+"guestbook.php?cmd=set&key=messages&value=,hello"); body != `{"message":"Updated"}`+"\n" {
		t.Errorf("set: %q", body)
	}
	eventually(t, "the follower has it", func() bool {
		_, body := get(t, guest, "GET", page+"guestbook.php?cmd=get&key=messages")
		return body == `{"data":",hello"}`+"\n"
	})
	if out, _ := follower.exec("", "redis-cli", "GET", "early"); out != "bird\n" {
		t.Errorf("what was there before: %q", out)
	}
	if out, code := follower.exec("", "redis-cli", "SET", "a", "b"); code != 1 || !strings.HasPrefix(out, "READONLY ") {
		t.Errorf("writing to the follower: %d %q", code, out)
	}
	leader.kill()
	if status, body := get(t, guest, "GET", page+"guestbook.php?cmd=set&key=messages&value=x"); status != 500 || !strings.Contains(body, "refused") {
		t.Errorf("without a leader: %d %q", status, body)
	}
}

// A server that isn't one can't fill the memory of who reads its answers, nor nest them without end.
func TestRedisAnswersAreBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want any
		err  error
	}{
		"a list":          {"*2\r\n$1\r\na\r\n:7\r\n", []any{"a", int64(7)}, nil},
		"nested":          {"*1\r\n*1\r\n+OK\r\n", []any{[]any{redisStatus("OK")}}, nil},
		"nested forever":  {strings.Repeat("*1\r\n", 1000), nil, errAnswerTooLarge},
		"too long":        {fmt.Sprintf("$%d\r\n", redisBytes+1), nil, errAnswerTooLarge},
		"too long in all": {fmt.Sprintf("*2\r\n$%d\r\n%s\r\n$%d\r\n", redisBytes-1, strings.Repeat("x", redisBytes-1), 2), nil, errAnswerTooLarge},
		"too many":        {"*2000000\r\n" + strings.Repeat(":1\r\n", redisItems+1), nil, errAnswerTooLarge},
	} {
		got, err := readAnswer(bufio.NewReader(strings.NewReader(tt.text)))
		if !errors.Is(err, tt.err) || tt.err == nil && !cmp.Equal(got, tt.want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// A leader that sends more than fits loses its replica, which keeps what it has.
func TestRedisReplicaIsBounded(t *testing.T) {
	n, _ := network(t)
	stranger := pod(t, n, "busybox", "10.244.1.1")
	l, err := stranger.proc.Net.Listen(":6379")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	follower := pod(t, n, "us-docker.pkg.dev/google-samples/containers/gke/gb-redis-follower:v2", "10.244.1.2")
	follower.proc.Net.(*vnet.Interface).SetDNS(vnet.DNSConfig{Hosts: map[string][]netip.Addr{"redis-leader": {netip.MustParseAddr("10.244.1.1")}}})
	follower.start()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	out := bufio.NewWriter(c)
	sent := 0
	for ; sent < 1000 && out.Flush() == nil; sent++ {
		writeCommand(out, []string{"SET", fmt.Sprint("key", sent), strings.Repeat("x", 40_000)})
	}
	follower.out.wait(t, "the leader sends more than fits into memory")
	size, _ := follower.exec("", "redis-cli", "DBSIZE")
	if kept, err := strconv.Atoi(strings.TrimSpace(size)); err != nil || kept < 1 || kept > redisBytes/40_000 {
		t.Errorf("keys kept: %q", size)
	}
	if out, _ := follower.exec("", "redis-cli", "GET", "key0"); len(out) != 40_001 {
		t.Errorf("the first key is gone: %.100q", out)
	}
}
