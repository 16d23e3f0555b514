package regions

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// Networks are the networks where daemons of regions may be, by region. A
// region without any has no limit but that of special.
type Networks map[string][]netip.Prefix

// special are networks where no daemon is unless its region has them: of this
// machine, of one link, of groups, and of the metadata of clouds.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("100.100.100.200/32"),
	netip.MustParsePrefix("224.0.0.0/3"), // also reserved ones, and the broadcast
	netip.MustParsePrefix("::/127"),
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("fd00:ec2::254/128"),
	netip.MustParsePrefix("ff00::/8"),
}

// Allow returns nil if daemons of a region may be at an IP address, for a
// daemon with an address of its own, self.
func (n Networks) Allow(region string, ip, self netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	contains := func(p netip.Prefix) bool { return p.Contains(ip) }
	if all := n[region]; len(all) > 0 {
		if slices.ContainsFunc(all, contains) {
			return nil
		}
		return fmt.Errorf("%s is in no network of region %q: add it to regions.%s.cidrs if a daemon is there", ip, region, region)
	}
	if self.Unmap().IsLoopback() && ip.IsLoopback() { // a cluster on one machine
		return nil
	}
	if i := slices.IndexFunc(special, contains); i >= 0 {
		return fmt.Errorf("%s is in %s, where no daemon is: add its network to regions.%s.cidrs if one is there", ip, special[i], region)
	}
	return nil
}

// Dialable reports whether the address of a daemon of a region, as peers report
// it, may be dialed. A name is checked when it is resolved, see MayDial.
func (t *Table) Dialable(region, addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return true
	}
	return t.MayDial(region, addr, ip) == nil
}

func (t *Table) dropAddress(region, addr string, err error) {
	t.mu.Lock()
	known := t.addresses[addr]
	if len(t.addresses) >= maxAddresses {
		clear(t.addresses)
	}
	t.addresses[addr] = true
	t.mu.Unlock()
	if known { // the directory repeats the question
		return
	}
	t.count(Address, region, "an address that peers report is not dialed", "region", region, "addr", addr, "error", err)
}

// self returns the IP address of the daemon, an invalid one if it has a name.
func (t *Table) self() netip.Addr {
	host, _, _ := net.SplitHostPort(t.config.Addr)
	if host == "localhost" {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	ip, _ := netip.ParseAddr(host)
	return ip
}

// MayDial returns the reason not to dial an IP address for an address of a
// region that peers report, nil for none. It is for names, once they are
// resolved.
func (t *Table) MayDial(region, addr string, ip netip.Addr) error {
	err := t.config.Networks.Allow(region, ip, t.self())
	if err != nil {
		t.dropAddress(region, addr, err)
	}
	return err
}
