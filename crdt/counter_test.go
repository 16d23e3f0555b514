package crdt

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestPNCounterAgainstMap drives a counter and a plain map side by side.
func TestPNCounterAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p PNCounter
		model := map[Incarnation]PN{}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				s, n := genIncarnation().Draw(t, "slot"), rapid.Uint64Range(0, 9).Draw(t, "n")
				check(p.Add(s, n))
				model[s] = PN{model[s].P + n, model[s].N}
			},
			"refund": func(t *rapid.T) {
				s, n := genIncarnation().Draw(t, "slot"), rapid.Uint64Range(0, 9).Draw(t, "n")
				has := model[s]
				err := p.Refund(s, n)
				if n <= has.P-has.N {
					check(err)
					model[s] = PN{has.P, has.N + n}
					return
				}
				var refused *RefundError
				if !errors.As(err, &refused) || *refused != (RefundError{Incarnation: s, Has: has, Refund: n}) {
					t.Fatalf("refund of %d from %v: %v", n, has, err)
				}
			},
			"cell": func(t *rapid.T) {
				s, v := genIncarnation().Draw(t, "slot"), genPN(20).Draw(t, "cell")
				has := model[s]
				next := PN{max(has.P, v.P), max(has.N, v.N)}
				if changed := must(p.JoinCell(s, v)); changed != (next != has) {
					t.Fatalf("joining %v into %v reported %t", v, has, changed)
				}
				model[s] = next
			},
			"": func(t *rapid.T) { holds(t, &p, model) },
		})
	})
}

// holds compares a counter with a map, by every way to read it.
func holds(t *rapid.T, p *PNCounter, model map[Incarnation]PN) {
	want, sum := map[Incarnation]PN{}, Sum{}
	for s, v := range model {
		if got := p.Get(s); got != v {
			t.Fatalf("slot %v holds %v, want %v", s, got, v)
		}
		if v != (PN{}) {
			want[s] = v
		}
		sum.P, sum.N = sum.P+v.P, sum.N+v.N
	}
	got, incarnations := map[Incarnation]PN{}, []Incarnation{}
	for s, v := range p.All() {
		got[s] = v
		incarnations = append(incarnations, s)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("cells (-want +got):\n%s", d)
	}
	if !slices.IsSorted(incarnations) || len(incarnations) != p.Len() || len(incarnations) != len(want) {
		t.Fatalf("slots %v, length %d, want %d", incarnations, p.Len(), len(want))
	}
	if p.Value() != sum.P-sum.N || p.Sum() != sum || p.Sum().Net() != p.Value() {
		t.Fatalf("value %d and sum %v, want %d and %v", p.Value(), p.Sum(), sum.P-sum.N, sum)
	}
}

// TestGCounterIsPNCounter holds a GCounter to a PNCounter without refunds.
func TestGCounterIsPNCounter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g GCounter
		var p PNCounter
		for range rapid.IntRange(1, 20).Draw(t, "operations") {
			s, n := genIncarnation().Draw(t, "slot"), rapid.Uint64Range(0, 9).Draw(t, "n")
			if rapid.Bool().Draw(t, "add") {
				check(g.Add(s, n))
				check(p.Add(s, n))
			} else if a, b := must(g.JoinCell(s, n)), must(p.JoinCell(s, PN{P: n})); a != b {
				t.Fatalf("joining %d changed %t and %t", n, a, b)
			}
			if g.Get(s) != p.Get(s).P || g.Value() != p.Value() || g.Len() != p.Len() {
				t.Fatalf("%v and %v", &g, &p)
			}
		}
		if g.Digest(lawKey, -1) != p.Digest(lawKey, -1) {
			t.Fatalf("digests of %v and %v differ", &g, &p)
		}
		var incarnations []Incarnation
		for s, n := range g.All() {
			if incarnations = append(incarnations, s); n == 0 || n != p.Get(s).P {
				t.Fatalf("slot %v yields %d of %v", s, n, &p)
			}
		}
		if !slices.IsSorted(incarnations) || len(incarnations) != g.Len() {
			t.Fatalf("slots %v of %v", incarnations, &g)
		}
	})
}

