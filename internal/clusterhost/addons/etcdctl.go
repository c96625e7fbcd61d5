package addons

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"kubistro/internal/clusterhost/pantry"
	"kubistro/internal/lab"
)

// Etcd is the cluster's store as etcdctl reads it; see controlplane.Host.
type Etcd interface {
	EtcdKeys(ctx context.Context, prefix, after string, limit int) (lab.EtcdKeys, error)
	EtcdValue(ctx context.Context, key string) (lab.EtcdValue, bool, error)
}

// etcdPage is how many keys are read at a time.
const etcdPage = 200

// etcdctl is the client in the etcd Pod. It reads only: what is written around the API
// server is a way to break a cluster that has better ones here.
type etcdctl struct {
	p     *pantry.Process
	store Etcd

	words                       []string
	prefix, keys, values, count bool
	fromKey                     bool
	limit                       int
	format                      string
}

func etcdctlProgram(store Etcd) pantry.Program {
	return func(ctx context.Context, p *pantry.Process) int {
		c := &etcdctl{p: p, store: store, format: "simple"}
		if !c.parse(p.Args[1:]) {
			return 1
		}
		return c.run(ctx)
	}
}

// parse reads flags and words in any order. Where and as whom to connect doesn't matter here.
func (c *etcdctl) parse(args []string) bool {
	for k := 0; k < len(args); k++ {
		a := args[k]
		if a == "-w" {
			a = "--write-out"
		}
		if !strings.HasPrefix(a, "--") {
			c.words = append(c.words, a)
			continue
		}
		name, value, given := strings.Cut(a, "=")
		on := !given || value == "true"
		switch name {
		case "--prefix":
			c.prefix = on
			continue
		case "--keys-only":
			c.keys = on
			continue
		case "--print-value-only":
			c.values = on
			continue
		case "--count-only":
			c.count = on
			continue
		case "--from-key":
			c.fromKey = on
			continue
		case "--insecure-skip-tls-verify", "--insecure-transport", "--debug", "--hex", "--cluster":
			continue
		case "--cacert", "--cert", "--key", "--endpoints", "--write-out", "--limit", "--user", "--password", "--dial-timeout", "--command-timeout", "--consistency", "--order", "--sort-by", "--rev":
		default:
			return c.fail("unknown flag: %s", name) == 0
		}
		if !given {
			if k++; k == len(args) {
				return c.fail("flag needs an argument: %s", name) == 0
			}
			value = args[k]
		}
		switch name {
		case "--write-out":
			c.format = value
		case "--limit":
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 {
				return c.fail("invalid argument %q for \"--limit\" flag", value) == 0
			}
			c.limit = n
		}
	}
	return true
}

func (c *etcdctl) fail(format string, args ...any) int {
	fmt.Fprintf(c.p.Stderr, "Error: "+format+"\n", args...)
	return 1
}

func (c *etcdctl) run(ctx context.Context) int {
	word := func(i int) string {
		if i < len(c.words) {
			return c.words[i]
		}
		return ""
	}
	const local = "127.0.0.1:2379"
	switch word(0) {
	case "version":
		fmt.Fprintln(c.p.Stdout, "etcdctl version: 3.7.0\nAPI version: 3.7")
	case "get":
		if len(c.words) < 2 {
			return c.fail("get command needs one argument as key and an optional argument as range_end")
		}
		if len(c.words) > 2 || c.fromKey {
			return c.fail("this etcdctl reads a key or a prefix, no other ranges")
		}
		return c.get(ctx, c.words[1])
	case "endpoint":
		if _, err := c.store.EtcdKeys(ctx, "/", "", 1); err != nil {
			fmt.Fprintf(c.p.Stderr, "%s is unhealthy: failed to commit proposal: %v\nError: unhealthy cluster\n", local, err)
			return 1
		}
		if word(1) != "health" {
			return c.fail("unknown command %q for \"etcdctl endpoint\"", word(1))
		}
		fmt.Fprintln(c.p.Stdout, local+" is healthy: successfully committed proposal: took = 1ms")
	case "put", "del", "txn", "compaction", "defrag", "snapshot", "member", "lease", "watch", "auth", "user", "role":
		return c.fail("etcdctl %s isn't available here: this one reads keys only", word(0))
	case "":
		fmt.Fprintln(c.p.Stdout, "NAME:\n\tetcdctl - A simple command line client for etcd3.\n\nUSAGE:\n\tetcdctl get KEY [--prefix] [--keys-only] [--print-value-only] [--count-only] [--limit N] [-w simple|json]\n\tetcdctl endpoint health\n\tetcdctl version")
	default:
		return c.fail("unknown command %q for \"etcdctl\"", word(0))
	}
	return 0
}

// jsonKey is a key and its value as -w json has them.
type jsonKey struct {
	Key            []byte `json:"key"`
	CreateRevision int64  `json:"create_revision"`
	ModRevision    int64  `json:"mod_revision"`
	Version        int64  `json:"version"`
	Value          []byte `json:"value,omitempty"`
}

func (c *etcdctl) get(ctx context.Context, key string) int {
	var all []jsonKey
	n := 0
	show := func(k lab.EtcdKey) error {
		n++
		if c.count {
			return nil
		}
		var v lab.EtcdValue
		if !c.keys {
			var err error
			if v, _, err = c.store.EtcdValue(ctx, k.Key); err != nil {
				return err
			}
			if v.Size > len(v.Value) {
				fmt.Fprintf(c.p.Stderr, "etcdctl: of %s only %d of %d bytes are shown\n", k.Key, len(v.Value), v.Size)
			}
		}
		if c.format == "json" {
			all = append(all, jsonKey{[]byte(k.Key), k.CreateRevision, k.ModRevision, k.Version, v.Value})
			return nil
		}
		return c.print(k.Key, v.Value)
	}
	if err := c.each(ctx, key, show); err != nil {
		return c.fail("%v", err)
	}
	switch {
	case c.format == "json":
		json.NewEncoder(c.p.Stdout).Encode(map[string]any{"kvs": all, "count": n})
	case c.count:
		fmt.Fprintln(c.p.Stdout, n)
	}
	return 0
}

// print writes a key as etcdctl does: key and value on lines of their own, an empty line
// for a value that wasn't asked for.
func (c *etcdctl) print(key string, value []byte) error {
	if !c.values {
		if _, err := io.WriteString(c.p.Stdout, key+"\n"); err != nil {
			return err
		}
	}
	if _, err := c.p.Stdout.Write(value); err != nil {
		return err
	}
	_, err := io.WriteString(c.p.Stdout, "\n")
	return err
}

// each calls show for a key, or for all that begin with it.
func (c *etcdctl) each(ctx context.Context, key string, show func(lab.EtcdKey) error) error {
	if !c.prefix {
		v, found, err := c.store.EtcdValue(ctx, key)
		if err != nil || !found {
			return err
		}
		return show(v.EtcdKey)
	}
	after, shown := "", 0
	for {
		page, err := c.store.EtcdKeys(ctx, key, after, etcdPage)
		if err != nil {
			return err
		}
		for _, k := range page.Keys {
			if c.limit > 0 && shown == c.limit {
				return nil
			}
			shown++
			if err := show(k); err != nil {
				return err
			}
			after = k.Key
		}
		if !page.More || len(page.Keys) == 0 {
			return ctx.Err()
		}
	}
}
