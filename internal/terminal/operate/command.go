package operate

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"kubistro/internal/lab"
	"kubistro/internal/shell"
)

// Command is lab over a cluster, with its texts in a language.
func Command(c Cluster, lang lab.Lang) shell.Command {
	return func(ctx context.Context, env shell.Env, args []string) int {
		cmd := &command{c: c, lang: lang, env: env}
		err := cmd.run(ctx, args[1:])
		var use usage
		switch {
		case err == nil:
			return 0
		case ctx.Err() != nil:
			return 130
		case errors.As(err, &use):
			fmt.Fprintf(env.Err, "lab: %s\n%s\n", use, cmd.say("用法請看 lab --help", "see lab --help"))
			return 2
		}
		text := err.Error()
		var e *lab.Error
		if errors.As(err, &e) {
			text = e.Text.In(lang)
		}
		fmt.Fprintf(env.Err, "lab: %s\n", text)
		return 1
	}
}

// usage is what is wrong with the arguments.
type usage string

func (u usage) Error() string { return string(u) }

type command struct {
	c    Cluster
	lang lab.Lang
	env  shell.Env
}

func (c *command) say(zhTW, en string) string { return lab.Text{ZhTW: zhTW, En: en}.In(c.lang) }

func (c *command) wrong(zhTW, en string, args ...any) error {
	return usage(fmt.Sprintf(c.say(zhTW, en), args...))
}

func (c *command) print(zhTW, en string, args ...any) {
	fmt.Fprintf(c.env.Out, c.say(zhTW, en)+"\n", args...)
}

const helpEn = `usage: lab COMMAND
What kubectl can't do, because it isn't Kubernetes that does it: the building's power, its cables, who is at work.

  lab nodes                       the nodes with their power and cable
  lab node off|on NAME...         trip a node's breaker, or switch it on again
  lab node cut|mend NAME...       pull a node's network cable, or plug it in again
  lab node open NAME [--cpu 2] [--memory 2Gi] [--label k=v] [--taint k=v:Effect]
                [--resource nvidia.com/gpu=1]   add a node
  lab node close NAME...          take a node away, with all that runs there

  lab loops [-a]                  the control loops (-a: every single controller)
  lab loop off|on NAME...         send one home, or call it back: scheduler,
                controller-manager, deployment-controller ..., kubelet NODE,
                kube-proxy, dns
  lab clock [SPEED|real]          how long the waiting periods are; compress them 1 to 60 times

  lab etcd list [PREFIX]          etcd's keys
  lab etcd get KEY [--raw]        what etcd holds, byte by byte
  lab encryption                  how resources are encrypted at rest
  lab encryption on [--provider secretbox|aescbc|aesgcm] [--resource secrets]
  lab encryption off
  lab encryption -f FILE          an EncryptionConfiguration of your own

Lists take --json.
`

const helpZh = `用法：lab 指令
kubectl 做不到的事，因為那不歸 Kubernetes 管：大樓的電、網路線、誰在上班。

  lab nodes                       列出節點，電源和網路線的狀態
  lab node off|on 名稱...         拉下節點的電源開關，或復電
  lab node cut|mend 名稱...       拔掉節點的網路線，或接回去
  lab node open 名稱 [--cpu 2] [--memory 2Gi] [--label k=v] [--taint k=v:Effect]
                [--resource nvidia.com/gpu=1]   加一個節點
  lab node close 名稱...          撤掉節點，連同上面執行的一切

  lab loops [-a]                  列出控制迴圈（-a：每一個 controller）
  lab loop off|on 名稱...         讓它下班，或叫它回來上班：scheduler、
                controller-manager、deployment-controller 等等、kubelet 節點、
                kube-proxy、dns
  lab clock [倍數|real]           等待時間有多長；可縮短為 1/1 到 1/60

  lab etcd list [前綴]            列出 etcd 的鍵
  lab etcd get 鍵 [--raw]         看 etcd 存的原始位元組
  lab encryption                  靜態加密的狀態
  lab encryption on [--provider secretbox|aescbc|aesgcm] [--resource secrets]
  lab encryption off
  lab encryption -f 檔案          用自己的 EncryptionConfiguration

列表都可以加 --json。
`

func (c *command) run(ctx context.Context, args []string) error {
	if len(args) == 0 || slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]) || slices.Contains(args, "--help") {
		_, err := io.WriteString(c.env.Out, c.say(helpZh, helpEn))
		return err
	}
	switch args[0] {
	case "node", "nodes":
		return c.node(ctx, args[1:])
	case "loop", "loops":
		return c.loop(ctx, args[1:])
	case "clock":
		return c.clock(ctx, args[1:])
	case "etcd":
		return c.etcd(ctx, args[1:])
	case "encryption":
		return c.encryption(ctx, args[1:])
	}
	return c.wrong("沒有「%s」這個指令", "there is no command %q", args[0])
}

// done says what was done, in English as kubectl does.
func (c *command) done(format string, args ...any) error {
	_, err := fmt.Fprintf(c.env.Out, format+"\n", args...)
	return err
}

// flags is an empty set of flags; parse takes them wherever they stand.
func flags() *flag.FlagSet {
	fs := flag.NewFlagSet("lab", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	return fs
}

func parse(fs *flag.FlagSet, args []string) ([]string, error) {
	var rest []string
	for {
		if err := fs.Parse(args); err != nil {
			return nil, usage(err.Error())
		}
		if args = fs.Args(); len(args) == 0 {
			return rest, nil
		}
		rest, args = append(rest, args[0]), args[1:]
	}
}

// pairs is a flag key=value that may be repeated, or hold several with commas.
func (c *command) pairs(into map[string]string) func(string) error {
	return func(s string) error {
		for _, p := range strings.Split(s, ",") {
			key, value, ok := strings.Cut(p, "=")
			if !ok || key == "" {
				return fmt.Errorf(c.say("要寫成 名稱=值，不是 %q", "must be name=value, not %q"), p)
			}
			into[key] = value
		}
		return nil
	}
}

func (c *command) json(v any) error {
	e := json.NewEncoder(c.env.Out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// table prints rows in columns, as kubectl does.
func (c *command) table(rows [][]string) error {
	w := tabwriter.NewWriter(c.env.Out, 6, 4, 3, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(w, strings.Join(r, "\t"))
	}
	return w.Flush()
}

// nearest names the candidate that name may have meant; empty when none is close.
func nearest(name string, candidates []string) string {
	best, at := "", 3
	for _, c := range candidates {
		if d := distance(name, c); d < at {
			best, at = c, d
		}
	}
	return best
}

// distance is how many letters must change to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := left
			if a[i] != b[j] {
				change++
			}
			left = row[j+1]
			row[j+1] = min(row[j]+1, row[j+1]+1, change)
		}
	}
	return row[len(b)]
}
