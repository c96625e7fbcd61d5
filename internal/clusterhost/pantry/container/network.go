package container

import (
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"kubistro/internal/clusterhost/vnet"
)

// patience is how long a name server is waited for, as resolv.conf(5) has it by default.
const patience = 5 * time.Second

// kernelNetwork is the container's network (pantry.Network).
type kernelNetwork struct{}

func (kernelNetwork) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, address)
}

func (kernelNetwork) Listen(address string) (net.Listener, error) { return net.Listen("tcp", address) }

func (kernelNetwork) ListenPacket(address string) (net.PacketConn, error) {
	return net.ListenPacket("udp", address)
}

func (kernelNetwork) IPs() []netip.Addr {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var out []netip.Addr
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil && !p.Addr().IsLoopback() && !p.Addr().IsLinkLocalUnicast() {
			out = append(out, p.Addr())
		}
	}
	return out
}

func (kernelNetwork) LookupHost(ctx context.Context, name string) ([]netip.Addr, error) {
	list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	for i := range list {
		list[i] = list[i].Unmap()
	}
	return list, err
}

func (kernelNetwork) DNS() vnet.DNSConfig {
	data, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return vnet.DNSConfig{}
	}
	return resolvConf(string(data))
}

// resolvConf reads what the pantry's programs use of resolv.conf(5).
func resolvConf(text string) vnet.DNSConfig {
	c := vnet.DNSConfig{Ndots: 1}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		switch f[0] {
		case "nameserver":
			ip, err := netip.ParseAddr(f[1])
			switch {
			case err != nil:
			case !c.Nameserver.IsValid():
				c.Nameserver = ip
			default:
				c.More = append(c.More, ip)
			}
		case "search":
			c.Search = f[1:]
		case "options":
			for _, o := range f[1:] {
				if n, err := strconv.Atoi(strings.TrimPrefix(o, "ndots:")); err == nil && strings.HasPrefix(o, "ndots:") {
					c.Ndots = n
				}
			}
		}
	}
	return c
}

// QueryAt asks by TCP, whose answers are whole.
func (n kernelNetwork) QueryAt(ctx context.Context, server netip.Addr, name, qtype string) (vnet.Answer, error) {
	address := netip.AddrPortFrom(server, 53).String()
	failed := func(err error) (vnet.Answer, error) {
		timeout, ok := err.(net.Error)
		return vnet.Answer{}, &net.DNSError{Err: err.Error(), Name: name, Server: address, IsTimeout: ok && timeout.Timeout()}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	id := uint16(rand.Uint32())
	query, err := question(id, name, qtype)
	if err != nil {
		return failed(err)
	}
	conn, err := n.DialContext(ctx, "tcp", address)
	if err != nil {
		return failed(err)
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return failed(err)
		}
	}
	if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...)); err != nil {
		return failed(err)
	}
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return failed(err)
	}
	reply := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(conn, reply); err != nil {
		return failed(err)
	}
	answer, err := readAnswer(id, reply)
	if err != nil {
		return failed(err)
	}
	return answer, nil
}

var types = map[string]dnsmessage.Type{
	"A": dnsmessage.TypeA, "AAAA": dnsmessage.TypeAAAA, "CNAME": dnsmessage.TypeCNAME,
	"SRV": dnsmessage.TypeSRV, "PTR": dnsmessage.TypePTR, "TXT": dnsmessage.TypeTXT,
}

func question(id uint16, name, qtype string) ([]byte, error) {
	t, ok := types[strings.ToUpper(qtype)]
	if !ok {
		t = dnsmessage.TypeALL
	}
	full, err := dnsmessage.NewName(strings.TrimSuffix(name, ".") + ".")
	if err != nil {
		return nil, err
	}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: id, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: full, Type: t, Class: dnsmessage.ClassINET}},
	}
	return m.Pack()
}

// readAnswer turns a message into what the programs print.
func readAnswer(id uint16, reply []byte) (vnet.Answer, error) {
	var m dnsmessage.Message
	if err := m.Unpack(reply); err != nil {
		return vnet.Answer{}, err
	}
	if m.ID != id {
		return vnet.Answer{}, &net.DNSError{Err: "the answer is to another question"}
	}
	a := vnet.Answer{Code: "NOERROR", Records: records(m.Answers), Extra: records(m.Additionals)}
	switch m.RCode {
	case dnsmessage.RCodeSuccess:
	case dnsmessage.RCodeNameError:
		a.Code = "NXDOMAIN"
	default:
		return a, &net.DNSError{Err: "server misbehaving: " + m.RCode.String(), IsTemporary: true}
	}
	return a, nil
}

func records(list []dnsmessage.Resource) []vnet.Record {
	var out []vnet.Record
	for _, r := range list {
		x := vnet.Record{Name: r.Header.Name.String(), TTL: int(r.Header.TTL), Type: strings.TrimPrefix(r.Header.Type.String(), "Type")}
		switch b := r.Body.(type) {
		case *dnsmessage.AResource:
			x.Addr = netip.AddrFrom4(b.A)
		case *dnsmessage.AAAAResource:
			x.Addr = netip.AddrFrom16(b.AAAA)
		case *dnsmessage.CNAMEResource:
			x.Text = b.CNAME.String()
		case *dnsmessage.PTRResource:
			x.Text = b.PTR.String()
		case *dnsmessage.TXTResource:
			x.Text = strings.Join(b.TXT, "")
		case *dnsmessage.SRVResource:
			x.Text, x.Priority, x.Weight, x.Port = b.Target.String(), int(b.Priority), int(b.Weight), int(b.Port)
		default:
			continue
		}
		out = append(out, x)
	}
	return out
}
