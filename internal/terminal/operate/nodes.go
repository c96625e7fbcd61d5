package operate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kubistro/internal/lab"
)

func (c *command) node(ctx context.Context, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || args[0] == "list" {
		return c.listNodes(ctx, args)
	}
	switch do, names := args[0], args[1:]; do {
	case "off", "on":
		on := do == "on"
		return c.eachNode(ctx, names, func(name string) error {
			if err := c.c.SetKitchen(ctx, name, lab.KitchenChange{Power: &on}); err != nil {
				return err
			}
			return c.done("node/%s powered %s", name, do)
		})
	case "cut", "mend":
		in := do == "mend"
		return c.eachNode(ctx, names, func(name string) error {
			if err := c.c.SetKitchen(ctx, name, lab.KitchenChange{Cable: &in}); err != nil {
				return err
			}
			return c.done("node/%s %s", name, word(in, "connected", "disconnected"))
		})
	case "close":
		return c.eachNode(ctx, names, func(name string) error {
			if err := c.c.RemoveKitchen(ctx, name); err != nil {
				return err
			}
			return c.done("node/%s closed", name)
		})
	case "open":
		return c.openNode(ctx, names)
	default:
		return c.wrong("節點只能 off、on、cut、mend、open、close，不能「%s」", "a node can be turned off, on, cut, mend, open, close, not %q", do)
	}
}

// eachNode does something with each of the named nodes, all of which must exist.
func (c *command) eachNode(ctx context.Context, names []string, do func(name string) error) error {
	if len(names) == 0 {
		return c.wrong("要寫出節點的名稱", "a node must be named")
	}
	for i, n := range names {
		names[i] = strings.TrimPrefix(strings.TrimPrefix(n, "node/"), "nodes/")
		if strings.HasPrefix(n, "-") {
			return c.wrong("不認得 %s", "%s isn't known here", n)
		}
	}
	list, err := c.c.Kitchens(ctx)
	if err != nil {
		return err
	}
	var known []string
	for _, k := range list {
		known = append(known, k.Name)
	}
	for _, n := range names {
		if slices.Contains(known, n) {
			continue
		}
		if n == "office" {
			return fmt.Errorf("%s", c.say("office 是 control plane，動不得", "office is the control plane, which has no switch"))
		}
		if like := nearest(n, known); like != "" {
			return fmt.Errorf(c.say("沒有節點 %q，是不是 %q？", "there is no node %q; did you mean %q?"), n, like)
		}
		return fmt.Errorf(c.say("沒有節點 %q；有的是 %s", "there is no node %q; there are %s"), n, strings.Join(known, ", "))
	}
	for _, n := range names {
		if err := do(n); err != nil {
			return err
		}
	}
	return nil
}

func (c *command) openNode(ctx context.Context, args []string) error {
	k := lab.Kitchen{Labels: map[string]string{}, Resources: map[string]string{}}
	fs := flags()
	fs.StringVar(&k.CPU, "cpu", "2", "")
	fs.StringVar(&k.Memory, "memory", "2Gi", "")
	fs.Func("label", "", c.pairs(k.Labels))
	fs.Func("labels", "", c.pairs(k.Labels))
	fs.Func("resource", "", c.pairs(k.Resources))
	fs.Func("taint", "", func(s string) error { k.Taints = append(k.Taints, strings.Split(s, ",")...); return nil })
	names, err := parse(fs, args)
	if err != nil {
		return err
	}
	if len(names) != 1 {
		return c.wrong("要寫出一個新節點的名稱", "one new node must be named")
	}
	k.Name = strings.TrimPrefix(names[0], "node/")
	if err := c.c.AddKitchen(ctx, k); err != nil {
		return err
	}
	return c.done("node/%s opened", k.Name)
}

func (c *command) listNodes(ctx context.Context, args []string) error {
	fs := flags()
	asJSON := fs.Bool("json", false, "")
	if rest, err := parse(fs, args); err != nil || len(rest) > 0 && rest[0] != "list" {
		return c.wrong("看不懂 %s", "can't understand %s", strings.Join(args, " "))
	}
	list, err := c.c.Kitchens(ctx)
	if err != nil {
		return err
	}
	if *asJSON {
		return c.json(list)
	}
	rows := [][]string{{"NAME", "POWER", "CABLE", "CPU", "MEMORY", "ADDRESS", "LABELS", "TAINTS"}}
	for _, k := range list {
		rows = append(rows, []string{k.Name, word(k.Power, "on", "off"), word(k.Cable, "in", "cut"), k.CPU, k.Memory, k.Address, joined(k.Labels), orNone(strings.Join(k.Taints, ","))})
	}
	return c.table(rows)
}

func word(v bool, yes, no string) string {
	if v {
		return yes
	}
	return no
}

func joined(m map[string]string) string {
	var out []string
	for k, v := range m {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return orNone(strings.Join(out, ","))
}

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}
