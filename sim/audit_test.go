package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
)

// Every auditor checks something in an ordinary run, and finds nothing.
func TestAuditorsPassACleanRun(t *testing.T) {
	for _, shards := range []int{1, 4} {
		cfg := small(t)
		// Some windows are not over when the daemons agree.
		cfg.Shards, cfg.Limits = shards, strings.ReplaceAll(smallLimits, "unit: second", "unit: minute")
		cfg.Rules = parsed(t, cfg.Limits)
		refund := &cfg.Workloads[0].Refund
		refund.Share, refund.After = 0.1, time.Second
		r, err := Run(cfg, Options{Auditors: TestAuditors()})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range r.Auditors {
			if a.Violations > 0 || a.Checks == 0 && a.Name != "expectations" {
				t.Errorf("%d shards: %+v", shards, a)
			}
		}
	}
}

// An auditor alone keeps the ground truth that it shares with the others.
func TestAuditorsWorkAlone(t *testing.T) {
	all, err := Run(small(t), Options{Auditors: TestAuditors()})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range all.Auditors[:len(all.Auditors)-2] { // without frames and expectations
		alone, err := Run(small(t), Options{Auditors: TestAuditors(want.Name)})
		if err != nil {
			t.Fatal(err)
		}
		if alone.TraceHash != all.TraceHash {
			t.Errorf("%s alone: trace %s, with all others %s", want.Name, alone.TraceHash, all.TraceHash)
		}
		if got := alone.Auditors[0]; got != want {
			t.Errorf("%d: alone %+v, with the others %+v", i, got, want)
		}
	}
}

