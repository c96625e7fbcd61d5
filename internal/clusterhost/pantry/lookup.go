package pantry

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"kubistro/internal/clusterhost/vnet"
)

// question is what nslookup and dig are asked to look up.
type question struct {
	name   string
	qtype  string // A and AAAA when empty
	server netip.Addr
	search bool // by the search list of resolv.conf
	short  bool
	answer bool // the answer section only
}

// ask goes through the names that the resolver would try; the answer is that of
// the first name that exists, or of the last one tried.
func (q *question) ask(ctx context.Context, p *Process) (full string, a vnet.Answer, err error) {
	names := []string{q.name}
	if q.search {
		names = p.Net.DNS().Candidates(q.name)
	}
	types := []string{q.qtype}
	if q.qtype == "" {
		types = []string{"A", "AAAA"}
	}
	a.Code = "NXDOMAIN"
	for _, full = range names {
		a = vnet.Answer{}
		for _, qtype := range types {
			one, err := p.Net.QueryAt(ctx, q.server, full, qtype)
			if err != nil {
				return full, a, err
			}
			a.Code = one.Code
			a.Records = append(a.Records, fresh(a.Records, one.Records)...)
		}
		if a.Code == "NOERROR" && len(a.Records) > 0 {
			return full, a, nil
		}
	}
	return full, a, nil
}

// fresh are the records that aren't known yet: A and AAAA answers share their CNAMEs.
func fresh(known, more []vnet.Record) []vnet.Record {
	var out []vnet.Record
	for _, r := range more {
		seen := false
		for _, k := range known {
			seen = seen || k == r
		}
		if !seen {
			out = append(out, r)
		}
	}
	return out
}

// setServer takes a name server's address or name.
func (q *question) setServer(ctx context.Context, p *Process, server string) bool {
	ips, err := p.Net.LookupHost(ctx, server)
	if err != nil || len(ips) == 0 {
		return false
	}
	q.server = ips[0]
	return true
}

const noServers = ";; connection timed out; no servers could be reached"

// nslookupProgram looks names up in cluster DNS: nslookup [-type=SRV] NAME [SERVER].
func nslookupProgram(ctx context.Context, p *Process) int {
	q := question{server: p.Net.DNS().Nameserver, search: true}
	for _, a := range p.Args[1:] {
		name, value, isOption := strings.Cut(strings.TrimPrefix(a, "-"), "=")
		switch {
		case strings.HasPrefix(a, "-"):
			if isOption && (strings.HasPrefix("querytype", name) || name == "type") {
				q.qtype = strings.ToUpper(value)
			}
		case q.name == "":
			q.name = a
		case !q.setServer(ctx, p, a):
			fmt.Fprintf(p.Stderr, "nslookup: couldn't get address for '%s': not found\n", a)
			return 1
		}
	}
	if q.name == "" {
		fmt.Fprintln(p.Stderr, "usage: nslookup [-type=TYPE] NAME [SERVER]")
		return 1
	}
	if ip, err := netip.ParseAddr(q.name); err == nil {
		q.name, q.qtype, q.search = vnet.ReverseName(ip), "PTR", false
	}
	full, a, err := q.ask(ctx, p)
	if err != nil && !strings.Contains(err.Error(), "no such host") {
		fmt.Fprintln(p.Stdout, noServers)
		return 1
	}
	fmt.Fprintf(p.Stdout, "Server:\t\t%s\nAddress:\t%s:53\n\n", q.server, q.server)
	if a.Code != "NOERROR" {
		fmt.Fprintf(p.Stdout, "** server can't find %s: NXDOMAIN\n\n", q.name)
		return 1
	}
	for _, r := range a.Records {
		owner := strings.TrimSuffix(r.Name, ".")
		switch r.Type {
		case "A", "AAAA":
			fmt.Fprintf(p.Stdout, "Name:\t%s\nAddress: %s\n", owner, r.Addr)
		case "CNAME":
			fmt.Fprintf(p.Stdout, "%s\tcanonical name = %s\n", owner, r.Text)
		case "SRV":
			fmt.Fprintf(p.Stdout, "%s\tservice = %s\n", owner, r.Data())
		case "PTR":
			fmt.Fprintf(p.Stdout, "%s\tname = %s\n", owner, r.Text)
		default:
			fmt.Fprintf(p.Stdout, "%s\ttext = %s\n", owner, r.Data())
		}
	}
	if len(a.Records) == 0 {
		fmt.Fprintf(p.Stdout, "*** Can't find %s: No answer\n", strings.TrimSuffix(full, "."))
	}
	fmt.Fprintln(p.Stdout)
	return 0
}

