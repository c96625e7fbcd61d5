package pantry

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// datagrams are the UDP servers of a process.
type datagrams struct {
	open   []net.PacketConn
	served sync.WaitGroup
}

// serve answers what arrives at an address; an answer that isn't ok is none. Texts are cut at size.
func (d *datagrams) serve(a *agnhost, address string, size int, answer func(from, text string) (reply string, ok bool)) error {
	l, err := a.Net.ListenPacket(address)
	if err != nil {
		return err
	}
	d.open = append(d.open, l)
	d.served.Go(func() {
		b := make([]byte, size)
		for {
			n, from, err := l.ReadFrom(b)
			if err != nil {
				return
			}
			if reply, ok := answer(from.String(), string(b[:n])); ok {
				l.WriteTo([]byte(reply), from) // lost answers are asked for again
			}
		}
	})
	return nil
}

func (d *datagrams) stop() {
	for _, l := range d.open {
		l.Close()
	}
	d.served.Wait()
}

// listenUDP starts the UDP side of netexec at each of the addresses; "" is all of them.
func (n *netexec) listenUDP(d *datagrams, addresses string, port int) error {
	list := strings.Split(addresses, ",")
	slices.Sort(list)
	for _, address := range slices.Compact(list) {
		if _, err := netip.ParseAddr(address); err != nil && address != "" {
			return fmt.Errorf("parseAddress: invalid address %s", address)
		}
		at := net.JoinHostPort(address, fmt.Sprint(port))
		if err := d.serve(n.agnhost, at, 2048, n.answerUDP(port)); err != nil {
			return fmt.Errorf("failed to create listener for UDP address %s: %s", at, listenError(err))
		}
		n.printf("Started UDP server on port %s %d", cmp.Or(address, "::"), port)
	}
	n.ready.Store(true)
	return nil
}

// answerUDP carries out a command: hostname, echo TEXT, clientip, serverport, envvar NAME.
func (n *netexec) answerUDP(port int) func(from, text string) (string, bool) {
	return func(from, text string) (string, bool) {
		text = strings.TrimSpace(text)
		command, rest, _ := strings.Cut(text, " ")
		switch command = strings.ToLower(command); {
		case text == "":
			return "", false
		case command == "hostname" && rest == "":
			n.printf("Sending udp hostName response")
			return n.Hostname, true
		case command == "envvar" && rest != "":
			name := strings.TrimSpace(rest)
			n.printf("Sending UDP envvar response for %s", name)
			return n.Getenv(name), true
		case command == "echo" && rest != "":
			n.printf("Echoing %s to UDP client %s", strings.ToLower(rest), from)
			return strings.ToLower(rest), true
		case command == "clientip" && rest == "":
			n.printf("Sending clientip back to UDP client %s", from)
			return from, true
		case command == "serverport" && rest == "":
			n.printf("Sending server port to UDP client %d", port)
			return fmt.Sprint(port), true
		}
		n.printf("Unknown UDP command received from %s: %s", from, strings.ToLower(text))
		return "", false
	}
}
