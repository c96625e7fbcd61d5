package operate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"kubistro/internal/lab"
)

// shortLoops are names that people use for a loop.
var shortLoops = map[string]string{
	"scheduler": "kube-scheduler", "controller-manager": "kube-controller-manager", "kcm": "kube-controller-manager",
	"proxy": "kube-proxy", "dns": "coredns",
}

func (c *command) loop(ctx context.Context, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || args[0] == "list" {
		return c.listLoops(ctx, args)
	}
	do, names := args[0], args[1:]
	if do != "off" && do != "on" {
		return c.wrong("控制迴圈只能 off 或 on，不能「%s」", "a loop can be sent off or called on, not %q", do)
	}
	if len(names) == 2 && names[0] == "kubelet" {
		names = []string{"kubelet/" + strings.TrimPrefix(names[1], "node/")}
	}
	if len(names) == 0 {
		return c.wrong("要寫出控制迴圈的名稱", "a control loop must be named")
	}
	known, err := c.c.Loops(ctx)
	if err != nil {
		return err
	}
	for i, n := range names {
		if names[i], err = c.findLoop(n, known); err != nil {
			return err
		}
	}
	for _, n := range names {
		if err := c.c.SetLoop(ctx, n, do == "off"); err != nil {
			return err
		}
		if err := c.done("%s %s", n, word(do == "off", "sent home", "back at work")); err != nil {
			return err
		}
	}
	return nil
}

// findLoop is a loop's full name.
func (c *command) findLoop(name string, known []lab.ControlLoop) (string, error) {
	var names []string
	for _, l := range known {
		names = append(names, l.Name)
	}
	for _, n := range []string{name, shortLoops[name], name + "-controller"} {
		if slices.Contains(names, n) {
			return n, nil
		}
	}
	if name == "kubelet" {
		return "", c.wrong("哪個節點的 kubelet？例如 lab loop off kubelet kitchen-1", "which node's kubelet? For instance: lab loop off kubelet kitchen-1")
	}
	if like := nearest(name, names); like != "" {
		return "", fmt.Errorf(c.say("沒有控制迴圈 %q，是不是 %q？", "there is no control loop %q; did you mean %q?"), name, like)
	}
	return "", fmt.Errorf(c.say("沒有控制迴圈 %q；lab loops -a 會列出所有的", "there is no control loop %q; lab loops -a lists them"), name)
}

func (c *command) listLoops(ctx context.Context, args []string) error {
	fs := flags()
	asJSON, all := fs.Bool("json", false, ""), fs.Bool("a", false, "")
	fs.BoolVar(all, "all", false, "")
	if rest, err := parse(fs, args); err != nil || len(rest) > 0 && rest[0] != "list" {
		return c.wrong("看不懂 %s", "can't understand %s", strings.Join(args, " "))
	}
	list, err := c.c.Loops(ctx)
	if err != nil {
		return err
	}
	if *asJSON {
		return c.json(list)
	}
	rows := [][]string{{"NAME", "PART", "STATE"}}
	hidden := 0
	for _, l := range list {
		if l.Part == lab.LoopController && !l.Home && !*all {
			hidden++
			continue
		}
		rows = append(rows, []string{l.Name, l.Part, word(l.Home, "home", "working")})
	}
	if err := c.table(rows); err != nil {
		return err
	}
	if hidden > 0 {
		c.print("還有 %d 個 controller 在上班（lab loops -a 全部列出）", "and %d controllers at work (lab loops -a lists them)", hidden)
	}
	return nil
}

func (c *command) clock(ctx context.Context, args []string) error {
	fs := flags()
	asJSON := fs.Bool("json", false, "")
	rest, err := parse(fs, args)
	if err != nil {
		return err
	}
	if len(rest) > 1 {
		return c.wrong("只能有一個倍數", "one speed is enough")
	}
	if len(rest) == 1 {
		speed := 1
		if rest[0] != "real" {
			speed, err = strconv.Atoi(strings.TrimSuffix(rest[0], "x"))
		}
		if err != nil || speed < 1 || speed > lab.MaxSpeed {
			return c.wrong("倍數要在 1 到 %d 之間，不是 %q", "the speed is from 1 to %d, not %q", lab.MaxSpeed, rest[0])
		}
		if err := c.c.SetClusterClock(ctx, speed); err != nil {
			return err
		}
	}
	now, err := c.c.ClusterClock(ctx)
	if err != nil {
		return err
	}
	if *asJSON {
		return c.json(now)
	}
	if now.Speed == 1 {
		c.print("時鐘：真實的時間", "clock: real time")
	} else {
		c.print("時鐘：等待時間縮短為 1/%d", "clock: waiting periods are 1/%d", now.Speed)
	}
	rows := [][]string{{"COMPONENT", "PERIOD", "HERE", "REAL"}}
	for _, f := range now.Figures {
		rows = append(rows, []string{f.Component, f.Name, period(f.NowMillis), period(f.RealMillis)})
	}
	return c.table(rows)
}

// period is a time as people write it: 5m, 40s.
func period(millis int64) string {
	s := (time.Duration(millis) * time.Millisecond).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	return s
}
