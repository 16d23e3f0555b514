package load

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// Bounds on load. They keep a scenario from costing more than a machine has.
const (
	MaxRegions  = 16
	MaxDuration = 30 * 24 * time.Hour
	MaxRate     = 1_000_000 // requests a second of a workload
	MaxNames    = 1_000_000 // values of keys of a workload
	MaxPulse    = 1_000_000 // requests of a pulse in a region
)

// Drawn is the value of a descriptor entry that stands for the drawn key, also
// inside of a longer value: "vip-*".
const Drawn = "*"

// Workload is clients that ask for something. They come at Rate by a Poisson
// process, or in the pattern of Bursts or Pulse, and ask a daemon of their
// region that is up, each as likely.
type Workload struct {
	Name   string
	Domain string
	// Descriptors holds the descriptors of a call, at least one. The value
	// Drawn of an entry is replaced by the key drawn for the call.
	Descriptors [][]rules.Entry
	// Hits is how much one call asks for; 0 charges nothing. Heavy is the share
	// of calls that ask for HeavyHits instead, Peek that of calls that charge
	// nothing.
	Hits, HeavyHits uint64
	Heavy, Peek     float64
	// Rate is requests a second of all regions together, 0 to MaxRate.
	Rate float64
	// Regions is how the rate is split; empty is evenly. They are weights, in
	// the order of Config.Regions.
	Regions []float64
	// From and To bound the load in time; a To of 0 is the end of the run.
	From, To time.Duration

	// Keys is how many values are drawn from, default 1, the k-th most common
	// in proportion to 1/k^Zipf. NewKeys gives every call a new one instead.
	// Hot is the share of calls that ask for the first key whatever is drawn.
	Keys    int
	Zipf    float64
	NewKeys bool
	Hot     float64

	Bursts   *Bursts
	Pulse    *Pulse
	Moving   *Moving
	Retry    *Retry
	Override override
	Refund   refund
	// Patience is how long a client waits for an answer before it leaves, 0 for
	// ever.
	Patience time.Duration
	Failover bool // ask the next region that is up when no daemon is up here
	// Pinned lets all calls for a key come to one daemon of each region, the
	// same as long as the same are up, instead of any.
	Pinned bool
}

// Bursts is load that is on and off by turns, in each region for itself: Rate
// while on, nothing while off, both exponentially distributed.
type Bursts struct{ On, Off time.Duration }

// Pulse is requests that come in all regions at once: Requests in each, spread
// over Within, first at From and then each Every. Spread draws how much later
// than that each pulse begins, and Solo lets it come in one region, which is
// drawn; both are the same for all regions.
type Pulse struct {
	Every, Within, Spread time.Duration
	Requests              int
	Solo                  bool
}

// Moving is a hot spot: for each Every another region has Share of the rate.
type Moving struct {
	Every time.Duration
	Share float64
}

// Retry is clients that retry when they are denied, up to Attempts times: after
// the Retry-After of the answer, or after Backoff when it is not 0. Jitter
// spreads them over as large a share of that time beyond it.
type Retry struct {
	Attempts int
	Backoff  time.Duration
	Jitter   float64
}

// override is a limit that comes with a Share of the calls, for the descriptor
// of a number. A Share of 0 is none.
type override struct {
	rules.Override

	Descriptor int
	Share      float64
}

// refund is clients that refund a Share of the descriptors that were admitted:
// After that long on average, all of their hits or, in a Part of the refunds,
// some of them. They send a share of the tokens Twice, and a share Elsewhere:
// to any daemon instead of the one that issued them. A Share of 0 is none.
type refund struct {
	Share, Part, Twice, Elsewhere float64
	After                         time.Duration
}

