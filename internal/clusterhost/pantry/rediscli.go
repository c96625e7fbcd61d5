package pantry

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// redisCLI is redis-cli: one command from its arguments, or one a line from standard input.
func redisCLI(ctx context.Context, p *Process) int {
	host, port, password := "127.0.0.1", "6379", p.Getenv("REDISCLI_AUTH")
	args := p.Args[1:]
options:
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch args[0] {
		case "-h", "-p", "-a", "-n":
			if len(args) < 2 {
				fmt.Fprintf(p.Stderr, "Unrecognized option or bad number of args for: '%s'\n", args[0])
				return 1
			}
			switch args[0] {
			case "-h":
				host = args[1]
			case "-p":
				port = args[1]
			case "-a":
				password = args[1]
			}
			args = args[2:]
		case "--raw", "--no-auth-warning", "-c":
			args = args[1:]
		case "-v", "--version":
			fmt.Fprintf(p.Stdout, "redis-cli %s\n", redisVersion)
			return 0
		default:
			break options
		}
	}
	c := &redisClient{p: p, address: net.JoinHostPort(host, port), prompt: host + ":" + port + "> "}
	defer c.close()
	if err := c.connect(ctx, password); err != nil {
		fmt.Fprintf(p.Stderr, "Could not connect to Redis at %s:%s: %s\n", host, port, dialReason(err))
		return 1
	}
	if len(args) > 0 {
		return c.say(args)
	}
	return c.session(ctx)
}

// dialReason is the last part of an error of the network, as a C program says it.
func dialReason(err error) string {
	var name *net.DNSError
	if errors.As(err, &name) {
		return "Name or service not known"
	}
	text := err.Error()
	if at := strings.LastIndex(text, ": "); at >= 0 {
		text = text[at+2:]
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

type redisClient struct {
	p               *Process
	address, prompt string
	conn            net.Conn
	in              *bufio.Reader
	stop            func() bool
}

func (c *redisClient) connect(ctx context.Context, password string) (err error) {
	dctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if c.conn, err = c.p.Net.DialContext(dctx, "tcp", c.address); err != nil {
		return err
	}
	c.in = bufio.NewReader(c.conn)
	c.stop = context.AfterFunc(ctx, func() { c.conn.Close() })
	if password != "" {
		_, err = c.call([]string{"AUTH", password})
	}
	return err
}

func (c *redisClient) close() {
	if c.conn != nil {
		c.stop()
		c.conn.Close()
	}
}

// session reads commands until the end of the input, exit or quit.
func (c *redisClient) session(ctx context.Context) int {
	lines := bufio.NewScanner(c.p.Stdin)
	for ctx.Err() == nil {
		if c.p.TTY {
			io.WriteString(c.p.Stdout, c.prompt)
		}
		if !lines.Scan() {
			break
		}
		words := splitQuoted(lines.Text())
		if len(words) == 0 {
			continue
		}
		if w := strings.ToLower(words[0]); w == "exit" || w == "quit" {
			break
		}
		if c.say(words) != 0 && !c.p.TTY {
			return 1
		}
	}
	return 0
}

// say sends a command and prints its answer: readable on a terminal, raw otherwise.
func (c *redisClient) say(words []string) int {
	answer, err := c.call(words)
	if err != nil {
		fmt.Fprintf(c.p.Stderr, "Error: Server closed the connection\n")
		return 1
	}
	printAnswer(c.p.Stdout, answer, "", c.p.TTY)
	if _, failed := answer.(redisError); failed {
		return 1
	}
	return 0
}

func (c *redisClient) call(words []string) (any, error) {
	w := bufio.NewWriter(c.conn)
	writeCommand(w, words)
	if err := w.Flush(); err != nil {
		return nil, err
	}
	return readAnswer(c.in)
}

func printAnswer(w io.Writer, a any, indent string, pretty bool) {
	switch a := a.(type) {
	case nil:
		fmt.Fprintln(w, map[bool]string{true: "(nil)"}[pretty])
	case redisStatus:
		fmt.Fprintln(w, string(a))
	case redisError:
		fmt.Fprintln(w, map[bool]string{true: "(error) "}[pretty]+string(a))
	case int64:
		fmt.Fprintf(w, "%s%d\n", map[bool]string{true: "(integer) "}[pretty], a)
	case string:
		if pretty {
			fmt.Fprintf(w, "%q\n", a)
		} else {
			fmt.Fprintln(w, a)
		}
	case []any:
		if len(a) == 0 {
			fmt.Fprintln(w, map[bool]string{true: "(empty array)"}[pretty])
		}
		for k, x := range a {
			if pretty {
				if k > 0 {
					io.WriteString(w, indent)
				}
				fmt.Fprintf(w, "%d) ", k+1)
			}
			printAnswer(w, x, indent+"   ", pretty)
		}
	}
}
