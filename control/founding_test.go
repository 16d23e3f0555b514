package control

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

var foundings = flag.Int("foundings", 600, "runs of TestFoundings")

// TestFoundings checks that founders begin one cluster at most, and begin it
// as soon as they can: several of them ask for one, with different regions,
// while founders crash in the middle of writes and messages are lost, late, or
// pass in one direction only.
func TestFoundings(t *testing.T) {
	n := *foundings
	if testing.Short() {
		n /= 10
	}
	for seed := range uint64(n) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { beginUnderFaults(t, seed) })
	}
}

func beginUnderFaults(t *testing.T, seed uint64) {
	f := newFounders(t, seed)
	draw := f.w.rng.IntN
	for _, m := range f.w.machines[:1+draw(f.n)] {
		f.run(time.Duration(1+draw(25)) * tick)
		f.init(m)
	}
	rare := 1 + 3*draw(2)
	after := 20 + draw(40) // steps after the first choice
	for step := 0; step < 150 && after > 0; step++ {
		if len(f.chosen) > 0 {
			after--
		}
		if draw(rare) == 0 {
			f.fault()
		}
		f.run(time.Duration(1+draw(25)) * tick)
		if f.begun() {
			break
		}
	}
	f.mend()
	if len(f.chosen) == 0 {
		// Founders that accepted a founding complete it. Where none did, only
		// a command begins the cluster.
		f.run(10 * time.Second)
		if len(f.chosen) == 0 {
			if err := f.founder().node.Init(even("a", "b", "c"), true); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.until("begun everywhere", 60*time.Second, f.w.equal)
	f.until("a leader", 20*time.Second, func() bool { return f.w.leader() != nil })
}

// founders is a world before its cluster, with an audit of the disks of the
// founders.
type founders struct {
	t  *testing.T
	w  *world
	n  int           // founders
	io time.Duration // the longest write
	// read is how many items of each disk the audit has read.
	read map[*machine]int
	// accepted holds the founders whose disks hold that they accepted a ballot,
	// and value the cluster of the ballot.
	accepted map[Ballot]map[string]bool
	value    map[Ballot]Number
	// chosen are the clusters that a majority accepted under one ballot.
	chosen map[Number]bool
	slowed map[*machine]*[]byte // the write that got its duration
	raced  map[*machine]Ballot  // the ballot that another one raced
	calm   bool                 // no more faults
}

func newFounders(t *testing.T, seed uint64) *founders {
	names := []string{"a-0", "b-0", "c-0", "a-1", "b-1"}
	f := &founders{
		t: t, n: 3, read: map[*machine]int{}, accepted: map[Ballot]map[string]bool{}, value: map[Ballot]Number{},
		chosen: map[Number]bool{}, slowed: map[*machine]*[]byte{}, raced: map[*machine]Ballot{},
	}
	w := newWorld(t, seed, names...)
	if w.rng.IntN(3) == 0 {
		f.n = 5
	}
	w.founders = names[:f.n]
	w.heartbeat = []time.Duration{40, 200}[w.rng.IntN(2)] * time.Millisecond
	for _, name := range w.founders {
		w.add(name[:1], name, true)
	}
	if w.rng.IntN(4) == 0 {
		w.add("c", "c-9", false)
	}
	w.loss = []float64{0, 0.1, 0.4}[w.rng.IntN(3)]
	w.delay = []time.Duration{5, 60, 400}[w.rng.IntN(3)] * time.Millisecond
	f.io = []time.Duration{5, 100, 400}[w.rng.IntN(3)] * time.Millisecond
	f.w = w
	return f
}

// founder draws a founder.
func (f *founders) founder() *machine { return f.w.machines[f.w.rng.IntN(f.n)] }

// fault draws a command or a fault.
func (f *founders) fault() {
	w := f.w
	switch m := f.founder(); w.rng.IntN(16) {
	case 0, 1, 2:
		f.init(m)
	case 3:
		w.crash(m)
	case 4: // in the middle of a write, if there is one
		for _, o := range w.machines {
			if o.up && o.writing != nil {
				m = o
			}
		}
		w.crash(m)
	case 5, 6, 7, 8:
		for _, o := range w.machines {
			if o == m || w.rng.IntN(2) == 0 {
				o.paused = false
				w.start(o)
			}
		}
	case 9: // some messages pass in one direction only
		var cuts [25]bool
		for i := range cuts {
			cuts[i] = w.rng.IntN(3) == 0
		}
		at := map[*machine]int{}
		for i, m := range w.machines {
			at[m] = i
		}
		w.cut = func(from, to *machine) bool { return cuts[(5*at[from]+at[to])%len(cuts)] }
	case 10: // a founder sends and receives nothing, or one of the two
		out, in := w.rng.IntN(3) > 0, w.rng.IntN(3) > 0
		w.cut = func(from, to *machine) bool { return out && from == m || in && to == m }
	case 11, 12:
		w.cut = func(_, _ *machine) bool { return false }
	case 13: // messages to it wait
		m.paused = true
	case 14, 15: // timers run out: agreement must not depend on them
		for _, o := range w.machines[:f.n] {
			if o.up && w.rng.IntN(2) == 0 {
				o.node.founding.settled = w.now
				if o.node.founding.again != 0 {
					o.node.founding.again = w.now
				}
				if w.rng.IntN(2) == 0 {
					o.node.founding.until = w.now
				}
			}
		}
	}
}

// init asks a founder for a cluster, in one of several ways.
func (f *founders) init(m *machine) {
	if m.up {
		_ = m.node.Init([][]FirstRegion{even("a", "b", "c"), even("b", "c"), even("x")}[f.w.rng.IntN(3)], f.w.rng.IntN(2) == 0)
	}
}

// mend ends all faults.
func (f *founders) mend() {
	w := f.w
	f.calm = true
	w.cut = func(_, _ *machine) bool { return false }
	w.loss, w.delay, f.io = 0, min(w.delay, 100*time.Millisecond), 5*time.Millisecond
	for _, m := range w.machines {
		m.paused = false
		w.start(m)
	}
}

// begun reports whether every daemon has a record.
func (f *founders) begun() bool {
	for _, m := range f.w.machines {
		if !m.up || m.node.Record() == nil {
			return false
		}
	}
	return true
}

func (f *founders) until(what string, most time.Duration, ok func() bool) {
	f.t.Helper()
	for end := f.w.now + most; !ok(); f.run(tick) {
		if f.w.now >= end {
			f.t.Fatalf("at %v: not %s after %v\n%s", f.w.now, what, most, f.w.describe())
		}
	}
}

// run advances time and audits the disks.
func (f *founders) run(d time.Duration) {
	f.t.Helper()
	for end := f.w.now + d; f.w.now < end; {
		f.w.run(tick)
		for _, m := range f.w.machines {
			f.delay(m)
			f.race(m)
			f.audit(m)
		}
	}
}

// delay lets a write take its time.
func (f *founders) delay(m *machine) {
	if m.writing != nil && f.slowed[m] != &m.writing[0] {
		f.slowed[m] = &m.writing[0]
		m.written = f.w.now + time.Duration(f.w.rng.Int64N(int64(f.io)))
	}
}

// race lets another founder begin an attempt as soon as the one of a founder
// asks to accept.
func (f *founders) race(m *machine) {
	if f.calm || !m.up || m.node.founding.step != stepAccept || f.raced[m] == m.node.founding.ballot {
		return
	}
	f.raced[m] = m.node.founding.ballot
	if o := f.founder(); o.up && o.node.founding.again != 0 && f.w.rng.IntN(2) == 0 {
		o.node.founding.again = f.w.now
	}
}

// audit reads the new items of a disk. At most one cluster is chosen, and a
// record is that of the chosen one.
func (f *founders) audit(m *machine) {
	f.t.Helper()
	for ; f.read[m] < len(m.disk); f.read[m]++ {
		item := m.disk[f.read[m]]
		if !bytes.HasPrefix(item, []byte(`{"founding":`)) {
			continue
		}
		var s stored
		if err := json.Unmarshal(item, &s); err != nil {
			f.t.Fatal(err)
		}
		if s.Founding.Value != nil {
			f.accept(m, s.Founding)
		}
	}
	if m.up && m.node.Record() != nil && !f.chosen[m.node.Record().Cluster.ID] {
		f.t.Fatalf("at %v: %s begins cluster %v, which no majority of the disks holds", f.w.now, m.name, m.node.Record().Cluster.ID)
	}
}

// accept notes that a disk holds an accepted ballot.
func (f *founders) accept(m *machine, p *promise) {
	f.t.Helper()
	b := p.Accepted
	if was, ok := f.value[b]; ok && was != p.Value.Cluster {
		f.t.Fatalf("at %v: ballot %v is for cluster %v and for cluster %v", f.w.now, b, was, p.Value.Cluster)
	}
	if f.accepted[b] == nil {
		f.accepted[b] = map[string]bool{}
	}
	if f.accepted[b][m.name] {
		return
	}
	f.value[b], f.accepted[b][m.name] = p.Value.Cluster, true
	majority := 2*len(f.accepted[b]) > f.n
	if majority {
		f.chosen[p.Value.Cluster] = true
	}
	if len(f.chosen) > 1 {
		f.t.Fatalf("at %v: founders chose two clusters: %v", f.w.now, f.chosen)
	}
	if !f.calm {
		f.trap(b, majority)
	}
}

// trap makes the moments likely that Paxos is made for: a founding that is on
// the disk of its proposer alone; a proposer that does not learn that its
// founding is chosen; and a founder that sends, but does not learn what the
// majority accepted.
func (f *founders) trap(b Ballot, chosen bool) {
	w := f.w
	i := slices.IndexFunc(w.machines, func(m *machine) bool { return m.up && m.node.ID() == b.Proposer })
	if i < 0 {
		return
	}
	proposer := w.machines[i]
	switch n := w.rng.IntN(4); {
	case !chosen && len(f.accepted[b]) == 1 && n > 0:
		w.cut = func(from, _ *machine) bool { return from == proposer }
	case chosen && n == 0:
		w.cut = func(_, to *machine) bool { return to == proposer }
	case chosen && n == 1:
		w.crash(proposer)
	case chosen && n == 2:
		w.crash(proposer)
		w.cut = func(_, to *machine) bool { return !f.accepted[b][to.name] }
	}
}

// TestFoundingOfAMinority: regions with too few of the founders are no
// beginning, and no reason to compare settings.
func TestFoundingOfAMinority(t *testing.T) {
	w := newWorld(t, 1, "a-0", "b-0", "c-0")
	for _, name := range w.founders {
		w.add(name[:1], name, true)
	}
	w.run(2 * time.Second)
	if err := w.find("a-0").node.Init(even("a"), true); err != nil {
		t.Fatal(err)
	}
	w.run(10 * time.Second)
	for _, m := range w.machines {
		if m.node.Record() != nil {
			t.Errorf("%s has a record", m.name)
		}
	}
	for _, e := range w.events {
		if strings.Contains(e, FoundersDiffer.String()) {
			t.Error(e)
		}
	}
}

// TestWindowsOfAFormerCluster checks that a cluster has no rights and no owners
// of strict keys in windows that a former one may have used, unless it is
// stated that nothing ran before.
func TestWindowsOfAFormerCluster(t *testing.T) {
	for _, nothingRan := range []bool{false, true} {
		w := strictWorldOf(t, 1, nothingRan, []string{"a", "b", "c"}, "a-0", "b-0", "c-0")
		w.until("a layout", 60*time.Second, func() bool { return w.layout() != nil })
		r, want := w.leader().node.record, int64(0)
		if !nothingRan {
			want = r.Cluster.Begun + 2*w.leader().node.cfg.MaxOffset.Milliseconds() + 1
		}
		for i := range r.Regions {
			if g := &r.Regions[i]; g.From != want {
				t.Errorf("nothing ran before %v: region %s has rights from %d on, want %d", nothingRan, g.Name, g.From, want)
			}
		}
		lost := r.Layouts.Active.Lost
		if nothingRan && len(lost) != 0 || !nothingRan && (len(lost) != 1 || lost[0].Region != "" || lost[0].From != want) {
			t.Errorf("nothing ran before %v: the first layout has the losses %v, want one of any key from %d on", nothingRan, lost, want)
		}
		if nothingRan {
			continue
		}
		first := r.Layouts.Active.Clone()
		first.Lost = nil
		if err := (&Record{Version: r.Version, Cluster: r.Cluster, Regions: r.Regions}).changeLayouts(&LayoutChange{Announce: &first}); err == nil {
			t.Error("a first layout without the losses of a former cluster was accepted")
		}
	}
}

// TestFoundingFrom: a founder takes no request to begin from which rights would
// count before the cluster, or a long time after.
func TestFoundingFrom(t *testing.T) {
	for _, tc := range []struct {
		begun, from int64
		ok          bool
	}{{5, 0, true}, {5, 5, true}, {5, 5 + maxAhead, true}, {5, 4, false}, {5, 6 + maxAhead, false}, {math.MaxInt64, 1, false}} {
		f := Founding{Begun: tc.begun, From: tc.from, Regions: even("a")}
		if err := f.valid(); (err == nil) != tc.ok {
			t.Errorf("begun at %d, rights from %d on: %v", tc.begun, tc.from, err)
		}
	}
}

// TestFoundingAskedElsewhere: a daemon that is no founder passes on from when
// on rights count.
func TestFoundingAskedElsewhere(t *testing.T) {
	w := newWorld(t, 1, "a-0")
	w.add("a", "a-0", true)
	other := w.add("a", "a-1", false)
	w.run(2 * time.Second)
	if err := other.node.Init(even("a"), false); err != nil {
		t.Fatal(err)
	}
	w.until("begun", 20*time.Second, func() bool { return other.node.Record() != nil })
	if c := other.node.Record().Cluster; c.From <= c.Begun {
		t.Errorf("rights from %d on of a cluster that began at %d", c.From, c.Begun)
	}
}
