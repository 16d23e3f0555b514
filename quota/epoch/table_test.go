package epoch

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func mustNew(t testing.TB, owner uint64, g Epoch) *Table {
	t.Helper()
	tb, err := New(owner, g)
	if err != nil {
		t.Fatal(err)
	}
	tb.Stored(tb.Extend(1_000_000))
	return tb
}

// exchange gives every table all that the others know.
func exchange(t testing.TB, tables ...*Table) {
	t.Helper()
	for range 2 {
		for _, from := range tables {
			for _, to := range tables {
				if to != from {
					pass(t, from, to)
				}
			}
		}
	}
}

// pass gives a table all that another knows. Stale items are refused.
func pass(t testing.TB, from, to *Table) {
	t.Helper()
	if err := to.TakeClaim(from.Claim(0)); err != nil {
		t.Fatal(err)
	}
	for i := range from.Len() {
		v := from.At(i)
		_ = to.Learn(v.Epoch)
		for _, a := range v.Acks {
			_ = to.TakeAck(a)
		}
	}
}

func acknowledge(t testing.TB, tb *Table, id ID, now int64) Ack {
	t.Helper()
	a, r, err := tb.Acknowledge(id, now, nil)
	if err != nil {
		t.Fatal(err)
	}
	tb.Stored(r)
	return a
}

func wantShare(t testing.TB, tb *Table, x, carry int64, want uint64, wantWhy Reason) {
	t.Helper()
	if got, why := tb.Share(0, x, carry); got != want || why != wantWhy {
		t.Errorf("share of %d in window %d, carry %d: %d (%v), want %d (%v)",
			tb.Owner(), x, carry, got, why, want, wantWhy)
	}
}

// wantSettled checks which epoch is the last one settled, and from when.
func wantSettled(t testing.TB, id ID, from int64, tables ...*Table) {
	t.Helper()
	for _, tb := range tables {
		if s, since := tb.Settled(); s.ID != id || since != from {
			t.Errorf("%d: settled %v from %d, want %v from %d", tb.Owner(), s.ID, since, id, from)
		}
	}
}

// TestMove follows one epoch: it decreases from the windows on for which it was
// acknowledged, increases when all have acknowledged, one carry later where
// history reaches back, and the older epoch is pruned when no window needs it.
func TestMove(t *testing.T) {
	g := genesis(0, 1, 50, 2, 50)
	a, b := mustNew(t, 1, g), mustNew(t, 2, g)
	e := Epoch{ID: at(9), Members: amounts(1, 80, 2, 20)}
	if err := a.Learn(e); err != nil {
		t.Fatal(err)
	}
	wantShare(t, a, 1000, 0, 50, ReasonEpoch)
	exchange(t, a, b)
	wantShare(t, b, 1000, 0, 50, ReasonEpoch)
	acknowledge(t, a, e.ID, 1500)
	acknowledge(t, b, e.ID, 1700)
	wantShare(t, b, 1700, 0, 50, ReasonEpoch)
	wantShare(t, b, 1701, 0, 20, ReasonEpoch)
	if got := a.BelievedPart(2, 100, 1701, 0); got != 50 {
		t.Errorf("b is believed to hold %d before its acknowledgement arrived, want 50", got)
	}
	exchange(t, a, b)
	wantShare(t, a, 1700, 0, 50, ReasonEpoch)
	wantShare(t, a, 1701, 0, 80, ReasonEpoch)
	wantShare(t, a, 2000, 1000, 50, ReasonEpoch)
	wantShare(t, a, 3000, 1000, 80, ReasonEpoch)
	for _, x := range []int64{1700, 1701} {
		if got, want := a.BelievedPart(2, 100, x, 0), uint64(20+30*(1701-x)); got != want {
			t.Errorf("b is believed to hold %d in window %d, want %d", got, x, want)
		}
	}
	if s, from := a.Settled(); s.ID != e.ID || from != 1701 {
		t.Errorf("settled %v from %d", s.ID, from)
	}
	if n := a.Prune(1700); n != 0 {
		t.Errorf("pruned %d before the last label that needs it, want 0", n)
	}
	if n := a.Prune(1701); n != 1 {
		t.Errorf("pruned %d, want 1", n)
	}
	wantShare(t, a, 1700, 0, 50, ReasonEpoch) // the amounts of the pruned epoch
	wantShare(t, a, 1701, 0, 80, ReasonEpoch)
	if err := a.Learn(Epoch{ID: at(3), Members: amounts(1, 100)}); !errors.Is(err, ErrStale) {
		t.Errorf("a replayed stale epoch: %v, want ErrStale", err)
	}
	if !a.Knows(g.ID) || a.Knows(at(10)) {
		t.Error("Knows: want the pruned, not the unheard-of")
	}
}

