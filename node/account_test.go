package node

import (
	"testing"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/quota/keytable"
	"github.com/georld/rld/rules"
)

const aMinute = int64(1_767_225_600_000)

// countedBy returns an engine with 10 hits of a window, 20 of the one before,
// and 5 rights of the window that were transferred.
func countedBy(t *testing.T, k crdt.Key) *gossip.Engine {
	t.Helper()
	e := gossip.New(gossip.Config{}, gossip.Peer{ID: 1, Name: "a1", Region: "a"}, 0, 1)
	e.Peers(0, []gossip.Peer{{ID: 2, Name: "a2", Region: "a", Ready: true}})
	meta := gossip.CellMeta{Rule: 1, WindowLength: 60_000, Carry: 60_000}
	if !e.Add(0, k, aMinute, meta, 10, gossip.Room{}) || !e.Add(0, k, aMinute-60_000, meta, 20, gossip.Room{}) || !e.Give(0, k, aMinute, meta, 2, 5) {
		t.Fatal("no room")
	}
	return e
}

// TestNewAccountRecallsUse: an account that is made again has used what its
// daemon admitted and transferred, in both windows.
func TestNewAccountRecallsUse(t *testing.T) {
	k := crdt.Key(1<<32 | 2)
	l := &rules.Limit{Algorithm: rules.SlidingWindow, Unit: rules.Minute, Multiplier: 1, Requests: 100}
	a := newAccount(&Hit{Key: k, Limit: l}, nil, countedBy(t, k), quota.Allotment{Amount: 100}, aMinute+1_000, 0)
	if a.Used != 15 || a.PrevUsed != 20 {
		t.Errorf("used %d, and %d before; want 15 and 20", a.Used, a.PrevUsed)
	}
}

// TestFormerUseOfALaterWindow: an account that is made in a window before the
// one that a former run used, since the clock stepped back meanwhile, gives
// rights in neither.
func TestFormerUseOfALaterWindow(t *testing.T) {
	k := crdt.Key(1<<32 | 2)
	for _, algorithm := range []rules.Algorithm{rules.FixedWindow, rules.SlidingWindow} {
		l := &rules.Limit{Algorithm: algorithm, Unit: rules.Minute, Multiplier: 1, Requests: 10}
		for _, used := range []uint64{5, all} {
			f := &former{keys: map[crdt.Key]KeyAccount{k: {Key: k, Window: aMinute, Ends: aMinute + 60_000, Used: used}}}
			var a quota.Account
			a.Left(l, quota.Allotment{}, aMinute-1)
			f.recall(&a, k, l, aMinute-1)
			for _, now := range []int64{aMinute - 1, aMinute, aMinute + 59_999} {
				if left := a.Left(l, quota.Allotment{Amount: 5}, now); left != 0 {
					t.Errorf("%v, %d used: %d left at %d ms of the window, want none", algorithm, used, left, now-aMinute)
				}
			}
		}
	}
}

// TestWithdrawKeepsReplicatedHits: a refund never lowers a window below the
// replicated hits.
func TestWithdrawKeepsReplicatedHits(t *testing.T) {
	k := crdt.Key(1<<32 | 2)
	l := &rules.Limit{Unit: rules.Minute, Multiplier: 1, Requests: 100}
	e := &keytable.Entry{Key: k, Extra: -1, Cell: quota.Cell{Window: aMinute, Count: 14}}
	var s keys
	s.withdraw(countedBy(t, k), e, l, aMinute, 9, aMinute+1_000)
	if e.Cell.Count != 10 {
		t.Errorf("%d hits after a refund, want the 10 that are replicated", e.Cell.Count)
	}
}

// epochsOf is an agent whose shares change.
type epochsOf struct{ version, amount uint64 }

func (e *epochsOf) Version() uint64 { return e.version }

func (e *epochsOf) Allotment(uint64, uint64, int64, int64, bool) (uint64, epoch.Reason) {
	return e.amount, epoch.ReasonEpoch
}

func (e *epochsOf) Former(uint64, uint64, int64, int64, bool) (uint64, epoch.Reason) {
	return e.amount, epoch.ReasonEpoch
}

func (e *epochsOf) RegionAllotment(uint64, uint64, int64, int64) (uint64, epoch.Reason) {
	return e.amount, epoch.ReasonEpoch
}

func (e *epochsOf) PartOf(string, uint64, uint64, int64, int64, bool) uint64 { return 0 }

func (e *epochsOf) RegionPart(string, uint64, uint64, int64, int64) uint64 { return 0 }

func (e *epochsOf) RegionMost(string, uint64, uint64, int64, int64) uint64 { return 0 }

// TestAllotmentFollowsEpochs: a cached allotment ends with its epochs, and with
// its window.
func TestAllotmentFollowsEpochs(t *testing.T) {
	set, err := rules.NewSet([]rules.DomainNode{{Name: "edge", Children: []rules.Node{
		{Key: "a", Limit: &rules.Limit{Unit: rules.Minute, Multiplier: 1, Requests: 100, Consistency: rules.Partition}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	source := &epochsOf{1, 50}
	g, in := rightsGate{source: source, cached: make([]cached, 1)}, ruleset{set: set}
	want := func(what string, now int64, amount uint64) {
		t.Helper()
		if got := g.allotment(&in, set.Rules()[0], now).Amount; got != amount {
			t.Errorf("%s: %d, want %d", what, got, amount)
		}
	}
	want("at first", aMinute, 50)
	source.amount = 30
	want("of the same epochs", aMinute+1, 50)
	source.version = 2
	want("of other epochs", aMinute+2, 30)
	source.amount = 20
	want("of the next window", aMinute+60_000, 20)
}

// TestKeyWithoutCellInherits: a key whose hits find no room among replicated
// cells is marked, since an account cannot be made from these again.
func TestKeyWithoutCellInherits(t *testing.T) {
	cfg := Default()
	cfg.Region, cfg.Name = "a", "a1"
	cfg.Gossip.MaxCells = 1
	r := newRig(t, cfg)
	r.put(t, everyAlgorithm)
	for _, tt := range []struct {
		text string
		want Degraded
	}{{"fixed=a", NotDegraded}, {"fixed=b", CellsFull}} {
		st := r.must(t, 1, tt.text)
		e := st.probed.ref.entry
		if st.Degraded != tt.want || e.Inherited() != (tt.want == CellsFull) {
			t.Errorf("%s: degraded %v, marked %v", tt.text, st.Degraded, e.Inherited())
		}
	}
}