// Nobody watching changes nothing.
func TestAuditorsChangeNothing(t *testing.T) {
	with, err := Run(small(t), Options{Auditors: TestAuditors()})
	if err != nil {
		t.Fatal(err)
	}
	without, err := Run(small(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if with.TraceHash != without.TraceHash {
		t.Errorf("trace %s with auditors, %s without", with.TraceHash, without.TraceHash)
	}
}

func TestMessagesAuditorCatches(t *testing.T) {
	const other = crdt.Incarnation(99)
	for _, c := range []struct {
		name   string
		across bool
		change func(r *rig, m *gossip.Message)
	}{
		{"a sender that never was", false, func(_ *rig, m *gossip.Message) { m.From = other }},
		{"a message of tomorrow", false, func(_ *rig, m *gossip.Message) { m.Nonce += uint64(24 * time.Hour / gossip.NonceUnit) }},
		{"cells out of order", false, func(r *rig, m *gossip.Message) {
			m.Cells = []gossip.Cell{r.cell(quietKey, m.From, 1), r.cell(quietKey, m.From, 1)}
		}},
		{"more refunded than counted", false, func(r *rig, m *gossip.Message) {
			c := r.cell(quietKey, m.From, 1)
			c.Value.N = 2
			m.Cells = []gossip.Cell{c}
		}},
		{"a daemon's cell that left its region", true, func(r *rig, m *gossip.Message) {
			m.Cells = []gossip.Cell{r.cell(quietKey, m.From, 1)}
		}},
		{"a regional sum that left its region", true, func(r *rig, m *gossip.Message) {
			c := r.cell(quietKey, gossip.RegionIncarnation("eu"), 1)
			c.Kind, c.Regional = gossip.RegionSum, true
			m.Cells = []gossip.Cell{c}
		}},
		{"a third region's sum", true, func(r *rig, m *gossip.Message) {
			c := r.cell(quietKey, gossip.RegionIncarnation("mars"), 1)
			c.Kind = gossip.RegionSum
			m.Cells = []gossip.Cell{c}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, small(t), time.Second)
			from, to := r.w.daemons[0], r.w.daemons[1]
			if c.across {
				to = r.w.daemons[2]
			}
			m := r.message(from, to)
			r.show(to, m)
			r.clean("messages")
			c.change(r, m)
			r.show(to, m)
			r.caught("messages")
		})
	}
}

// A view that is older than its replica states is found.
func TestViewsAuditorCatchesAnUnderstatedAge(t *testing.T) {
	r := newRig(t, small(t), time.Second)
	from, to := r.w.daemons[0], r.w.daemons[1]
	r.clean("views")
	r.pass(time.Second)
	m := r.message(to, from) // states to answer a message of this instant
	m.Echo = uint64(from.Instant(r.w.now).Mono / gossip.NonceUnit)
	if err := from.Nodes[0].Step(from.Instant(r.w.now), m); err != nil {
		t.Fatal(err)
	}
	m.Complete = false
	for range 64 {
		r.show(from, m)
	}
	r.caught("views")
}

// TestViewsAuditorExcusesNoRefusals: a daemon that refuses cells, or transfers,
// has a view of the rest.
func TestViewsAuditorExcusesNoRefusals(t *testing.T) {
	for _, kind := range []gossip.EventKind{gossip.CellRefused, gossip.TransferRejected, gossip.CellStale} {
		r := newRig(t, small(t), 2*time.Second)
		from, to := r.w.daemons[0], r.w.daemons[1]
		for range gossip.MaxRefused {
			r.w.auditors.happened(to, gossip.Event{Kind: kind, Peer: from.Incarnations()[0], Amount: 1, Reason: gossip.NoRoom})
		}
		r.pass(time.Second)
		asks := r.message(to, from)
		asks.Echo = uint64(from.Instant(r.w.now).Mono / gossip.NonceUnit)
		r.step(from, asks)
		r.pass(time.Second)
		m := r.message(from, to) // answers that one
		m.Hi++
		m.Echo = asks.Nonce
		for range 64 {
			r.show(to, m)
		}
		r.caught("views")
	}
}

func TestClockAuditorCatches(t *testing.T) {
	for _, c := range []struct {
		name  string
		input func(r *rig, from, to *Daemon)
	}{
		{"a stamp an hour ahead", func(r *rig, from, to *Daemon) {
			m := r.message(from, to)
			m.Stamp = hlc.New(m.Stamp.Millis()+3_600_000, 0)
			r.show(to, m)
		}},
		{"a stamp that goes back", func(r *rig, from, to *Daemon) {
			r.show(to, r.message(from, to))
			r.pass(time.Second)
			m := r.message(from, to)
			m.Stamp = hlc.New(m.Stamp.Millis()-1_500, 0)
			r.show(to, m)
		}},
		{"a stamp not above one that was accepted", func(r *rig, from, to *Daemon) {
			ahead := r.message(from, to)
			ahead.Stamp = hlc.New(ahead.Stamp.Millis()+200, 0)
			r.step(to, ahead)
			r.pass(time.Millisecond)
			r.show(from, r.message(to, from))
		}},
		{"a stamp that is not followed", func(r *rig, from, to *Daemon) {
			ahead := r.message(from, to)
			ahead.Stamp = hlc.New(ahead.Stamp.Millis()+200, 0)
			r.show(to, ahead)
		}},
		{"a window an hour ahead", func(r *rig, from, _ *Daemon) {
			d := r.decision(from, quietKey, true)
			d.Clock += int64(time.Hour / time.Millisecond)
			r.w.auditors.decided(d)
		}},
		{"a window that comes again", func(r *rig, from, _ *Daemon) {
			d := r.decision(from, quietKey, true)
			d.Clock++
			r.w.auditors.decided(d)
			r.decide(from, quietKey, true)
		}},
		{"a window far behind", func(r *rig, from, _ *Daemon) {
			r.pass(time.Second)
			d := r.decision(from, quietKey, true)
			d.Clock -= 500
			r.w.auditors.decided(d)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, small(t), time.Second)
			r.decide(r.w.daemons[0], quietKey, true)
			r.clean("hlc")
			c.input(r, r.w.daemons[0], r.w.daemons[1])
			r.caught("hlc")
		})
	}
}

func TestBoundsAuditorCatches(t *testing.T) {
	for _, c := range []struct {
		name  string
		input func(r *rig, from, to *Daemon)
	}{
		{"too many cells", func(r *rig, from, to *Daemon) {
			m := r.message(from, to)
			for i := range gossip.DefaultFrameCells + 1 {
				m.Cells = append(m.Cells, r.cell(crdt.Key(i), m.From, 1))
			}
			r.show(to, m)
		}},
		{"too many refusals", func(r *rig, from, to *Daemon) {
			m := r.message(from, to)
			m.Refused = make([]gossip.Refusal, 1_025)
			r.show(to, m)
		}},
		{"too many messages", func(r *rig, from, to *Daemon) {
			for range 1_000 {
				r.pass(100 * time.Microsecond)
				r.show(to, r.message(from, to))
			}
		}},
		{"too many events", func(r *rig, from, _ *Daemon) {
			for range 1_025 {
				r.w.auditors.happened(from, gossip.Event{Kind: gossip.Resent})
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, small(t), time.Second)
			r.clean("bounds")
			c.input(r, r.w.daemons[0], r.w.daemons[1])
			r.caught("bounds")
		})
	}
}

