package transfer

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/rules"

	"pgregory.net/rapid"
)

// amount draws amounts that are small, so that cases meet, or of any size.
func amount(t *rapid.T, name string) uint64 {
	return rapid.OneOf(
		rapid.Uint64Range(0, 12), rapid.Uint64Range(0, 10_000), rapid.Uint64(),
		rapid.Uint64Range(math.MaxUint64-12, math.MaxUint64),
	).Draw(t, name)
}

// instant draws instants and times, negative ones too.
func instant(t *rapid.T, name string) int64 {
	return rapid.OneOf(rapid.Int64Range(-5, 400), rapid.Int64Range(0, 100_000), rapid.Int64()).Draw(t, name)
}

func drawOwn(t *rapid.T) DonorState {
	if rapid.Bool().Draw(t, "silent") {
		return DonorState{Rights: amount(t, "rights")}
	}
	return DonorState{amount(t, "rights"), amount(t, "recent"), amount(t, "second")}
}

func drawTerms(t *rapid.T) Policy {
	if rapid.Bool().Draw(t, "usual") {
		window := rapid.Int64Range(1000, 60_000).Draw(t, "window")
		return Policy{
			rapid.Bool().Draw(t, "entity"), rules.PPM(rapid.IntRange(0, 300_000).Draw(t, "budget")),
			window, rapid.Int64Range(0, rapid.SampledFrom([]int64{window / 8, window / 4}).Draw(t, "most")+1).Draw(t, "delay"),
		}
	}
	return Policy{
		rapid.Bool().Draw(t, "entity"), rules.PPM(rapid.Uint32().Draw(t, "budget")),
		instant(t, "window"), instant(t, "delay"),
	}
}

func drawRegion(t *rapid.T) Region {
	if rapid.Bool().Draw(t, "usual") {
		n := rapid.Uint64Range(0, 3000)
		return Region{n.Draw(t, "base"), n.Draw(t, "available"), n.Draw(t, "offered")}
	}
	return Region{amount(t, "base"), amount(t, "available"), amount(t, "offered")}
}

// exact returns a*b/c without overflow, rounded up or down.
func exact(a, b, c *big.Int, up bool) *big.Int {
	q, r := new(big.Int).QuoRem(new(big.Int).Mul(a, b), c, new(big.Int))
	if up && r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

func whole(n uint64) *big.Int { return new(big.Int).SetUint64(n) }

func sum(a, b uint64) *big.Int { return new(big.Int).Add(whole(a), whole(b)) }

// Rates agree with a list of all hits.
func TestRatesAreThoseOfTheHits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Rates
		var hits [][2]uint64 // Tick and amount.
		var now int64
		for range rapid.IntRange(1, 40).Draw(t, "hits") {
			now += rapid.OneOf(rapid.Int64Range(0, 300), rapid.Int64Range(900, 4000)).Draw(t, "gap")
			if rapid.Bool().Draw(t, "offer") {
				n := rapid.Uint64Range(0, 9).Draw(t, "n")
				r.Offer(now, n)
				hits = append(hits, [2]uint64{uint64(now / TickMS), n})
			}
			var h, q uint64
			for _, x := range hits {
				age := uint64(now/TickMS) - x[0]
				if age < 2 {
					h += x[1]
				}
				if age < ticks {
					q += x[1]
				}
			}
			if got := [2]uint64{r.Recent(now), r.Second(now)}; got != [2]uint64{h, q} {
				t.Fatalf("at %d: rates %v, the hits say %v", now, got, [2]uint64{h, q})
			}
		}
	})
}

// Rates stand any instant and any amount, and saturate.
func TestRatesSaturate(t *testing.T) {
	var r Rates
	for _, now := range []int64{math.MinInt64, 5, math.MaxInt64, math.MaxInt64, 0, -7} {
		r.Offer(now, math.MaxUint64)
		r.Offer(now, math.MaxUint64)
		if h := r.Recent(now); h != math.MaxUint32 {
			t.Fatalf("at %d: recent %d", now, h)
		}
	}
	if q := Rate(math.MaxUint64, 1); q != math.MaxUint64 {
		t.Fatalf("rate %d", q)
	}
}

