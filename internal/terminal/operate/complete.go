package operate

import (
	"context"
	"slices"
	"strings"
)

// Complete proposes words for the last of args, which are those behind lab.
func Complete(ctx context.Context, c Cluster, args []string) []string {
	if len(args) == 0 {
		return nil
	}
	word, before := args[len(args)-1], args[:len(args)-1]
	var out []string
	for _, p := range proposals(ctx, c, before, word) {
		if strings.HasPrefix(p, word) && !slices.Contains(before, p) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func proposals(ctx context.Context, c Cluster, before []string, word string) []string {
	if len(before) == 0 {
		return []string{"nodes", "node", "loops", "loop", "clock", "etcd", "encryption"}
	}
	second := ""
	if len(before) > 1 {
		second = before[1]
	}
	last := before[len(before)-1]
	switch before[0] {
	case "node":
		switch {
		case second == "":
			return []string{"off", "on", "cut", "mend", "open", "close"}
		case second == "open" && strings.HasPrefix(word, "-"):
			return []string{"--cpu", "--memory", "--label", "--taint", "--resource"}
		case second != "open":
			return nodeNames(ctx, c)
		}
	case "loop":
		switch {
		case second == "":
			return []string{"off", "on"}
		case last == "kubelet":
			return nodeNames(ctx, c)
		}
		return loopNames(ctx, c, second)
	case "clock":
		return []string{"real", "10", "30", "60"}
	case "etcd":
		switch second {
		case "":
			return []string{"list", "get"}
		case "list", "get":
			return keys(ctx, c, word)
		}
	case "encryption":
		switch last {
		case "--provider":
			return []string{"secretbox", "aescbc", "aesgcm"}
		case "encryption":
			return []string{"on", "off"}
		}
		return []string{"--provider", "--resource"}
	}
	return nil
}

func nodeNames(ctx context.Context, c Cluster) (out []string) {
	list, _ := c.Kitchens(ctx)
	for _, k := range list {
		out = append(out, k.Name)
	}
	return out
}

// loopNames are the loops that can be sent off, or called back on.
func loopNames(ctx context.Context, c Cluster, do string) (out []string) {
	list, _ := c.Loops(ctx)
	for _, l := range list {
		if l.Home == (do == "on") {
			out = append(out, l.Name)
		}
	}
	if do == "off" {
		out = append(out, "scheduler", "controller-manager", "kubelet", "dns")
	}
	return out
}

// keys proposes etcd's keys up to the next slash, so that one can walk down.
func keys(ctx context.Context, c Cluster, word string) (out []string) {
	page, _ := c.EtcdKeys(ctx, word, "", 0)
	for _, k := range page.Keys {
		if len(k.Key) < len(word) {
			continue
		}
		rest := k.Key[len(word):]
		if i := strings.IndexByte(rest, '/'); i == 0 && len(rest) > 1 {
			if j := strings.IndexByte(rest[1:], '/'); j >= 0 {
				rest = rest[:j+2]
			}
		} else if i > 0 {
			rest = rest[:i+1]
		}
		out = append(out, word+rest)
	}
	return out
}