// TestReasons walks through why a share is 0.
func TestReasons(t *testing.T) {
	g := genesis(30_000, 1, 10, 2, 10, 3, 10)
	fresh, err := New(1, g)
	if err != nil {
		t.Fatal(err)
	}
	wantShare(t, fresh, 1000, 0, 0, ReasonAhead)
	a, b := mustNew(t, 1, g), mustNew(t, 2, g)
	wantShare(t, a, 1000, 0, 0, ReasonAlone)
	grant, ok := b.ExtendHorizon(1, 900)
	if !ok || grant.Until != 30_900 {
		t.Fatalf("grant %+v, %v: want one until 30900", grant, ok)
	}
	if err := a.TakeExtension(grant); err != nil {
		t.Fatal(err)
	}
	wantShare(t, a, 30_900, 0, 10, ReasonEpoch)
	wantShare(t, a, 30_901, 0, 0, ReasonAlone)
	wantShare(t, mustNew(t, 4, g), 1000, 0, 0, ReasonLeftOut)
	r, err := Restore(1, a.Record())
	if err != nil {
		t.Fatal(err)
	}
	wantShare(t, r, 1_000_000, 0, 0, ReasonFenced)
	for w := ReasonEpoch; w <= ReasonUnlearned; w++ {
		if s := w.String(); s == "" || s == Reason(200).String() {
			t.Errorf("reason %d says %q", w, s)
		}
	}
}

// TestReclaim is a death with a horizon: the share of the dead participant is
// usable from the first window after its farthest horizon, and not before.
func TestReclaim(t *testing.T) {
	g := genesis(30_000, 1, 10, 2, 10, 3, 10)
	a, b := mustNew(t, 1, g), mustNew(t, 2, g)
	a.ExtendHorizon(3, 10_000)
	b.ExtendHorizon(3, 12_000)
	e := Epoch{ID: at(20_000), Horizon: 30_000, Members: amounts(1, 15, 2, 15)}
	if err := a.Learn(e); err != nil {
		t.Fatal(err)
	}
	exchange(t, a, b)
	acknowledge(t, a, e.ID, 20_000)
	acknowledge(t, b, e.ID, 20_100)
	exchange(t, a, b)
	if _, from := a.Settled(); from != 42_001 {
		t.Errorf("settled from %d, want 42001: after the grants of both", from)
	}
	if late, ok := a.ExtendHorizon(3, 30_000); !ok || late.Under != e.ID.next() {
		t.Errorf("grant after the acknowledgement: %+v, %v: want one above %v only", late, ok, e.ID)
	}
}

// TestReturn: a participant comes back after an epoch without it was settled
// for the time after its horizon. It acknowledges the epoch, which then counts
// at once, and so does a later one that admits it again.
func TestReturn(t *testing.T) {
	g := genesis(30_000, 1, 10, 2, 10, 3, 10)
	a, b, c := mustNew(t, 1, g), mustNew(t, 2, g), mustNew(t, 3, g)
	without := Epoch{ID: at(20_000), Horizon: 30_000, Members: amounts(1, 15, 2, 15)}
	again := Epoch{ID: at(21_000), Pred: without.ID, Horizon: 30_000, Members: amounts(1, 10, 2, 10, 3, 10)}
	a.ExtendHorizon(3, 10_000)
	b.ExtendHorizon(3, 12_000)
	for _, e := range []Epoch{without, again} {
		if err := a.Learn(e); err != nil {
			t.Fatal(err)
		}
		exchange(t, a, b)
		acknowledge(t, a, e.ID, e.ID.Stamp.Millis())
		acknowledge(t, b, e.ID, e.ID.Stamp.Millis())
		exchange(t, a, b)
	}
	exchange(t, a, b, c)
	if s, from := c.Settled(); s.ID != without.ID || from != 42_001 {
		t.Fatalf("settled %v from %d, want %v from 42001", s.ID, from, without.ID)
	}
	for _, id := range c.Pending() {
		acknowledge(t, c, id, 22_000)
	}
	exchange(t, a, b, c)
	wantSettled(t, again.ID, 22_001, a, b, c)
}

