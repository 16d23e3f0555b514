package gateway

import (
	"net/netip"
	"strings"
)

// Bounds and defaults of the source client.
const (
	maxHops   = 16
	maxListed = 64 // addresses that are looked at
	defaultV4 = 32
	defaultV6 = 64
)

// client finds the address of the client. What a client sends itself stands at
// the beginning of the list, so it is read from the end.
type client struct {
	hops    int // 0 where trusted counts
	trusted []netip.Prefix
	header  string
	v4, v6  int
	// networks replace the address by the name of the one that it is in.
	networks []network
}

func newClient(c *Client) *client {
	out := &client{hops: c.Hops, header: forwardedFor, v4: c.V4, v6: c.V6, networks: newNetworks(c.Networks)}
	for _, text := range c.Trusted {
		p, _ := parsePrefix(text)
		out.trusted = append(out.trusted, p)
	}
	if out.hops == 0 && len(out.trusted) == 0 {
		out.hops = 1
	}
	if c.Header != "" {
		out.header = canonical(c.Header)
	}
	if out.v4 == 0 {
		out.v4 = defaultV4
	}
	if out.v6 == 0 {
		out.v6 = defaultV6
	}
	return out
}

// parsePrefix reads a network such as 10.0.0.0/8, or an address as one.
func parsePrefix(text string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked(), p.Addr().Zone() == "" && !p.Addr().Is4In6()
	}
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		return netip.Prefix{}, false
	}
	a = a.Unmap()
	return netip.PrefixFrom(a, a.BitLen()), true
}

// read returns the address, its network where fewer bits count, or the name of
// its network, which is missing for one that is in none.
func (c *client) read(r *Request) (string, Reason) {
	lines, p := r.Header[c.header], pick{client: c}
	switch {
	case c.header == forwarded:
		list, fault := forwardedList(lines)
		if fault != noFault {
			return "", fault
		}
		for i := len(list) - 1; i >= 0 && !p.done; i-- {
			p.see(list[i])
		}
	case c.header != forwardedFor && len(lines) > 1:
		return "", Repeated
	default: // several lines are one list
		for i := len(lines) - 1; i >= 0 && !p.done; i-- {
			for line := lines[i]; line != "" && !p.done; {
				at := strings.LastIndexByte(line, ',')
				if item := strings.Trim(line[at+1:], " \t"); item != "" {
					p.see(item)
				}
				line = line[:max(at, 0)]
			}
		}
	}
	if p.fault != noFault || !p.found.IsValid() {
		return "", p.fault
	}
	if len(c.networks) > 0 {
		return networkOf(c.networks, p.found), noFault
	}
	bits := c.v6
	if p.found.Is4() {
		bits = c.v4
	}
	if bits == p.found.BitLen() {
		return p.found.String(), noFault
	}
	network, _ := p.found.Prefix(bits)
	return network.String(), noFault
}

// pick takes the address of the client from a list that it sees from its end.
type pick struct {
	*client
	seen  int
	found netip.Addr // invalid while the list is too short
	fault Reason
	done  bool
}

// see takes the next item of the list.
func (p *pick) see(text string) {
	switch p.seen++; {
	case p.seen > maxListed:
		p.fault, p.done = TooLong, true
		return
	case p.seen < p.hops:
		return
	}
	addr, ok := parseAddr(text)
	if !ok {
		p.fault, p.done = BadAddress, true
		return
	}
	p.found, p.done = addr, p.hops > 0
	if !p.done {
		p.done = !p.trusts(addr)
	}
}

// trusts reports whether an address is that of a gateway.
func (c *client) trusts(addr netip.Addr) bool {
	for _, network := range c.trusted {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// parseAddr reads an address with or without a port. IPv4 in IPv6 is IPv4.
func parseAddr(text string) (netip.Addr, bool) {
	if inside, ok := strings.CutPrefix(text, "["); ok {
		host, port, closed := strings.Cut(inside, "]")
		if !closed || port != "" && port[0] != ':' {
			return netip.Addr{}, false
		}
		text = host
	} else if strings.Count(text, ":") == 1 {
		text, _, _ = strings.Cut(text, ":")
	}
	a, err := netip.ParseAddr(text)
	return a.Unmap().WithZone(""), err == nil
}
