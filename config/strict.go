package config

import (
	"slices"
	"time"

	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky/route"
)

// Strict holds the settings of limits whose keys have owners: strict ones, and
// those with too few rights to spread.
type Strict struct {
	// Replicas are the names of durable daemons of the region: 1, 2, 3, 5, 7 or
	// 9. Their number decides where the rights of rules in files are placed.
	// They are mandatory with State.Dir but for a witness. The control log
	// chooses the strict voters.
	Replicas []string
	// Headroom is the number of hits of a key that the voters store in advance,
	// 1 to 10,000. A window in which the owner fails may admit as many fewer;
	// more headroom means fewer disk writes.
	Headroom int
	// Prefetch is the number of hits that a daemon leases ahead for a key in
	// regular use, 0 to 1,000, as far as they are a small part of the rest of
	// the limit; 0 disables this.
	Prefetch int
	// ForwardTimeout is how long a call waits for an owner of its own region, 5
	// ms to 5 s. For an owner of another region it waits for the round trip and
	// ForwardMargin, 5 ms to 5 s too.
	ForwardTimeout, ForwardMargin time.Duration
	Breaker                       Breaker
}

// Breaker configures the circuit breaker of an owner. While it is open,
// on_failure applies at once.
type Breaker struct {
	// Errors is the part of failed lease requests in Window that opens the
	// breaker, above 0 and at most all of them. With fewer than Calls requests,
	// 1 to 1,000,000, it stays closed.
	Errors rules.PPM
	// Window is the time over which requests are counted, 1 s to 10 min.
	Window time.Duration
	Calls  int
	// Open is the time until an open breaker sends one request, 1 s to 1 h. A
	// grant closes it.
	Open time.Duration
}

// HotKey configures the treatment of hot keys.
type HotKey struct {
	// Threshold is the hits a second at this daemon that make a key hot: owners
	// grant larger leases of it, and its counts are sent to peers at once. Up
	// to 1,000,000,000; 0 for never.
	Threshold int
}

func defaultStrict() Strict {
	return Strict{
		Headroom: 20, Prefetch: 16, ForwardTimeout: 50 * time.Millisecond, ForwardMargin: 100 * time.Millisecond,
		Breaker: Breaker{Errors: 50 * rules.Percent, Window: 10 * time.Second, Calls: 10, Open: time.Minute},
	}
}

func defaultHotKey() HotKey { return HotKey{Threshold: 10_000} }

// StrictReplicas returns the names in Strict.Replicas, sorted;
// nil for a daemon without rights.
func (c *Config) StrictReplicas() []string {
	if c.Region == "" || c.NoRights() != "" {
		return nil
	}
	return slices.Sorted(slices.Values(c.Strict.Replicas))
}

// replicas checks the names of the strict voters.
func (v *validator) replicas(c *Config) {
	list := c.Strict.Replicas
	const field = "strict.replicas"
	switch n := len(list); {
	case c.Witness():
		return
	case n == 0 && c.State.Dir != "":
		v.faultFor(field, "state.dir", "is missing: name the strict voters of the region, the same at each daemon of it, "+
			"such as us-0,us-1,us-2")
		return
	case n == 0:
		return
	case c.State.Dir == "" && !c.State.Diskless:
		v.fault(field, "has no effect without state.dir, the folder that strict voters need, or state.diskless")
		return
	case c.State.Dir == "" && c.Name != "" && slices.Contains(list, c.Name):
		v.faultFor(field, "state.diskless", "names this daemon, %s, which is diskless: only daemons with state.dir vote", c.Name)
		return
	case n > route.MaxReplicas:
		v.fault(field, "%d names: at most %d", n, route.MaxReplicas)
		return
	case n%2 == 0 && n > 2:
		v.fault(field, "%d names: name an odd number; of %d no more may be down than of %d", n, n, n-1)
	}
	v.distinct(field, list)
}