// TestPredecessorPruned: a participant acknowledges an epoch whose predecessor
// another one has pruned. That one needs the epoch all the same, to settle the
// next one, which must cover it.
func TestPredecessorPruned(t *testing.T) {
	g := genesis(0, 1, 50, 2, 50)
	a, b := mustNew(t, 1, g), mustNew(t, 2, g)
	first := Epoch{ID: at(10), Members: amounts(1, 60, 2, 40)}
	stray := Epoch{ID: at(20), Members: amounts(1, 70, 2, 30)} // after the genesis
	second := Epoch{ID: at(30), Pred: first.ID, Members: amounts(1, 80, 2, 20)}
	if err := a.Learn(first); err != nil {
		t.Fatal(err)
	}
	exchange(t, a, b)
	acknowledge(t, a, first.ID, 10)
	acknowledge(t, b, first.ID, 10)
	pass(t, b, a)
	if n := a.Prune(11); n != 1 {
		t.Fatalf("pruned %d, want the genesis", n)
	}
	if err := b.Learn(stray); err != nil {
		t.Fatal(err)
	}
	acknowledge(t, b, stray.ID, 20)
	exchange(t, a, b)
	if err := a.Learn(second); err != nil {
		t.Fatal(err)
	}
	exchange(t, a, b)
	for _, tb := range []*Table{a, b} {
		acknowledge(t, tb, second.ID, 30)
	}
	exchange(t, a, b)
	wantSettled(t, second.ID, 31, a, b)
}

// TestRetire shows the effect of an operator's retirement without a horizon.
func TestRetire(t *testing.T) {
	g := genesis(0, 1, 10, 2, 10, 3, 10)
	a, b := mustNew(t, 1, g), mustNew(t, 2, g)
	plain := Epoch{ID: at(1), Members: amounts(1, 15, 2, 15)}
	word := plain
	word.ID, word.Retired = at(2), []Retirement{{3, 700}}
	for _, e := range []Epoch{plain, word} {
		if err := a.Learn(e); err != nil {
			t.Fatal(err)
		}
		exchange(t, a, b)
		acknowledge(t, a, e.ID, 500)
		acknowledge(t, b, e.ID, 500)
		exchange(t, a, b)
	}
	if s, from := a.Settled(); s.ID != word.ID || from != 700 {
		t.Errorf("settled %v from %d, want that with the operator's word from 700", s.ID, from)
	}
}

func TestRefusals(t *testing.T) {
	g := genesis(0, 1, 10, 2, 10)
	tb := mustNew(t, 1, g)
	many := make([]Member, MaxMembers+1)
	for i := range many {
		many[i].ID = uint64(i)
	}
	held := []ID{at(2), at(1)}
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"no members", Epoch{ID: at(1)}.Validate(), "0 members: want 1 to 256"},
		{"too many", Epoch{ID: at(1), Members: many}.Validate(), "257 members"},
		{"unsorted", Epoch{ID: at(1), Members: amounts(2, 1, 1, 1)}.Validate(), "ascending"},
		{"twice", Epoch{ID: at(1), Members: amounts(2, 1, 2, 1)}.Validate(), "each once"},
		{"overflow", Epoch{ID: at(1), Members: amounts(1, math.MaxUint64, 2, 1)}.Validate(), "2^64"},
		{"cycle", Epoch{ID: at(1), Pred: at(1), Members: amounts(1, 1)}.Validate(), "want one below"},
		{"horizon", Epoch{ID: at(1), Horizon: -1, Members: amounts(1, 1)}.Validate(), "horizon -1 ms"},
		{"retired member", Epoch{
			ID: at(1), Members: amounts(1, 1),
			Retired: []Retirement{{1, 0}},
		}.Validate(), "retired and a member"},
		{
			"genesis retires", Epoch{Members: amounts(1, 1), Retired: []Retirement{{2, 0}}}.Validate(),
			"genesis",
		},
		{"ack of genesis", Ack{By: 2}.Validate(), "want a later epoch"},
		{"ack before itself", Ack{ID: at(1), By: 2, Before: []ID{at(1)}}.Validate(), "and below"},
		{"ack held", Ack{ID: at(1), By: 2, Held: held}.Validate(), "out of order"},
		{"unknown ack", tb.TakeAck(Ack{ID: at(5), By: 2}), "not known here"},
		{"grant for another", tb.TakeExtension(Extension{By: 2, To: 3}), "want one by another for 1"},
		{"grant of a stranger", tb.TakeExtension(Extension{By: 9, To: 1}), "not known here"},
	}
	for _, tt := range tests {
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, tt.err, tt.want)
		}
	}
	if _, err := New(1, Epoch{ID: at(1), Members: amounts(1, 1)}); err == nil {
		t.Error("a later epoch as the genesis: no error")
	}
	if _, _, err := tb.Acknowledge(at(5), 0, nil); !errors.Is(err, ErrUnknown) {
		t.Errorf("acknowledge what is not known: %v", err)
	}
	if err := tb.Learn(Epoch{ID: at(1), Members: amounts(1, 1)}); err != nil {
		t.Fatal(err)
	}
	if err := tb.Learn(Epoch{ID: at(1), Members: amounts(1, 2)}); err == nil {
		t.Error("another content under a known ID: no error")
	}
}