// Two daemons that do not know each other's latest counts may each admit a
// limit, which is within the theorem; one that received them may not.
func TestOverageAuditorCatchesWhatWasKnown(t *testing.T) {
	r := newRig(t, small(t), time.Second)
	one, other := r.w.daemons[0], r.w.daemons[1]
	limit := int(r.rule().Limit.Requests)
	r.pass(10 * time.Millisecond)
	for range limit {
		r.decide(one, quietKey, true)
	}
	for range limit {
		r.decide(other, quietKey, true)
	}
	r.clean("overage")
	r.pass(10 * time.Millisecond)
	m := r.message(one, other)
	m.Cells = []gossip.Cell{r.cell(quietKey, m.From, uint64(limit))}
	m.Hi++
	r.step(other, m)
	r.decide(other, quietKey, true)
	r.caught("overage")
}

// What one daemon admitted alone it knows.
func TestOverageAuditorCatchesOneDaemonOverTheLimit(t *testing.T) {
	r := newRig(t, small(t), time.Second)
	for range r.rule().Limit.Requests {
		r.decide(r.w.daemons[0], quietKey, true)
	}
	r.clean("overage")
	r.decide(r.w.daemons[0], quietKey, true)
	r.caught("overage")
}

func TestDenialsAuditorCatches(t *testing.T) {
	r := newRig(t, small(t), time.Second)
	for range r.rule().Limit.Requests {
		r.decide(r.w.daemons[0], quietKey, true)
	}
	r.decide(r.w.daemons[1], quietKey, false)
	r.clean("denials")
	r.pass(time.Second) // into the next window
	r.decide(r.w.daemons[1], quietKey, false)
	r.caught("denials")
}

func TestProgressAuditorCatches(t *testing.T) {
	r := newRig(t, small(t), 4500*time.Millisecond)
	r.decide(r.w.daemons[0], quietKey, true)
	r.clean("progress")
	r.decide(r.w.daemons[0], quietKey, false)
	r.caught("progress")
}

// A replica that holds more of a process than was counted there is found.
func TestCellsAuditorCatchesInventedCounts(t *testing.T) {
	for _, extra := range []uint64{0, 1} {
		r := newRig(t, minute(t), time.Second)
		from, to := r.w.daemons[0], r.w.daemons[1]
		for range 3 {
			r.decide(from, quietKey, true)
		}
		m := r.message(from, to)
		m.Cells = []gossip.Cell{r.cell(quietKey, m.From, 3+extra)}
		m.Hi++
		r.step(to, m)
		r.look(from, to)
		if extra == 0 {
			r.clean("cells")
		} else {
			r.caught("cells")
		}
	}
}

// minute is small with windows that last for the run.
func minute(t *testing.T) *Config {
	cfg := small(t)
	cfg.Rules = parsed(t, `
domain: edge
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 2000}
`)
	return cfg
}

// A region may count hits once more each time that it restores, and no more
// than that: not twice for one restoration, and not for that of another region.
func TestCellsAuditorFollowsRestoredCounts(t *testing.T) {
	for _, extra := range []uint64{0, 1} {
		r := newRig(t, minute(t), time.Second)
		from, to := r.w.daemons[0], r.w.daemons[1]
		for range 3 {
			r.decide(from, quietKey, true)
		}
		restore := func(d *Daemon) {
			r.w.auditors.happened(d, gossip.Event{Kind: gossip.CountsRestored, Amount: 3})
		}
		restore(from)
		r.pass(time.Millisecond)
		restore(from)
		restore(to) // of the same region, at the same instant
		r.pass(time.Millisecond)
		restore(r.w.daemons[2]) // of another one
		m := r.message(from, to)
		m.Cells = []gossip.Cell{r.cell(quietKey, gossip.LostIncarnation(from.Region), 9+extra)}
		m.Hi++
		r.step(to, m)
		r.look(from, to)
		if extra == 0 {
			r.clean("cells")
		} else {
			r.caught("cells")
		}
	}
}

