package epoch

import (
	"math/bits"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/internal/sat"
)

func TestRowsValidate(t *testing.T) {
	e := Epoch{ID: at(1), Members: amounts(1, 400_000, 2, 600_000)}
	for _, tt := range []struct {
		name string
		rows []RuleShares
		sum  uint64 // of the members, if not theirs
		says string
	}{
		{name: "none"},
		{name: "two", rows: []RuleShares{{1, []uint32{0, 0}}, {2, []uint32{1_000_000, 0}}}},
		{name: "order", rows: []RuleShares{{2, []uint32{0, 0}}, {1, []uint32{0, 0}}}, says: "ascending"},
		{name: "twice", rows: []RuleShares{{2, []uint32{0, 0}}, {2, []uint32{0, 0}}}, says: "each once"},
		{name: "short", rows: []RuleShares{{1, []uint32{5}}}, says: "1 shares for 2 members"},
		{name: "sum", rows: []RuleShares{{1, []uint32{600_000, 400_001}}}, says: "sum to 1000001"},
		{name: "members", rows: []RuleShares{{1, []uint32{1, 1}}}, sum: 2_000_000, says: "beside shares of rules"},
		{name: "many", rows: make([]RuleShares, MaxRules+1), says: "at most 4096 rules"},
	} {
		d := e
		d.Rules = tt.rows
		if tt.sum != 0 {
			d.Members = amounts(1, tt.sum, 2, 0)
		}
		err := d.Validate()
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.says)
		}
	}
}

// TestBaseOf: shares of rules decide the amount and nothing else: an increase
// waits for all, a decrease does not, rule by rule.
func TestBaseOf(t *testing.T) {
	g, err := Genesis(0, amounts(1, 500_000, 2, 500_000))
	if err != nil {
		t.Fatal(err)
	}
	region, err := NewRegional(1, g)
	if err != nil {
		t.Fatal(err)
	}
	local, err := New(11, genesis(0, 11, 1, 12, 1))
	if err != nil {
		t.Fatal(err)
	}
	store := func() {
		region.Stored(region.Extend(100))
		local.Stored(local.Extend(100))
	}
	store()
	want := func(rule, base uint64) {
		t.Helper()
		if got, why := DaemonShare(region, local, rule, 1_001, 50, 0); got != base {
			t.Errorf("rule %d: %d (%v), want %d", rule, got, why, base)
		}
	}
	want(5, 250)
	e := Epoch{ID: at(1), Members: g.Members, Rules: []RuleShares{
		{5, []uint32{800_000, 200_000}}, {6, []uint32{100_000, 900_000}},
	}}
	was := region.Revision()
	if err := region.Learn(e); err != nil {
		t.Fatal(err)
	}
	if region.Revision() == was {
		t.Error("an epoch was learned, and the revision is the same")
	}
	want(5, 250)
	want(6, 50)
	want(7, 250)
	for _, by := range []uint64{1, 2} {
		if err := region.TakeAck(Ack{ID: at(1), By: by, From: 10}); err != nil {
			t.Fatal(err)
		}
	}
	want(5, 400)
	want(6, 50)
	want(7, 250)
	if got := region.Believed(6, 2, 1_000, 50, 0); got != 900 {
		t.Errorf("the other region is believed to hold %d, want 900", got)
	}
	if got := local.BelievedPart(12, 801, 50, 0); got != 400 {
		t.Errorf("the other daemon is believed to hold %d, want 400", got)
	}
	other := e
	other.Rules = []RuleShares{{5, []uint32{200_000, 800_000}}}
	if err := region.Learn(other); err == nil {
		t.Error("other rows under a known ID were taken")
	}
	if n := testing.AllocsPerRun(100, func() { DaemonShare(region, local, 5, 1_001, 50, 0) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	restored, err := Restore(1, region.Record())
	if err != nil {
		t.Fatal(err)
	}
	if row, ok := restored.entries[1].SharesOf(5); !ok || row[0] != 800_000 {
		t.Errorf("row %v restored", row)
	}
}

func TestPartPPM(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total, ppm := rapid.Uint64().Draw(t, "total"), rapid.Uint64Range(0, Whole).Draw(t, "ppm")
		got := sat.MulDiv(total, ppm, Whole)
		hi, lo := bits.Mul64(total, ppm)
		back, rest := bits.Mul64(got, Whole)
		if back > hi || back == hi && rest > lo {
			t.Fatalf("%d ppm of %d: %d is too much", ppm, total, got)
		}
		if other := sat.MulDiv(total, Whole-ppm, Whole); got+other > total || total-got-other > 1 {
			t.Fatalf("%d and %d of %d", got, other, total)
		}
	})
}

func TestCompactHeld(t *testing.T) {
	tab, err := New(1, genesis(0, 1, 1, 2, 1))
	if err != nil {
		t.Fatal(err)
	}
	tab.entries[0].hold([]ID{at(1), at(2), at(4)})
	tab.CompactHeld(at(3))
	want := []ID{at(3), at(4)}
	if got := tab.entries[0].held; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestGranted(t *testing.T) {
	tab, err := New(1, genesis(1000, 1, 1, 2, 1, 3, 1))
	if err != nil {
		t.Fatal(err)
	}
	if until := tab.extendedUntil(&tab.entries[0]); until != always {
		t.Errorf("without a grant: %d", until)
	}
	if err := tab.TakeExtension(Extension{By: 2, To: 1, Until: 70}); err != nil {
		t.Fatal(err)
	}
	if until := tab.extendedUntil(&tab.entries[0]); until != 70 {
		t.Errorf("with a grant to 70: %d", until)
	}
	pair, err := New(1, genesis(1000, 1, 1, 2, 1))
	if err != nil {
		t.Fatal(err)
	}
	if until := pair.extendedUntil(&pair.entries[0]); until != never {
		t.Error("two need no grants")
	}
}
