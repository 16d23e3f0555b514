package swim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// Bounds of one round of asking.
const (
	maxAsked       = 16 // addresses of non-members, random ones if there are more
	maxResolved    = maxMembers
	askedAtOnce    = 8
	resolveTimeout = 3 * time.Second
)

// seedList is the result of resolving the seeds.
type seedList struct {
	at  []string // addresses of other daemons, without duplicates
	own bool     // this daemon's address is among them
	err error    // of seeds that could not be resolved
}

// resolveSeeds resolves all seeds. mine reports whether an address is this
// daemon's.
func resolveSeeds(ctx context.Context, seeds []string, mine func(netip.AddrPort) bool) seedList {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	var out seedList
	var errs []error
	seen := map[netip.AddrPort]bool{}
	for _, s := range seeds {
		found, err := resolve(ctx, s)
		if err != nil {
			errs = append(errs, fmt.Errorf("seed %s: %w", s, err))
		}
		for _, a := range found {
			if seen[a] || len(seen) >= maxResolved {
				continue
			}
			seen[a] = true
			if mine(a) {
				out.own = true
			} else {
				out.at = append(out.at, a.String())
			}
		}
	}
	out.err = errors.Join(errs...)
	return out
}

// resolve returns all addresses of one seed.
func resolve(ctx context.Context, seed string) ([]netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(seed)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return nil, err
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	out := make([]netip.AddrPort, len(ips))
	for i, ip := range ips {
		out[i] = netip.AddrPortFrom(ip.Unmap(), uint16(port))
	}
	return out, nil
}

// missing returns the addresses to contact: those of no member, in random order
// and at most those of one round.
func (l seedList) missing(members map[string]bool) []string {
	out := slices.DeleteFunc(slices.Clone(l.at), func(a string) bool { return members[a] })
	rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:min(len(out), maxAsked)]
}

// alone reports whether the seeds are this daemon and no other.
func (l seedList) alone() bool { return l.own && len(l.at) == 0 && l.err == nil }