// A daemon that states to know all of a peer, and lacks a count of it, is
// found.
func TestCellsAuditorCatchesLostCounts(t *testing.T) {
	r := newRig(t, minute(t), time.Second)
	from, to := r.w.daemons[0], r.w.daemons[1]
	r.look(from, to)
	r.clean("cells")
	r.decide(from, quietKey, true)
	r.w.runUntil(r.w.now + time.Second) // the daemon itself knows of no such hit
	r.look(from, to)
	r.w.runUntil(r.w.now + time.Second) // a refusal would explain it until the next input
	r.caught("cells")
}

// A cell of a live window that is less than before is found.
func TestCellsAuditorCatchesCellsThatShrink(t *testing.T) {
	r := newRig(t, minute(t), time.Second)
	from, to := r.w.daemons[0], r.w.daemons[1]
	r.look(from, to)
	r.clean("cells")
	nodes := to.Nodes
	to.Nodes = r.w.daemons[2].Nodes // of another region
	r.look(from, to)
	to.Nodes = nodes
	r.caught("cells")
}

// A restarted process that counts under its former incarnation has lost the
// counts of the former process.
func TestCellsAuditorCatchesAReusedIncarnation(t *testing.T) {
	cfg := minute(t)
	cfg.Faults = []Fault{{Kind: Crash, At: 2 * time.Second, For: 100 * time.Millisecond, From: []string{"eu-0"}}}
	for _, reused := range []bool{false, true} {
		m := &mutation{reuseIncarnation: reused}
		_, r, err := run(cfg, Options{Auditors: TestAuditors("cells")}, m.rig)
		if err != nil {
			t.Fatal(err)
		}
		if a := r.Auditors[0]; a.Checks == 0 || a.Violations > 0 != reused {
			t.Errorf("incarnation reused %v: %+v", reused, a)
		}
	}
}

func TestDisagreementIsFound(t *testing.T) {
	for _, c := range []struct {
		name string
		at   int // the daemon that receives the message
		cell func(r *rig) gossip.Cell
	}{
		{"a cell that one of a region lacks", 1, func(r *rig) gossip.Cell {
			return r.cell(quietKey, r.w.daemons[0].Incarnations()[0], 1)
		}},
		{"a sum that one of a region lacks", 1, func(r *rig) gossip.Cell {
			c := r.cell(quietKey, gossip.RegionIncarnation("us"), 1)
			c.Kind = gossip.RegionSum
			return c
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := small(t)
			r := newRig(t, cfg, cfg.Duration)
			if !r.w.settle() {
				t.Fatal(r.w.pending)
			}
			r.w.runUntil(r.w.now + 300*time.Millisecond) // all clocks are in one window
			from, to := r.w.daemons[0], r.w.daemons[c.at]
			m := r.message(from, to)
			m.Cells = []gossip.Cell{c.cell(r)}
			m.Hi++
			if err := to.Nodes[0].Step(to.Instant(r.w.now), m); err != nil {
				t.Fatal(err)
			}
			if r.w.disagreement(r.w.Core()) == "" {
				t.Error("all agree")
			}
		})
	}
}

// A region's sum that falls short of its daemons is found even where all of the
// other region agree.
func TestShortSumIsFound(t *testing.T) {
	cfg := minute(t)
	cfg.Regions[1].Daemons = 1
	r := newRig(t, cfg, cfg.Duration)
	if !r.w.settle() {
		t.Fatal(r.w.pending)
	}
	from := r.w.daemons[0]
	cell := r.cell(quietKey, from.Incarnations()[0], 7)
	for _, to := range r.w.daemons[:2] {
		m := r.message(r.w.daemons[1-to.Index], to)
		m.Cells = []gossip.Cell{cell}
		m.Hi++
		if err := to.Nodes[0].Step(to.Instant(r.w.now), m); err != nil {
			t.Fatal(err)
		}
	}
	far := r.w.daemons[2]
	m := r.message(from, far)
	cell.Kind, cell.Incarnation, cell.Value.P = gossip.RegionSum, gossip.RegionIncarnation("eu"), 6
	m.Cells = []gossip.Cell{cell}
	m.Hi++
	if err := far.Nodes[0].Step(far.Instant(r.w.now), m); err != nil {
		t.Fatal(err)
	}
	if r.w.disagreement(r.w.Core()) == "" {
		t.Error("all agree")
	}
}