// Validate returns an error for the first field out of its range.
func (l *Workload) Validate() error {
	switch {
	case l.Domain == "" || len(l.Descriptors) == 0 || len(l.Descriptors) > node.MaxDescriptors:
		return fmt.Errorf("domain %q and %d descriptors: want a name and 1 to %d",
			l.Domain, len(l.Descriptors), node.MaxDescriptors)
	case !(l.Rate >= 0 && l.Rate <= MaxRate):
		return fmt.Errorf("rate %v: want 0 to %d a second", l.Rate, MaxRate)
	case l.Keys < 0 || l.Keys > MaxNames:
		return fmt.Errorf("%d keys: want at most %d", l.Keys, MaxNames)
	case !(l.Zipf >= 0 && l.Zipf <= 10):
		return fmt.Errorf("zipf %v: want 0 to 10", l.Zipf)
	case !(l.Hot >= 0 && l.Hot <= 1):
		return fmt.Errorf("hot %v: want 0 to 1", l.Hot)
	case l.Override.Share > 0 && (l.Override.Descriptor < 0 || l.Override.Descriptor >= len(l.Descriptors)):
		return fmt.Errorf("a limit for descriptor %d: want 0 to %d", l.Override.Descriptor, len(l.Descriptors)-1)
	case l.Override.Share > 0 && (l.Override.Unit == rules.NoUnit || l.Override.Unit > rules.Year):
		return fmt.Errorf("a limit without a unit")
	case l.Refund.Share > 0 && l.Refund.After <= 0:
		return fmt.Errorf("refunds after %v: want more than 0", l.Refund.After)
	case l.Patience < 0:
		return fmt.Errorf("patience %v: want 0 or more", l.Patience)
	case l.Bursts != nil && (l.Bursts.On <= 0 || l.Bursts.Off < 0):
		return fmt.Errorf("bursts on %v, off %v: want more than 0, and 0 or more", l.Bursts.On, l.Bursts.Off)
	}
	o, r := &l.Override, &l.Refund
	for _, share := range [...]float64{l.Heavy, l.Peek, o.Share, r.Share, r.Part, r.Twice, r.Elsewhere} {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("a share of calls of %v: want 0 to 1", share)
		}
	}
	for _, f := range l.Regions {
		if !(f >= 0) || math.IsInf(f, 0) {
			return fmt.Errorf("a region's weight of %v: want 0 or more", f)
		}
	}
	return l.validatePattern()
}

func (l *Workload) validatePattern() error {
	if p := l.Pulse; p != nil {
		if p.Spread < 0 || p.Spread > MaxDuration {
			return fmt.Errorf("pulse begins up to %v late: want 0 or more", p.Spread)
		}
		if p.Every <= 0 || p.Within < 0 || p.Requests < 1 || p.Requests > MaxPulse {
			return fmt.Errorf("pulse of %d requests in %v each %v: want 1 to %d, 0 or more, and more than 0",
				p.Requests, p.Within, p.Every, MaxPulse)
		}
	}
	if m := l.Moving; m != nil && (m.Every <= 0 || !(m.Share >= 0 && m.Share <= 1)) {
		return fmt.Errorf("moving share %v each %v: want 0 to 1, and more than 0", m.Share, m.Every)
	}
	if r := l.Retry; r != nil && (r.Attempts < 1 || r.Backoff < 0 || !(r.Jitter >= 0 && r.Jitter <= 100)) {
		return fmt.Errorf("retry %d times after %v with jitter %v: want at least once, 0 or more, 0 to 100",
			r.Attempts, r.Backoff, r.Jitter)
	}
	return nil
}

// weight is the share of the rate that a region has on average.
func (l *Workload) weight(region, regions int) float64 {
	if len(l.Regions) == 0 {
		return 1 / float64(regions)
	}
	sum := 0.0
	for _, f := range l.Regions {
		sum += f
	}
	if sum == 0 || region >= len(l.Regions) {
		return 0
	}
	return l.Regions[region] / sum
}

// Call appends the descriptors of a call for a key to out, with the memory of
// former ones.
func (l *Workload) Call(out []rules.Descriptor, key string, hits uint64) []rules.Descriptor {
	for _, entries := range l.Descriptors {
		n := len(out)
		if n < cap(out) { // with the memory of its entries
			out = out[:n+1]
		} else {
			out = append(out, rules.Descriptor{})
		}
		d := &out[n]
		d.Entries, d.Hits, d.Override = append(d.Entries[:0], entries...), hits, rules.Override{}
		for i := range d.Entries {
			switch value := d.Entries[i].Value; {
			case value == Drawn:
				d.Entries[i].Value = key
			case strings.Contains(value, Drawn):
				d.Entries[i].Value = strings.Replace(value, Drawn, key, 1)
			}
		}
	}
	return out
}
