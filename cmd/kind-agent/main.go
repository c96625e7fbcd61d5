// Command kind-agent runs inside the control plane's container of a kind cluster:
// it opens connections in the cluster's network and reads the audit log for
// labserver, over its standard input and output.
package main

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"kubistro/internal/cluster/kind/agent"
)

func main() {
	dns := flag.String("dns", "", "address of the cluster's name server, with its port")
	allow := flag.String("allow", "", "networks that connections may be opened to, with commas between")
	audit := flag.String("audit", "", "path of the API server's audit log")
	flag.Parse()
	c := agent.Config{DNS: *dns, Audit: *audit}
	for _, s := range strings.Split(*allow, ",") {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			fmt.Fprintln(os.Stderr, "kind-agent: --allow:", err)
			os.Exit(2)
		}
		c.Allowed = append(c.Allowed, p)
	}
	if err := agent.Serve(os.Stdin, os.Stdout, c); err != nil {
		fmt.Fprintln(os.Stderr, "kind-agent:", err)
		os.Exit(1)
	}
}
