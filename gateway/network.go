package gateway

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
)

// network is a prefix of a named network.
type network struct {
	netip.Prefix
	name string
}

// newNetworks returns the prefixes of named networks, the longest first: the
// first one that contains an address is the most specific one. Of two equal
// ones it is that of the first name.
func newNetworks(named map[string][]string) []network {
	var out []network
	for _, name := range slices.Sorted(maps.Keys(named)) {
		for _, text := range named[name] {
			p, _ := parsePrefix(text)
			out = append(out, network{p, name})
		}
	}
	slices.SortStableFunc(out, func(a, b network) int { return cmp.Compare(b.Bits(), a.Bits()) })
	return out
}

// networkOf returns the name of the most specific network of an address, "" for
// none.
func networkOf(all []network, a netip.Addr) string {
	for i := range all {
		if all[i].Contains(a) {
			return all[i].name
		}
	}
	return ""
}