// TestBounds floods a table: it keeps its bounds, and a retirement is still
// possible when a dead participant has stopped all else.
func TestBounds(t *testing.T) {
	g := genesis(30_000, 1, 10, 2, 10, 3, 10)
	tb := mustNew(t, 1, g)
	for i := range int64(3 * MaxEpochs) {
		_ = tb.Learn(Epoch{ID: at(i + 1), Members: amounts(1, 20, 2, 0, 3, 10)})
		if ids := tb.Pending(); len(ids) > 0 && i < 2*MaxEpochs {
			_, r, err := tb.Acknowledge(ids[0], i, nil)
			if err != nil {
				t.Fatal(err)
			}
			tb.Stored(r)
		}
	}
	if n := len(tb.entries); n > MaxEpochs {
		t.Errorf("%d epochs, want at most %d", n, MaxEpochs)
	}
	if n := len(tb.Acknowledged()) - 1; n != MaxPending/2 {
		t.Errorf("%d acknowledged and unsettled, want %d", n, MaxPending/2)
	}
	word := Epoch{ID: at(1000), Members: amounts(1, 20, 2, 10), Retired: []Retirement{{3, 0}}}
	if err := tb.Learn(word); err != nil {
		t.Fatal(err)
	}
	acknowledge(t, tb, word.ID, 5)
	for i := range uint64(2 * MaxExtended) {
		tb.remember(100+i, int64(i))
	}
	if len(tb.horizons) > MaxExtended || tb.floor < MaxExtended-2 {
		t.Errorf("%d reaches, floor %d: want at most %d, and the dropped in the floor",
			len(tb.horizons), tb.floor, MaxExtended)
	}
}

// TestRoomForWhatIsNeeded: a full table of unsettled epochs learns a lower one
// that a participant acknowledged before the newest, and keeps it: the newest
// is settled.
func TestRoomForWhatIsNeeded(t *testing.T) {
	g := genesis(30_000, 1, 10, 2, 10)
	one, two := mustNew(t, 1, g), mustNew(t, 2, g)
	epochAt := func(i int64) Epoch { return Epoch{ID: at(i), Members: amounts(1, 5, 2, 5)} }
	needed, newest := epochAt(2), epochAt(100)
	for _, e := range []Epoch{needed, newest} {
		if err := two.Learn(e); err != nil {
			t.Fatal(err)
		}
		acknowledge(t, two, e.ID, 1)
	}
	others := func() {
		for i := range int64(3 * MaxEpochs / 2) {
			_ = one.Learn(epochAt(3 + i))
		}
	}
	others()
	if err := one.Learn(newest); err != nil {
		t.Fatal(err)
	}
	pass(t, two, one)
	others() // again, as peers that have them do
	if len(one.entries) != MaxEpochs {
		t.Fatalf("%d epochs: the table is not full", len(one.entries))
	}
	acknowledge(t, one, newest.ID, 1)
	exchange(t, one, two)
	wantSettled(t, newest.ID, 2, one, two)
}