// giveLaw returns an error for a wrong transfer.
func giveLaw(o DonorState, a Request, last bool, hits uint64) error {
	if hits > o.Rights {
		return fmt.Errorf("gives %d of %d", hits, o.Rights)
	}
	need := a.Need
	if need == 0 {
		need = math.MaxUint64
	}
	if hits > need {
		return fmt.Errorf("gives %d where %d are needed", hits, need)
	}
	kept := o.Rights - hits
	if o.Second == 0 && o.Recent == 0 {
		switch {
		case o.Rights == 1 && last && a.Rights == 0:
			if kept != 0 {
				return fmt.Errorf("keeps %d on a last call", kept)
			}
		case o.Rights > 0 && kept != max(1, sat.Sub(o.Rights, need)):
			return fmt.Errorf("a silent donor keeps %d of %d", kept, o.Rights)
		}
		return nil
	}
	if hits == 0 {
		return nil
	}
	his := max(a.Second, 1)
	if floor := max(o.Recent, 1); o.Second > 0 && kept < floor {
		return fmt.Errorf("keeps %d, offered %d lately", kept, floor)
	}
	fair := exact(sum(o.Rights, a.Rights), whole(o.Second), sum(o.Second, his), true)
	_, over := bitsAdd(o.Rights, a.Rights)
	if _, odd := bitsAdd(o.Second, his); !over && !odd && whole(kept).Cmp(fair) < 0 {
		return fmt.Errorf("keeps %d of the fair %d", kept, fair)
	}
	if eight := new(big.Int).Mul(whole(hits), big.NewInt(8)); !over && hits < need && eight.Cmp(sum(o.Rights, a.Rights)) < 0 {
		return fmt.Errorf("crumb of %d", hits)
	}
	return nil
}

// bitsAdd returns a+b and whether it overflows.
func bitsAdd(a, b uint64) (uint64, bool) { return a + b, a+b < a }

func TestDonorKeepsItsPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, a := drawOwn(t), Request{amount(t, "asker's"), amount(t, "asker's rate"), amount(t, "need")}
		var g Donor
		if err := giveLaw(o, a, true, g.Transfer(7, o, a)); err != nil {
			t.Fatal(err)
		}
	})
}

// Last calls are 20 ms apart, whatever the clock does to those in between.
func TestLastCallsAreApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g Donor
		now, was := int64(0), int64(-100)
		for range 30 {
			now += rapid.Int64Range(0, 30).Draw(t, "gap")
			o := DonorState{Rights: rapid.Uint64Range(0, 3).Draw(t, "rights")}
			hits := g.Transfer(now, o, Request{})
			if err := giveLaw(o, Request{}, now-was >= lastCallMS, hits); err != nil {
				t.Fatalf("%d ms after the last call: %v", now-was, err)
			}
			if hits == o.Rights && hits > 0 {
				was = now
			}
		}
	})
}

// A requester has one request outstanding. It requests only of peers that are
// believed to transfer, of the one with most rights, and rarely in vain.
func TestAsksAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a Requester
		var now, asked, none int64 = 0, -1000, -1000
		var out crdt.Incarnation
		var vain []int64 // Instants of refusals and of missing answers.
		fixed := rapid.Bool().Draw(t, "fixed")
		peers := make([]Peer, rapid.IntRange(0, 9).Draw(t, "siblings"))
		for range 120 {
			now += rapid.Int64Range(0, 25).Draw(t, "gap")
			for i := range peers {
				if fixed { // No peer is believed to have received rights.
					peers[i] = Peer{ID: crdt.Incarnation(i), Held: uint64(i)}
					continue
				}
				peers[i] = Peer{
					ID: crdt.Incarnation(i), Held: rapid.Uint64Range(0, 5).Draw(t, "held"), Used: rapid.Uint64Range(0, 5).Draw(t, "used"),
				}
			}
			w := Need{
				rapid.Bool().Draw(t, "entity"), rapid.Uint64Range(0, 4).Draw(t, "recent"), amount(t, "second"), amount(t, "ahead"),
				rapid.Uint64Range(0, 4).Draw(t, "rights"), amount(t, "held"), amount(t, "limit"), amount(t, "estimate"),
			}
			if out != 0 && rapid.Bool().Draw(t, "answered") {
				hits := rapid.Uint64Range(0, 2).Draw(t, "gift")
				if a.Answer(now, out, hits); hits == 0 {
					vain = append(vain, now)
				}
				out = 0
			}
			to, ok := a.Pick(now, w, 3, peers)
			if now-none < emptyMS && ok {
				t.Fatalf("at %d: asks %d ms into a pause", now, now-none)
			}
			if !ok {
				if w.Hits() > 0 && (out == 0 || now-asked >= requestMS) && now-none >= emptyMS {
					none, out = now, 0
				}
				continue
			}
			if out != 0 {
				if now-asked < requestMS {
					t.Fatalf("at %d: asks %d while %d has %d ms to answer", now, to, out, requestMS-(now-asked))
				}
				vain = append(vain, now)
			}
			out, asked = to, now
			if err := askLaw(w, to, peers); err != nil {
				t.Fatal(err)
			}
			for len(vain) > 0 && now-vain[0] >= refusalMS {
				vain = vain[1:]
			}
			if fixed && len(vain) > maxRefusals {
				t.Fatalf("at %d: %d asks in vain since %d", now, len(vain), vain[0])
			}
		}
	})
}

