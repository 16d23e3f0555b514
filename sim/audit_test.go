package sim

import (
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
		cfg.Shards = shards
		r, err := Run(cfg, Options{})
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

// An auditor alone keeps the books that it shares with the others.
func TestAuditorsWorkAlone(t *testing.T) {
	all, err := Run(small(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range auditors(small(t)) {
		want := all.Auditors[i]
		alone, err := Run(small(t), Options{Auditors: []string{want.Name}})
		if err != nil {
			t.Fatal(err)
		}
		if alone.TraceHash != all.TraceHash {
			t.Errorf("%s alone: trace %s, with all others %s", want.Name, alone.TraceHash, all.TraceHash)
		}
		if got := alone.Auditors[0]; got != want {
			t.Errorf("alone %+v, with the others %+v", got, want)
		}
	}
}

// Nobody watching changes nothing.
func TestAuditorsChangeNothing(t *testing.T) {
	with, err := Run(small(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	without, err := Run(small(t), Options{Auditors: []string{}})
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
		{"a message of tomorrow", false, func(_ *rig, m *gossip.Message) { m.Nonce += uint64(24 * time.Hour / time.Microsecond) }},
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
			r.tell(to, m)
			r.clean("messages")
			c.change(r, m)
			r.tell(to, m)
			r.caught("messages")
		})
	}
}

// A view that is older than its replica says is found where ages are compared.
func TestMessagesAuditorCatchesAnUnderstatedAge(t *testing.T) {
	r := newRig(t, small(t), time.Second)
	d := r.w.daemons[0]
	a := r.auditor("messages").(*messagesAuditor)
	a.links(r.w, d, 0)
	r.clean("messages")
	for _, e := range r.books().hearing.ears {
		e.sent -= time.Hour
	}
	a.links(r.w, d, 0)
	r.caught("messages")
}

func TestClockAuditorCatches(t *testing.T) {
	for _, c := range []struct {
		name  string
		plant func(r *rig, from, to *Daemon)
	}{
		{"a stamp an hour ahead", func(r *rig, from, to *Daemon) {
			m := r.message(from, to)
			m.Stamp = hlc.New(m.Stamp.Millis()+3_600_000, 0)
			r.tell(to, m)
		}},
		{"a stamp that goes back", func(r *rig, from, to *Daemon) {
			r.tell(to, r.message(from, to))
			r.pass(time.Second)
			m := r.message(from, to)
			m.Stamp = hlc.New(m.Stamp.Millis()-1_500, 0)
			r.tell(to, m)
		}},
		{"a stamp not above one that was taken", func(r *rig, from, to *Daemon) {
			ahead := r.message(from, to)
			ahead.Stamp = hlc.New(ahead.Stamp.Millis()+200, 0)
			r.tell(to, ahead)
			r.pass(time.Millisecond)
			r.tell(from, r.message(to, from))
		}},
		{"a window an hour ahead", func(r *rig, from, _ *Daemon) {
			r.books().clocks.of(from, 0).ceiling -= int64(time.Hour)
			r.decide(from, quietKey, true)
		}},
		{"a window that comes again", func(r *rig, from, _ *Daemon) {
			r.decide(from, quietKey, true)
			r.auditor("hlc").(*clockAuditor).windows[from.Index][0] += 10_000
			r.decide(from, quietKey, true)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, small(t), time.Second)
			r.decide(r.w.daemons[0], quietKey, true)
			r.clean("hlc")
			c.plant(r, r.w.daemons[0], r.w.daemons[1])
			r.caught("hlc")
		})
	}
}

func TestBoundsAuditorCatches(t *testing.T) {
	for _, c := range []struct {
		name  string
		plant func(r *rig, from, to *Daemon)
	}{
		{"too many cells", func(r *rig, from, to *Daemon) {
			m := r.message(from, to)
			for i := range gossip.DefaultFrameCells + 1 {
				m.Cells = append(m.Cells, r.cell(crdt.Key{Lo: uint64(i)}, m.From, 1))
			}
			r.tell(to, m)
		}},
		{"too many refusals", func(r *rig, from, to *Daemon) {
			m := r.message(from, to)
			m.Refused = make([]gossip.Refusal, mostRefusals+1)
			r.tell(to, m)
		}},
		{"too many messages", func(r *rig, from, to *Daemon) {
			for range 1_000 {
				r.pass(100 * time.Microsecond)
				r.tell(to, r.message(from, to))
			}
		}},
		{"too many events", func(r *rig, from, _ *Daemon) {
			for range mostEvents + 1 {
				for _, a := range r.w.auditors {
					a.Happened(r.w, from, gossip.Event{Kind: gossip.Resent})
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, small(t), time.Second)
			r.clean("bounds")
			c.plant(r, r.w.daemons[0], r.w.daemons[1])
			r.caught("bounds")
		})
	}
}

// Two daemons that know nothing of each other's latest may each admit a limit,
// which is within the theorem; one that was told may not.
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
	r.tell(other, r.message(one, other))
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

func TestInventedAuditorCatches(t *testing.T) {
	r := newRig(t, small(t), time.Second)
	from, to := r.w.daemons[0], r.w.daemons[1]
	for range 3 {
		r.decide(from, quietKey, true)
	}
	m := r.message(from, to)
	m.Cells = []gossip.Cell{r.cell(quietKey, m.From, 3)}
	m.Hi++
	r.step(to, m)
	r.clean("invented")
	r.pass(time.Millisecond)
	again := r.message(from, to)
	again.Cells = []gossip.Cell{r.cell(quietKey, m.From, 4)}
	again.Hi++
	r.step(to, again)
	r.caught("invented")
}

// A daemon says that it told all, its peer acknowledges, and a count is not
// there.
func TestLostAuditorCatches(t *testing.T) {
	r := newRig(t, small(t), time.Second)
	from, to := r.w.daemons[0], r.w.daemons[1]
	r.step(to, r.message(from, to))
	r.clean("lost")
	r.decide(from, quietKey, true)
	r.pass(time.Millisecond)
	m := r.message(from, to)
	m.Hi++
	r.step(to, m)
	r.pass(time.Millisecond)
	r.step(to, r.message(from, to))
	r.caught("lost")
}

// A restarted process that counts on under the slot it had has lost what was
// counted there.
func TestLostAuditorCatchesAReusedIncarnation(t *testing.T) {
	cfg := small(t)
	cfg.Rules = parsed(t, `
domain: edge
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 2000}
`)
	cfg.Faults = []Fault{{Kind: Crash, At: 2 * time.Second, For: 100 * time.Millisecond, From: []string{"eu-0"}}}
	for _, reused := range []bool{false, true} {
		cfg.mutation.reuseIncarnation = reused
		r, err := Run(cfg, Options{Auditors: []string{"lost"}})
		if err != nil {
			t.Fatal(err)
		}
		if a := r.Auditors[0]; a.Checks == 0 || a.Violations > 0 != reused {
			t.Errorf("slot reused %v: %+v", reused, a)
		}
	}
}

func TestGrowthAuditorCatches(t *testing.T) {
	for _, name := range []string{"a cell that went", "a cell that shrank"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, small(t), time.Second)
			from, to := r.w.daemons[0], r.w.daemons[1]
			r.decide(from, quietKey, true)
			c := r.cell(quietKey, from.Incarnations()[0], 1)
			m := r.message(from, to)
			m.Cells = []gossip.Cell{c}
			m.Hi++
			r.step(to, m)
			r.pass(time.Millisecond)
			r.step(to, r.message(from, to))
			r.clean("growth")
			last := r.books().looking.last[looked{writer: r.books().writers.of(to).index}]
			for i := range last {
				if last[i].CellID != c.CellID {
					continue
				}
				last[i].Value.P++
				if name == "a cell that went" {
					last[i].Key.Lo++
				}
			}
			r.pass(time.Millisecond)
			r.step(to, r.message(from, to))
			r.caught("growth")
		})
	}
}