// TestRecord breaks records: a table is made of a whole one only.
func TestRecord(t *testing.T) {
	tb := mustNew(t, 1, genesis(0, 1, 10, 2, 10))
	if err := tb.Learn(Epoch{ID: at(1), Members: amounts(1, 20)}); err != nil {
		t.Fatal(err)
	}
	a := acknowledge(t, tb, at(1), 5)
	good := tb.Record()
	back, err := Restore(1, good)
	if err != nil {
		t.Fatal(err)
	}
	if again := back.Record(); len(again.Acks) != 1 || again.Acks[0].From != a.From ||
		again.Top != good.Top || again.Bounds != good.Bounds {
		t.Errorf("restored and recorded again: %+v, want %+v", again, good)
	}
	breaks := map[string]func(*Record){
		"owner":        func(r *Record) { r.Owner = 2 },
		"base":         func(r *Record) { r.Base.Members = nil },
		"not settled":  func(r *Record) { r.BaseFrom = never },
		"bad epoch":    func(r *Record) { r.Epochs = []Epoch{{ID: at(1)}} },
		"order":        func(r *Record) { r.Epochs = append(r.Epochs, r.Epochs[0]) },
		"top":          func(r *Record) { r.Top = ID{} },
		"bound by":     func(r *Record) { r.Mine = []ID{at(7)} },
		"other's ack":  func(r *Record) { r.Acks = []Ack{{ID: at(1), By: 2}} },
		"unknown ack":  func(r *Record) { r.Acks = []Ack{{ID: at(7), By: 1}} },
		"invalid ack":  func(r *Record) { r.Acks = []Ack{{By: 1}} },
		"zero":         func(r *Record) { *r = Record{} },
		"many epochs":  func(r *Record) { r.Epochs = make([]Epoch, MaxEpochs) },
		"cut off base": func(r *Record) { r.Base = Epoch{} },
	}
	for name, spoil := range breaks {
		r := tb.Record()
		spoil(&r)
		if _, err := Restore(1, r); err == nil {
			t.Errorf("%s: restored without an error", name)
		}
	}
}

// TestSplit holds the laws of Split: monotone in the amount, at most the
// amount together, and exactly that with equal weights.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		equal := rapid.Bool().Draw(t, "equal")
		e := Epoch{ID: at(1)}
		w := rapid.Uint64Range(1, 1<<40).Draw(t, "weight")
		for i := range n {
			if !equal {
				w = rapid.Uint64Range(0, 1<<40).Draw(t, "weight")
			}
			e.Members = append(e.Members, Member{ID: uint64(i), Amount: w})
		}
		amount := rapid.OneOf(rapid.Uint64Range(0, 100), rapid.Uint64()).Draw(t, "amount")
		more := amount + rapid.Uint64Range(0, 100).Draw(t, "more")
		if more < amount {
			more = math.MaxUint64
		}
		sum := uint64(0)
		for i := range n {
			part := e.Split(amount, uint64(i))
			sum += part
			if e.Split(more, uint64(i)) < part {
				t.Fatalf("member %d: %d of %d, but %d of %d", i, part, amount,
					e.Split(more, uint64(i)), more)
			}
		}
		if sum > amount || equal && sum != amount {
			t.Fatalf("parts sum to %d of %d", sum, amount)
		}
		if e.Split(amount, 99) != 0 {
			t.Fatal("a stranger gets a part")
		}
	})
}

func TestNoAllocations(t *testing.T) {
	tb := mustNew(t, 1, genesis(0, 1, 10, 2, 10, 3, 10))
	if n := testing.AllocsPerRun(100, func() { tb.Share(0, 1000, 0); tb.Part(7, 1000, 0) }); n != 0 {
		t.Errorf("Share and Part: %v allocations", n)
	}
}

func BenchmarkShare(b *testing.B) {
	tb := mustNew(b, 1, genesis(0, 1, 10, 2, 10, 3, 10))
	if err := tb.Learn(Epoch{ID: at(1), Members: amounts(1, 20, 2, 0, 3, 10)}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		tb.Share(0, 1000, 0)
	}
}