// askLaw returns an error for a wrong request.
func askLaw(w Need, to crdt.Incarnation, peers []Peer) error {
	if w.Recent == 0 {
		return fmt.Errorf("a silent daemon asks")
	}
	if w.Estimate >= w.Limit || w.Rights >= w.Limit-w.Estimate {
		return fmt.Errorf("asks although the limit stops it: %+v", w)
	}
	low := w.Rights < w.Recent
	half := w.Entity && new(big.Int).Mul(whole(w.Rights), big.NewInt(2)).Cmp(whole(w.Held)) <= 0
	if !low && w.Rights >= w.Ahead {
		return fmt.Errorf("asks for more than it wants: %+v", w)
	}
	if !low && !half {
		return fmt.Errorf("asks with plenty: %+v", w)
	}
	if to == 0 || to == 3 {
		return fmt.Errorf("asks %d, itself or nobody", to)
	}
	least := uint64(2)
	if w.Rights == 0 {
		least = 1
	}
	for _, s := range peers {
		if s.ID == to && s.rights() < least {
			return fmt.Errorf("asks %+v, who has nothing to give", s)
		}
	}
	return nil
}

// Without refusals the peer with most rights is chosen, among equals the next
// by id.
func TestAsksTheRichest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		peers := make([]Peer, rapid.IntRange(1, 9).Draw(t, "siblings"))
		self := crdt.Incarnation(rapid.Uint64Range(1, 20).Draw(t, "self"))
		held := rapid.Uint64Range(0, 2)
		if rapid.Bool().Draw(t, "large") {
			held = rapid.Uint64()
		}
		for i := range peers { // Ids on both sides of self, and ties.
			peers[i] = Peer{
				ID: crdt.Incarnation(rapid.Uint64Range(1, 20).Draw(t, "id")), Held: held.Draw(t, "held"), Used: rapid.Uint64Range(0, 2).Draw(t, "used"),
			}
		}
		var a Requester
		to, ok := a.Pick(0, Need{Recent: 1, Limit: 1}, self, peers)
		var most uint64
		for _, s := range peers {
			if s.ID != self {
				most = max(most, s.rights())
			}
		}
		if ok != (most > 0) {
			t.Fatalf("asked %v where the richest has %d", ok, most)
		}
		var found bool
		for _, s := range peers {
			if s.ID == to && s.rights() == most {
				found = true
			}
			if ok && s.ID != self && s.rights() == most && s.ID-self < to-self {
				t.Fatalf("asks %d and not %d, who is as rich and nearer", to, s.ID)
			}
		}
		if ok && !found {
			t.Fatalf("asks %d, who is not the richest", to)
		}
	})
}

// A refusal stands until the peer is believed to have received rights or time
// has passed.
func TestRefusalsAreRemembered(t *testing.T) {
	w := Need{Recent: 1, Limit: 100}
	one := func(held uint64) []Peer { return []Peer{{ID: 7, Held: held}} }
	for _, c := range []struct {
		name  string
		after int64
		held  uint64
		ok    bool
	}{
		{"the same again", emptyMS, 5, false},
		{"poorer", emptyMS, 4, false},
		{"richer", emptyMS, 6, true},
		{"later", refusalMS, 5, true},
	} {
		var a Requester
		if id, ok := a.Pick(0, w, 1, one(5)); !ok || id != 7 {
			t.Fatalf("%s: first ask: %d, %v", c.name, id, ok)
		}
		a.Answer(0, 7, 0)
		if _, ok := a.Pick(c.after, w, 1, one(c.held)); ok != c.ok {
			t.Errorf("%s: asked %v", c.name, ok)
		}
	}
}

// The functions of the hot path allocate nothing.
func TestNoAllocations(t *testing.T) {
	var (
		r     Rates
		a     Requester
		g     Donor
		h     Shortage
		peers = make([]Peer, 10)
		rows  = make([]DonorState, 10)
		out   = make([]uint64, 10)
		now   int64
	)
	for i := range peers {
		peers[i], rows[i] = Peer{ID: crdt.Incarnation(i + 1), Held: 10}, DonorState{9, 1, 1}
	}
	n := testing.AllocsPerRun(100, func() {
		now += 60
		r.Offer(now, 1)
		a.Pick(now, Need{Recent: r.Recent(now), Limit: 10}, 1, peers)
		a.Answer(now, 2, g.Transfer(now, rows[0], Request{0, r.Second(now), 9}))
		h.Announce(now, Policy{WindowMS: 60_000}, 1000, Region{10, 1, 50}, 100)
		collect(50, rows, out)
		split(50, out, out)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkOfferAndReady(b *testing.B) {
	var r Rates
	var a Requester
	var now int64
	for i := range b.N {
		now = int64(i / 100)
		r.Offer(now, 1)
		a.Ready(now, Need{Recent: r.Recent(now), Rights: 1 << 40, Held: 1 << 41, Limit: 1 << 50})
	}
}