// TestSaturation goes to the end of the numbers: nothing starts over, and
// nothing that is not known any more is taken off.
func TestSaturation(t *testing.T) {
	var g GCounter
	check(g.Add(1, Max-1))
	check(g.Add(1, 5))
	check(g.Add(2, 7))
	if g.Get(1) != Max || g.Value() != Max {
		t.Errorf("slot %d, value %d, want the greatest count", g.Get(1), g.Value())
	}

	var p PNCounter
	check(p.Add(1, Max-1))
	check(p.Refund(1, 100))
	if got := p.Value(); got != Max-101 {
		t.Errorf("value %d before saturation", got)
	}
	before := p.Sum()
	check(p.Add(1, 50))
	if got := p.Value(); got != Max {
		t.Errorf("value %d of a saturated slot, want the greatest count", got)
	}
	var refused *RefundError
	if err := p.Refund(1, 1); !errors.As(err, &refused) {
		t.Errorf("refund from a saturated slot: %v, want a *RefundError", err)
	}
	if got := p.Sum(); got != (Sum{P: Max}) || got.Net() != Max {
		t.Errorf("sum %v, want one saturated and without refunds", got)
	} else if got.Compare(before) != 1 {
		t.Errorf("sum %v is no greater than %v before", got, before)
	}

	var q PNCounter
	check(q.Add(1, Max-1))
	check(q.Add(2, Max-1))
	check(q.Refund(2, 9))
	if q.Value() != Max || q.Sum() != (Sum{P: Max}) {
		t.Errorf("value %d, sum %v of two slots that saturate together", q.Value(), q.Sum())
	}
}

func TestErrors(t *testing.T) {
	var p PNCounter
	check(p.Add(0xab, 3))
	_, err := p.JoinCell(0xab, PN{P: 1, N: 2})
	var bad *CellError
	if !errors.As(err, &bad) || p.Get(0xab) != (PN{P: 3}) {
		t.Errorf("cell with more refunded than admitted: %v, counter %v", err, &p)
	}
	tests := []struct {
		err  error
		want string
	}{
		{err, "crdt: cell of slot 00000000000000ab refunds 2 of 1 admitted"},
		{p.Refund(0xab, 4), "crdt: refund of 4 from slot 00000000000000ab, which has only 3 left to refund"},
		{p.Refund(1, 4), "crdt: refund of 4 from slot 0000000000000001, which has only 0 left to refund"},
		{&RefundError{Incarnation: 1, Has: PN{P: Max}, Refund: 4},
			"crdt: refund of 4 from slot 0000000000000001, whose count is saturated"},
		{&IncarnationsError{Held: 4096, Added: 1}, "crdt: counter of 4096 slots cannot take in 1 more, at most 4096"},
	}
	for _, tt := range tests {
		if tt.err == nil || tt.err.Error() != tt.want {
			t.Errorf("got  %v\nwant %v", tt.err, tt.want)
		}
	}
}

// TestMaxIncarnations fills a counter from two valid ones: what does not fit is
// refused whole, what needs no new slot still gets in.
func TestMaxIncarnations(t *testing.T) {
	var full, other GCounter
	for i := range Incarnation(MaxIncarnations) {
		check(full.Add(i*2, 1))
	}
	check(other.Add(0, 5))
	check(other.Add(1, 5))
	before := full.Clone()
	wantRefusal := func(what string, err error) {
		t.Helper()
		var refused *IncarnationsError
		if !errors.As(err, &refused) || *refused != (IncarnationsError{Held: MaxIncarnations, Added: 1}) {
			t.Errorf("%s: %v, want a *SlotsError", what, err)
		}
		if !full.Equal(&before) {
			t.Errorf("%s changed the counter", what)
		}
	}
	_, err := full.Join(&other)
	wantRefusal("join", err)
	_, err = full.JoinCell(1, 5)
	wantRefusal("cell", err)
	wantRefusal("addition", full.Add(1, 5))
	if err := full.Add(1, 0); err != nil {
		t.Errorf("nothing added to a slot that is not there: %v", err)
	}

	var fits GCounter
	check(fits.Add(0, 5))
	if changed, err := full.Join(&fits); !changed || err != nil || full.Get(0) != 5 {
		t.Errorf("join without new slots: changed %t, %v, slot %d", changed, err, full.Get(0))
	}
	if changed, err := other.Join(&before); changed || err == nil || other.Len() != 2 {
		t.Errorf("join of a full counter: changed %t, %v, %d slots", changed, err, other.Len())
	}
	if changed, err := fits.Join(&full); !changed || err != nil || !fits.Equal(&full) {
		t.Errorf("join up to the bound: changed %t, %v", changed, err)
	}
}

func TestDescribe(t *testing.T) {
	var g GCounter
	var p PNCounter
	if g.String() != "0 {}" || p.String() != "0 {}" {
		t.Errorf("empty counters %v, %v", &g, &p)
	}
	check(g.Add(0x1f, 5))
	check(g.Add(2, 1))
	check(p.Add(0x1f, 5))
	check(p.Refund(0x1f, 2))
	if g.String() != "6 {2: 1, 1f: 5}" || p.String() != "3 {1f: 5-2}" {
		t.Errorf("counters %v, %v", &g, &p)
	}
}
