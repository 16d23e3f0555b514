package config

import (
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/rules"
)

// Strict is how limits are decided that one daemon, the home of a key, holds
// for others: strict ones, and those whose rights are too few to spread.
type Strict struct {
	// Replicas are the names of the daemons of the region that hold what homes
	// have used, a majority of them each hit: 1, 3, 5, 7 or 9 of Rights.Daemons,
	// or both of two; nil for the first three of these by name. It counts at the
	// first start; from then on it is changed by command.
	Replicas []string
	// Headroom is how many hits of a key a home has them hold ahead, 1 to 10,000.
	// So many fewer may be admitted in a window in which the home dies, and the
	// disks are written to the less often the more they are.
	Headroom int
	// Prefetch is how many rights to a key a daemon that is asked for it now and then
	// keeps, 0 to 1,000, where they are a small part of what is left.
	Prefetch int
	// ForwardTimeout is how long a call waits for a home of its own region, 5
	// ms to 5 s. For one of another region it is the round trip and
	// ForwardMargin, 5 ms to 5 s too.
	ForwardTimeout, ForwardMargin time.Duration
	Breaker                       Breaker
}

// Breaker is when a daemon stops asking another one that is home and does not
// answer, and goes by on_failure at once.
type Breaker struct {
	// Errors is the share of asks in Window that failed, above 0 and at most all
	// of them; it means nothing below Calls of them, 1 to 1,000,000.
	Errors rules.PPM
	// Window is the time that asks are counted over, 1 s to 10 min.
	Window time.Duration
	Calls  int
	// Open is how long none is sent; then one is, and its answer ends this. 1 s
	// to 1 h.
	Open time.Duration
}

// HotKey is when a key is asked for so often that it is treated apart.
type HotKey struct {
	// Threshold is the hits a second at this daemon from which on homes grant
	// more of the key at once, and its counts are told to others at once: up to
	// 1,000,000,000; 0 for never.
	Threshold int
}

// Bounds on the settings of strict keys.
const (
	// fewReplicas is how many replicas there are unless they are named.
	fewReplicas     = 3
	maxHeadroom     = 10_000
	maxPrefetch     = 1_000
	maxBreakerCalls = 1_000_000
	maxHotKey       = 1_000_000_000
)

func defaultStrict() Strict {
	return Strict{
		Headroom: 20, Prefetch: 16, ForwardTimeout: 50 * time.Millisecond, ForwardMargin: 100 * time.Millisecond,
		Breaker: Breaker{Errors: 50 * rules.Percent, Window: 10 * time.Second, Calls: 10, Open: time.Minute},
	}
}

func defaultHotKey() HotKey { return HotKey{Threshold: 10_000} }

// StrictReplicas returns the names of the daemons of the own region that hold
// what homes have used, sorted: those that were named, else the first three of
// Rights.Daemons, all of them where there are fewer. It is nil for a daemon
// that holds no rights.
func (c *Config) StrictReplicas() []string {
	if c.Region == "" || c.Rights.Dir == "" {
		return nil
	}
	out := slices.Clone(c.Strict.Replicas)
	if len(out) == 0 {
		out = slices.Clone(c.Rights.Daemons)
		slices.Sort(out)
		return out[:min(len(out), fewReplicas)]
	}
	slices.Sort(out)
	return out
}

func (v *validator) strict(c *Config) {
	s := &c.Strict
	v.replicas(s.Replicas, &c.Rights)
	v.number("strict.headroom", s.Headroom, 1, maxHeadroom)
	v.number("strict.prefetch", s.Prefetch, 0, maxPrefetch)
	v.between("strict.forward_timeout", s.ForwardTimeout, 5*time.Millisecond, 5*time.Second)
	v.between("strict.forward_margin", s.ForwardMargin, 5*time.Millisecond, 5*time.Second)
	b := &s.Breaker
	if b.Errors == 0 || b.Errors > rules.Whole {
		v.fault("strict.breaker.errors", "%s is out of range: above 0 and at most 1", shortRatio(b.Errors))
	}
	v.between("strict.breaker.window", b.Window, time.Second, 10*time.Minute)
	v.number("strict.breaker.calls", b.Calls, 1, maxBreakerCalls)
	v.between("strict.breaker.open", b.Open, time.Second, time.Hour)
}

// replicas checks names of which a majority must be able to tell.
func (v *validator) replicas(list []string, r *Rights) {
	const field = "strict.replicas"
	switch n := len(list); {
	case n == 0:
		return
	case r.Dir == "":
		v.fault(field, "does nothing without rights.dir, the folder that replicas need")
		return
	case n > route.MaxReplicas:
		v.fault(field, "%d names: at most %d", n, route.MaxReplicas)
		return
	case n == 2 && len(r.Daemons) == 2:
		// Both of a region of two: more cannot be had.
	case n%2 == 0:
		v.fault(field, "%d names: name an odd number, for of %d no more may be down than of %d", n, n, n-1)
	}
	for i, name := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		switch {
		case slices.Contains(list[:i], name):
			v.fault(at, "%q is there twice", name)
		case len(r.Daemons) > 0 && !slices.Contains(r.Daemons, name):
			v.fault(at, "%s is none of rights.daemons: %s", excerpt(name), listNames(r.Daemons))
		}
	}
}