func TestConvergenceAuditorCatches(t *testing.T) {
	for _, c := range []struct {
		name string
		at   int // the daemon that is told something
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
			r.auditor("convergence").Ended(r.w, true)
			r.clean("convergence")
			from, to := r.w.daemons[0], r.w.daemons[c.at]
			m := r.message(from, to)
			m.Cells = []gossip.Cell{c.cell(r)}
			m.Hi++
			if err := to.Nodes[0].Step(to.Instant(r.w.now), m); err != nil {
				t.Fatal(err)
			}
			r.auditor("convergence").Ended(r.w, true)
			r.caught("convergence")
		})
	}
}

// A region's sum that falls short of its daemons is found even where all of
// the other region agree.
func TestConvergenceAuditorCatchesAShortSum(t *testing.T) {
	cfg := small(t)
	r := newRig(t, cfg, cfg.Duration)
	if !r.w.settle() {
		t.Fatal(r.w.pending)
	}
	a := r.auditor("convergence").(*convergenceAuditor)
	want := []gossip.Cell{r.cell(quietKey, 0, 7)}
	has := r.cell(quietKey, gossip.RegionIncarnation("eu"), 6)
	has.Kind = gossip.RegionSum
	a.sums(r.w, r.w.daemons[2], "eu", want, []gossip.Cell{has})
	r.caught("convergence")
}
