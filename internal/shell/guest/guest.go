// Package guest is the command guest: somebody in the street, outside of the
// cluster, who visits it by HTTP once or as a steady stream, and tells what came back, how long it took and
// who answered. Every visit is a connection of its own, as of another guest.
package guest

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"kubistro/internal/shell"
)

// Bounds of a load: the learner's terminal and cluster share a machine with others.
const (
	maxVisits   = 100_000
	maxAtOnce   = 32
	maxRate     = 200 // a second
	maxDuration = 30 * time.Minute
	maxPatience = 5 * time.Minute
	patience    = 5 * time.Second
	maxBody     = 64 << 10 // shown of one visit
	maxRead     = 1 << 20  // read of an answer
)

// Dial opens a TCP connection from the street to host:port.
type Dial func(ctx context.Context, address string) (net.Conn, error)

// Command is guest over a way into the cluster. zh: texts in Chinese, else in English.
func Command(dial Dial, zh bool) shell.Command {
	return func(ctx context.Context, env shell.Env, args []string) int {
		g := guest{dial: dial, zh: zh, env: env}
		return g.run(ctx, args[1:])
	}
}

type guest struct {
	dial Dial
	zh   bool
	env  shell.Env
	plan plan
}

// plan is what the arguments ask for.
type plan struct {
	url      *url.URL
	method   string
	header   http.Header
	host     string // Host header
	visits   int    // 0: until duration
	atOnce   int
	rate     float64 // visits a second; 0: as fast as answers come, at most maxRate
	duration time.Duration
	patience time.Duration
	insecure bool
	json     bool
}

// load reports whether the plan is more than one visit.
func (p *plan) load() bool { return p.visits != 1 }

func (g *guest) say(zh, en string) string {
	if g.zh {
		return zh
	}
	return en
}

const usageEn = `usage: guest [options] URL
A guest in the street visits the restaurant from outside of the cluster: by a node's
name or address and a node port, by a load balancer's address, or by the host of an Ingress.

  guest http://kitchen-1:30080/            one visit
  guest -n 100 http://menu.example/        100 visits
  guest -d 30s -r 20/s http://172.18.255.200/   20 visits a second, for 30 seconds

  -n COUNT      so many visits
  -d DURATION   visits for so long (30s, 5m)
  -r RATE       visits a second (20, 20/s) or a minute (30/m); without it as fast
                as they are served, at most 200/s
  -c COUNT      at most so many at once (default 4)
  -m DURATION   patience with one visit (default 5s)
  -H HEADER     "Name: value"; may be repeated
  -X METHOD     default GET
  -k            don't check certificates
  --json        the summary as JSON
Ctrl-C ends a stream and shows its summary.
`

const usageZh = `用法：guest [選項] 網址
街上的客人從叢集外面上門：用節點的名稱或位址加 node port、用 load balancer 的位址，
或用 Ingress 的主機名稱。

  guest http://kitchen-1:30080/            來一位
  guest -n 100 http://menu.example/        來 100 位
  guest -d 30s -r 20/s http://172.18.255.200/   每秒 20 位，共 30 秒

  -n 數量       總共幾位
  -d 時間       持續多久（30s、5m）
  -r 速率       每秒幾位（20、20/s）或每分鐘幾位（30/m）；
                不寫就是接待多快來多快，最多每秒 200 位
  -c 數量       同時最多幾位（預設 4）
  -m 時間       每位客人願意等多久（預設 5s）
  -H 標頭       「名稱: 值」，可重複
  -X 方法       預設 GET
  -k            不檢查憑證
  --json        用 JSON 顯示結果
按 Ctrl-C 可結束，並顯示目前為止的結果。
`