// digProgram is dig: [@SERVER] NAME [TYPE] [-x ADDRESS] [+short] [+search] [+noall +answer].
func digProgram(ctx context.Context, p *Process) int {
	q := question{qtype: "A", server: p.Net.DNS().Nameserver}
	args := p.Args[1:]
	for k := 0; k < len(args); k++ {
		switch a := args[k]; {
		case strings.HasPrefix(a, "@"):
			if !q.setServer(ctx, p, a[1:]) {
				fmt.Fprintf(p.Stderr, "dig: couldn't get address for '%s': not found\n", a[1:])
				return 10
			}
		case a == "+short":
			q.short = true
		case a == "+search":
			q.search = true
		case a == "+noall":
			q.answer = true
		case strings.HasPrefix(a, "+"):
		case (a == "-t" || a == "-x") && k+1 < len(args):
			k++
			if a == "-t" {
				q.qtype = strings.ToUpper(args[k])
			} else if ip, err := netip.ParseAddr(args[k]); err == nil {
				q.name, q.qtype = vnet.ReverseName(ip), "PTR"
			}
		case strings.HasPrefix(a, "-"):
		case isRecordType(a):
			q.qtype = strings.ToUpper(a)
		default:
			q.name = a
		}
	}
	if q.name == "" {
		fmt.Fprintln(p.Stderr, "usage: dig [@SERVER] NAME [TYPE] [+short] [+search]")
		return 1
	}
	full, a, err := q.ask(ctx, p)
	if err != nil && !strings.Contains(err.Error(), "no such host") {
		fmt.Fprintln(p.Stdout, noServers)
		return 9
	}
	q.print(p, strings.TrimSuffix(full, ".")+".", a)
	return 0
}

func isRecordType(s string) bool {
	switch strings.ToUpper(s) {
	case "A", "AAAA", "CNAME", "SRV", "PTR", "TXT":
		return true
	}
	return false
}

// print writes the answer as dig does.
func (q *question) print(p *Process, full string, a vnet.Answer) {
	if q.short {
		for _, r := range a.Records {
			fmt.Fprintln(p.Stdout, r.Data())
		}
		return
	}
	if !q.answer {
		fmt.Fprintf(p.Stdout, "\n; <<>> DiG <<>> %s\n;; Got answer:\n;; ->>HEADER<<- opcode: QUERY, status: %s\n;; flags: qr aa rd; QUERY: 1, ANSWER: %d, AUTHORITY: 0, ADDITIONAL: %d\n\n;; QUESTION SECTION:\n;%s\tIN\t%s\n\n",
			strings.Join(p.Args[1:], " "), a.Code, len(a.Records), len(a.Extra), full, q.qtype)
		if len(a.Records) > 0 {
			fmt.Fprintln(p.Stdout, ";; ANSWER SECTION:")
		}
	}
	for _, r := range a.Records {
		fmt.Fprintf(p.Stdout, "%s\t%d\tIN\t%s\t%s\n", r.Name, r.TTL, r.Type, r.Data())
	}
	if !q.answer {
		fmt.Fprintf(p.Stdout, "\n;; SERVER: %s#53(%s)\n\n", q.server, q.server)
	}
}
