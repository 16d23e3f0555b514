package swarm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim/load"
)

// features draws what half of the runs have beside plain limits and calls:
// nested descriptors, patterns, modes, large limits, windows that roll,
// refunds, peeks, and limits that come with calls. It draws from a stream of
// its own, so that the rest of a run is the same without it.
type features struct {
	rng    *rand.Rand // nil for a run without
	shapes []shape    // of the keys of the limits
	quotas float64    // the part of them in quota mode
	names  int        // that limits have
	named  float64    // the part of them that have one
}

// shape is how the descriptors of a key look, in all rule sets of a run.
type shape uint8

const (
	plain     shape = iota
	nested          // a value, and below it another key
	pattern         // values by a pattern, and mostly the key alone too
	shared          // a pattern whose values share a counter
	unlimited       // no count
	listed          // no limit

	shapeKinds = iota
)

// streamFeatures is the stream of features.
const streamFeatures = uint64(1)<<62 + 1

// rolls is a wall time at which all windows of up to 6 days roll.
const rolls = 341 * 60 * 24 * time.Hour

// extra draws from the stream of features, where the run has them.
func (d *draw) extra(f func()) {
	if d.features.rng == nil {
		return
	}
	plain := d.Rand
	d.Rand = d.features.rng
	f()
	d.Rand = plain
}

func (d *draw) drawFeatures(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, streamFeatures))
	if rng.Float64() < 0.5 {
		return
	}
	d.features.rng = rng
	d.extra(func() {
		for range maxKeys {
			s := plain
			if d.chance(0.5) {
				s = shape(d.IntN(shapeKinds))
			}
			d.features.shapes = append(d.features.shapes, s)
		}
		// Quotas matter to calls with several, and names where others replace
		// them.
		d.features.quotas = []float64{0.1, 0.1, 0.1, 0.8}[d.IntN(4)]
		d.features.names = d.between(2, maxKeys)
		d.features.named = []float64{0.4, 0.4, 0.9}[d.IntN(3)]
		if d.chance(0.6) {
			d.cfg.Epoch = int64(rolls - d.time(0, d.cfg.Duration))
		}
	})
}

// descriptors writes the descriptors of a key, and returns what can be asked of
// them.
func (d *draw) descriptors(b *strings.Builder, i int) (asks []ask) {
	key, s := string(rune('p'+i)), plain
	if d.features.rng != nil {
		s = d.features.shapes[i]
	}
	entry := func(value string, more ...rules.Entry) []rules.Entry {
		return append([]rules.Entry{{Key: key, Value: value}}, more...)
	}
	write := func(value, beside, limit string) {
		fmt.Fprintf(b, "  - key: %s\n", key)
		if value != "" {
			fmt.Fprintf(b, "    value: %q\n", value)
		}
		b.WriteString(beside)
		if limit != "" {
			fmt.Fprintf(b, "    rate_limit: {%s}\n", limit)
		}
	}
	limit, most := d.limit()
	switch s {
	case plain:
		write("", d.mode("    "), d.named(limit))
		return []ask{{entry(load.Drawn), most}}
	case nested:
		own, ownMost := d.limit()
		write("in", d.mode("    "), d.named(own))
		fmt.Fprintf(b, "    descriptors:\n      - key: n\n%s        rate_limit: {%s}\n", d.mode("        "), d.named(limit))
		n := rules.Entry{Key: "n", Value: load.Drawn}
		return []ask{{entry("in", n), most}, {entry("in"), ownMost}}
	case pattern, shared:
		beside := d.mode("    ")
		if s == shared {
			beside += "    share_threshold: true\n"
		}
		write("w-*", beside, d.named(limit))
		asks = []ask{{entry("w-*"), most}}
		other, _ := d.limit()
		write("w-key-1", d.mode("    "), d.named(other)) // one of its values
		if d.odd() {
			other, otherMost := d.limit()
			write("", d.mode("    "), d.named(other))
			asks = append(asks, ask{entry(load.Drawn), otherMost})
		}
		return asks
	case unlimited:
		write("", d.mode("    "), d.named("unlimited: true"))
	case listed:
		write("", "", "")
	}
	return []ask{{entry(load.Drawn), most}}
}

// odd is true half of the time.
func (d *draw) odd() (odd bool) {
	d.extra(func() { odd = d.chance(0.5) })
	return odd
}

// mode draws the lines of a descriptor in shadow mode or quota mode.
func (d *draw) mode(indent string) (lines string) {
	d.extra(func() {
		if d.chance(0.15) {
			lines += indent + "shadow_mode: true\n"
		}
		if d.chance(d.features.quotas) {
			lines += indent + "quota_mode: true\n"
		}
	})
	return lines
}

// named adds a name to a limit and the names of others that it replaces.
func (d *draw) named(limit string) string {
	d.extra(func() {
		own := -1
		if d.chance(d.features.named) {
			own = d.IntN(d.features.names)
			limit += fmt.Sprintf(", name: l%d", own)
		}
		if other := d.IntN(d.features.names); other != own && d.chance(d.features.named*2/3) {
			limit += fmt.Sprintf(", replaces: [{name: l%d}]", other)
		}
	})
	return limit
}

// factor draws by how much a limit is larger than most: thousands to billions.
func (d *draw) factor() (factor int) {
	factor = 1
	d.extra(func() {
		for d.chance(0.2) && factor < 10_000_000 {
			factor *= []int{10, 1000, 20_000}[d.IntN(3)]
		}
	})
	return min(factor, 20_000_000) // up to 200 of them fit 32 bits
}

// client draws what clients of a workload do beside asking.
func (d *draw) client(l *load.Workload, most uint64) {
	d.extra(func() {
		if most > 1_000 { // so that the limit is reached
			l.Hits = max(1, most/uint64(d.between(5, 500)))
		}
		if d.chance(0.05) {
			l.Hits = 0
		}
		if d.chance(0.3) {
			l.Heavy, l.HeavyHits = d.fraction()/5, min(1+d.Uint64N(3*most+1), 1<<32-1)
		}
		if d.chance(0.3) {
			l.Peek = d.fraction() / 2
		}
		if d.chance(0.2) { // mostly deeper than any limit
			deeper := slices.Clone(d.asks[d.IntN(len(d.asks))][0].entries)
			l.Descriptors = append(l.Descriptors, append(deeper, rules.Entry{Key: "n", Value: load.Drawn}))
		}
		if o := &l.Override; d.chance(0.2) {
			o.Share, o.Descriptor = d.fraction(), d.IntN(len(l.Descriptors))
			o.Requests = uint32(min(d.Uint64N(most+2), 1<<32-1))
			o.Unit = []rules.Unit{rules.Second, rules.Minute, rules.Hour}[d.IntN(3)]
		}
		if d.strict && d.chance(0.2) {
			l.Patience = d.wild(2*time.Millisecond, 500*time.Millisecond)
		}
		if r := &l.Refund; d.chance(0.6) {
			r.Share, r.After = d.fraction(), d.wild(time.Millisecond, 10*time.Second)
			maybe(d, 0.5, &r.Part, d.ratio, 0, 1)
			maybe(d, 0.5, &r.Twice, d.ratio, 0, 1)
			maybe(d, 0.3, &r.Elsewhere, d.ratio, 0, 1)
		}
	})
}

// ratio draws a share, in parts per million.
func (d *draw) ratio(low, high float64) float64 { return low + (high-low)*d.fraction() }