// parse reads the arguments; options may come after the URL.
func (g *guest) parse(args []string) (plan, error) {
	p := plan{header: http.Header{}, atOnce: 4, patience: patience, visits: -1}
	fs := flag.NewFlagSet("guest", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	var rate string
	fs.IntVar(&p.visits, "n", -1, "")
	fs.IntVar(&p.atOnce, "c", 4, "")
	fs.StringVar(&rate, "r", "", "")
	fs.DurationVar(&p.duration, "d", 0, "")
	fs.DurationVar(&p.patience, "m", patience, "")
	fs.StringVar(&p.method, "X", http.MethodGet, "")
	fs.BoolVar(&p.insecure, "k", false, "")
	fs.BoolVar(&p.json, "json", false, "")
	fs.Func("H", "", func(s string) error {
		name, value, ok := strings.Cut(s, ":")
		if name, value = strings.TrimSpace(name), strings.TrimSpace(value); !ok || name == "" {
			return errors.New(g.say("標頭要寫成「名稱: 值」", `a header is "Name: value"`))
		}
		if strings.EqualFold(name, "Host") {
			p.host = value
		}
		p.header.Add(name, value)
		return nil
	})
	var urls []string
	for len(args) > 0 {
		if err := fs.Parse(args); err != nil {
			return p, err
		}
		if args = fs.Args(); len(args) > 0 {
			urls, args = append(urls, args[0]), args[1:]
		}
	}
	if len(urls) != 1 {
		return p, errors.New(g.say("要一個網址", "one URL is needed"))
	}
	if !strings.Contains(urls[0], "://") {
		urls[0] = "http://" + urls[0]
	}
	var err error
	if p.url, err = url.Parse(urls[0]); err != nil || p.url.Host == "" || p.url.Scheme != "http" && p.url.Scheme != "https" {
		return p, fmt.Errorf(g.say("這不是網址：%s", "not a URL: %s"), urls[0])
	}
	if p.rate, err = parseRate(rate); err != nil {
		return p, fmt.Errorf(g.say("速率要像 20/s 或 30/m，最多每秒 %d 位", "a rate is like 20/s or 30/m, at most %d a second"), maxRate)
	}
	return p, g.check(&p)
}

// check fills in what was left out and holds the plan against the bounds.
func (g *guest) check(p *plan) error {
	if p.visits == -1 {
		p.visits = 1
		if p.duration > 0 || p.rate > 0 {
			p.visits = 0
		}
	}
	if p.visits == 0 && p.duration == 0 {
		p.duration = maxDuration
	}
	bound := func(flag, least, most string) error {
		return fmt.Errorf(g.say("%s 要在 %s 到 %s 之間", "%s must be from %s to %s"), flag, least, most)
	}
	switch {
	case p.visits < 0 || p.visits > maxVisits:
		return bound("-n", "1", strconv.Itoa(maxVisits))
	case p.atOnce < 1 || p.atOnce > maxAtOnce:
		return bound("-c", "1", strconv.Itoa(maxAtOnce))
	case p.duration < 0 || p.duration > maxDuration:
		return bound("-d", "1ms", "30m")
	case p.patience <= 0 || p.patience > maxPatience:
		return bound("-m", "1ms", "5m")
	}
	return nil
}

func parseRate(s string) (float64, error) {
	if s == "" {
		return 0, nil
	}
	number, unit, _ := strings.Cut(s, "/")
	n, err := strconv.ParseFloat(number, 64)
	switch unit {
	case "", "s":
	case "m":
		n /= 60
	default:
		return 0, strconv.ErrSyntax
	}
	if err != nil || !(n > 0 && n <= maxRate) {
		return 0, strconv.ErrRange
	}
	return n, nil
}

func (g *guest) run(ctx context.Context, args []string) int {
	if len(args) == 0 || args[0] == "--help" || args[0] == "-h" || args[0] == "-help" {
		io.WriteString(g.env.Out, g.say(usageZh, usageEn))
		return 0
	}
	p, err := g.parse(args)
	if err != nil {
		fmt.Fprintf(g.env.Err, "guest: %v\n%s\n", err, g.say("用法請看 guest --help", "see guest --help"))
		return 2
	}
	g.plan = p
	if p.load() {
		return g.stream(ctx)
	}
	return g.once(ctx)
}

// transport gives each visit a connection of its own.
func (g *guest) transport() *http.Transport {
	return &http.Transport{
		DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: g.plan.insecure},
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return g.dial(ctx, address)
		},
	}
}

// once is a single visit: its answer is shown.
func (g *guest) once(ctx context.Context) int {
	tr := g.transport()
	defer tr.CloseIdleConnections()
	v := g.visit(ctx, tr, maxBody)
	if ctx.Err() != nil {
		return 130
	}
	if g.plan.json {
		s := newSummary(1)
		s.add(v)
		s.elapsed = v.took
		return s.json(g)
	}
	if v.failure != "" {
		fmt.Fprintf(g.env.Err, "guest: %s (%s)\n", g.failureText(v.failure), v.took.Round(time.Millisecond))
		return 1
	}
	by := ""
	if v.by != "" {
		by = g.say("，由 "+v.by+" 接待", ", answered by "+v.by)
	}
	fmt.Fprintf(g.env.Out, "%d %s (%s)%s\n%s", v.code, http.StatusText(v.code), v.took.Round(time.Millisecond), by, v.body)
	if len(v.body) > 0 && v.body[len(v.body)-1] != '\n' {
		fmt.Fprintln(g.env.Out)
	}
	if v.code >= 400 {
		return 1
	}
	return 0
}
