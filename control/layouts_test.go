package control

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/sticky/route"
)

// acceptorModel is what an acceptor of strict keys does, with one key: package
// sticky/quorum has the real one. It is on a disk that loses nothing.
type acceptorModel struct {
	base   route.Layout  // that it has copied for
	next   *route.Layout // that it seals base for
	amount int           // its watermark
	store  uint64
}

func (a *acceptorModel) newest() *route.Layout {
	if a.next != nil {
		return a.next
	}
	return &a.base
}

// follow follows the record of the daemon of a machine, and reports to it.
func (a *acceptorModel) follow(w *world, m *machine) {
	if m.node.Record() == nil {
		m.node.Layouts().Report(AcceptorReport{Store: a.store}, nil)
		return
	}
	l, report := m.node.Record().Layouts.Newest(), AcceptorReport{Store: a.store}
	if is := a.newest(); l != nil && (l.Number != is.Number || l.Log != is.Log) {
		switch {
		case !l.Covers(&a.base) || a.next != nil && !l.Covers(a.next):
			report.Unknown = is
			if !l.Covers(&a.base) {
				report.Unknown = &a.base
			}
		case l.Number > is.Number:
			a.next = l
		}
	}
	if a.next != nil && a.next.Generation(m.region, m.name) == a.store && a.copies(w, m) {
		a.base, a.next = *a.next, nil
	}
	report.Number, report.Log, report.Copied = a.newest().Number, a.newest().Log, a.next == nil && a.base.Number > 0
	m.node.Layouts().Report(report, nil)
}

// copies reports whether the machine is a voter of the next layout and could
// copy all that it needs: it has done so then.
func (a *acceptorModel) copies(w *world, m *machine) bool {
	if !slices.Contains(a.next.VotersOf(m.region), m.name) {
		return false
	}
	amount := a.amount
	for _, f := range a.next.Formers {
		for _, g := range f.Regions {
			sealed := 0
			for _, i := range w.rng.Perm(len(g.Replicas)) { // any majority must do
				o := w.find(g.Replicas[i])
				if is := o.acceptor.newest(); o.up && o.acceptor.base.Number > 0 && !w.cut(o, m) && is.Number == a.next.Number && is.Log == a.next.Log && 2*sealed <= len(g.Replicas) {
					sealed++
					amount = max(amount, o.acceptor.amount)
				}
			}
			if 2*sealed <= len(g.Replicas) {
				return false
			}
		}
	}
	a.amount = amount
	return true
}

// consume lets the owner of the key in a region consume one hit by the record
// of a machine, if a majority of the strict voters stores that. It must know
// all that was consumed before.
func (w *world) consume(m *machine) {
	r := m.node.Record()
	if r == nil || r.Layouts.Active == nil || len(r.Layouts.Active.Regions) == 0 {
		return
	}
	l := r.Layouts.Active
	g := &l.Regions[0] // the home region of the key
	var voters []*machine
	for _, i := range w.rng.Perm(len(g.Replicas)) {
		o := w.find(g.Replicas[i])
		if !o.up || w.cut(m, o) || w.cut(o, m) || 2*len(voters) > len(g.Replicas) {
			continue
		}
		is, active := &o.acceptor, o.node.Record().Layouts.Active
		if active != nil && is.next == nil && is.base.Number == l.Number && is.base.Log == l.Log && active.Number == l.Number && active.Log == l.Log {
			voters = append(voters, o)
		}
	}
	if 2*len(voters) <= len(g.Replicas) {
		return
	}
	known := 0
	for _, o := range voters {
		known = max(known, o.acceptor.amount)
	}
	if known != w.spent {
		w.t.Fatalf("at %v: an owner under layout %d knows of %d hits, and %d are consumed\n%s", w.now, l.Number, known, w.spent, w.describe())
	}
	w.spent++
	for _, o := range voters {
		o.acceptor.amount = w.spent
	}
}

// strictWorld returns the first cluster of daemons that have acceptors.
func strictWorld(t *testing.T, seed uint64, regions []string, names ...string) *world {
	t.Helper()
	return strictWorldOf(t, seed, true, regions, names...)
}

// strictWorldOf returns a cluster of daemons that have acceptors.
func strictWorldOf(t *testing.T, seed uint64, nothingRan bool, regions []string, names ...string) *world {
	t.Helper()
	var founders []string
	for _, region := range regions {
		founders = append(founders, region+"-0")
	}
	w := newWorld(t, seed, founders...)
	w.layouts = true
	for _, name := range names {
		w.add(name[:1], name, true)
	}
	w.run(time.Second)
	if err := w.find(founders[0]).node.Init(even(regions...), nothingRan); err != nil {
		t.Fatal(err)
	}
	w.until("begun", 20*time.Second, func() bool { return w.leader() != nil && w.equal() })
	return w
}

// layout returns the active layout of a cluster, without an announced one, or
// nil.
func (w *world) layout() *route.Layout {
	l := w.leader()
	if l == nil || l.node.Record().Layouts.Announced != nil {
		return nil
	}
	return l.node.Record().Layouts.Active
}

// untilVoters waits until the active layout has the voters, such as "a: a-0 a-1
// a-2; b: b-0".
func (w *world) untilVoters(want string) time.Duration {
	w.t.Helper()
	var is string
	defer func() {
		if w.t.Failed() {
			w.t.Logf("the voters are %s", is)
		}
	}()
	return w.until("strict voters "+want, 3*time.Minute, func() bool {
		l := w.layout()
		if l == nil {
			return false
		}
		var all []string
		for _, g := range l.Regions {
			all = append(all, g.Name+": "+strings.Join(g.Replicas, " "))
		}
		is = strings.Join(all, "; ")
		return is == want
	})
}

// TestFirstLayout: a cluster that begins has strict voters at once.
func TestFirstLayout(t *testing.T) {
	for _, tc := range []struct {
		daemons string
		voters  int
	}{{"a-0", 1}, {"a-0 a-1", 2}, {"a-0 a-1 a-2 a-3 b-0", 3}, {"a-0 a-1 a-2 a-3 a-4 a-5", 3}} { // five follow
		t.Run(tc.daemons, func(t *testing.T) {
			regions := []string{"a"}
			if strings.Contains(tc.daemons, "b-0") {
				regions = append(regions, "b")
			}
			w := strictWorld(t, 1, regions, strings.Fields(tc.daemons)...)
			w.run(5 * time.Second)
			if l := w.layout(); l == nil || len(l.VotersOf("a")) < tc.voters {
				t.Errorf("layout %+v 5 s after the beginning: want %d voters\n%s", l, tc.voters, w.describe())
			}
		})
	}
	w := strictWorld(t, 1, []string{"a"}, "a-0", "a-1", "a-2", "a-3", "a-4", "a-5")
	w.until("five voters", time.Minute, func() bool { l := w.layout(); return l != nil && len(l.VotersOf("a")) == 5 })
}

// TestStrictVoterReplaced: a voter that is away for long is replaced inside of
// its region, one that leaves at once, and neither by nobody.
func TestStrictVoterReplaced(t *testing.T) {
	w := strictWorld(t, 1, []string{"a", "b"}, "a-0", "a-1", "a-2", "b-0", "b-1", "b-2")
	w.untilVoters("a: a-0 a-1 a-2; b: b-0 b-1 b-2")
	w.crash(w.find("b-1"))
	w.run(time.Minute)
	w.untilVoters("a: a-0 a-1 a-2; b: b-0 b-1 b-2")
	w.start(w.find("b-1"))
	w.add("a", "a-3", true)
	w.run(5 * time.Second) // beyond Stable
	w.crash(w.find("a-1"))
	if d := w.untilVoters("a: a-0 a-2 a-3; b: b-0 b-1 b-2"); d < 9*time.Second {
		t.Errorf("a voter was replaced after %v: want 10 s", d)
	}
	w.start(w.find("a-1"))
	w.run(5 * time.Second)
	w.find("a-0").node.Leave()
	if !w.find("a-0").node.Status().HandsOver {
		t.Error("a daemon that leaves does not wait until another one has its strict vote")
	}
	if d := w.untilVoters("a: a-1 a-2 a-3; b: b-0 b-1 b-2"); d > 4*time.Second {
		t.Errorf("a voter that leaves handed over after %v", d)
	}
	w.run(time.Second)
	if w.find("a-0").node.layouts.handsOver() {
		t.Error("a daemon without a strict vote waits")
	}
}

// TestRegionsAndLayouts: a region that is added gets strict voters, and its
// reserve in windows that start later. One that drains loses them.
func TestRegionsAndLayouts(t *testing.T) {
	w := strictWorld(t, 1, []string{"a"}, "a-0", "b-0")
	w.untilVoters("a: a-0")
	if r := w.submit(w.find("a-0"), Change{Region: &RegionChange{Op: AddRegion, Name: "b", Weight: Whole / 2}}); r.Err != nil {
		t.Fatal(r.Err)
	}
	before := w.find("a-0").wall(w)
	w.untilVoters("a: a-0; b: b-0")
	l := w.layout()
	if len(l.Reserves) != 2 || l.Reserves[0].Regions != 1 || l.Reserves[1].Regions != 2 || !slices.Equal(l.Reserves[1].New, []string{"b"}) || l.Reserves[1].From <= before+1_000 {
		t.Errorf("reserves %+v: want 1, and 2 in windows that start 1 s after %d", l.Reserves, before)
	}
	if err := w.submit(w.find("a-0"), Change{Region: &RegionChange{Op: DrainRegion, Name: "a"}}).Err; err != nil {
		t.Fatal(err)
	}
	w.untilVoters("b: b-0")
}

// TestLostAcceptors: two of five voters lose their disks. Each needs the state
// of all others to vote again, so the next layout has their new store numbers.
func TestLostAcceptors(t *testing.T) {
	w := strictWorld(t, 1, []string{"a"}, "a-0", "a-1", "a-2", "a-3", "a-4")
	w.untilVoters("a: a-0 a-1 a-2 a-3 a-4")
	number := w.layout().Number
	for i, name := range []string{"a-1", "a-3"} {
		w.find(name).acceptor = acceptorModel{store: 7 + uint64(i)}
	}
	w.until("the next layout", time.Minute, func() bool { l := w.layout(); return l != nil && l.Number > number })
	if l := w.layout(); l.Generation("a", "a-1") != 7 || l.Generation("a", "a-3") != 8 {
		t.Errorf("store numbers %v: want those of the new disks", l.Regions[0].Generations)
	}
}

// TestLayoutRefused: the record refuses changes of layouts that would let two
// owners consume.
func TestLayoutRefused(t *testing.T) {
	r := (&Founding{Cluster: 1, Regions: even("a"), Founders: []Founder{{Name: "a-0", Region: "a", Raft: 1}}}).record()
	layout := func(number uint64, voter string, formers ...route.Former) *route.Layout {
		return &route.Layout{Number: number, Regions: []route.Region{{Name: "a", Weight: 1, Replicas: []string{voter}}}, Formers: formers}
	}
	change := func(c *LayoutChange) error {
		next := r.at(r.Version, true)
		err := next.changeLayouts(c)
		if err == nil {
			r = next
		}
		return err
	}
	for _, tc := range []struct {
		c    *LayoutChange
		want string
	}{
		{&LayoutChange{}, "want one"},
		{&LayoutChange{Activate: &Activation{Number: 1}}, "not announced"},
		{&LayoutChange{Announce: layout(1, "x")}, ""},
		{&LayoutChange{Announce: layout(1, "y")}, "greater number"},
		{&LayoutChange{Activate: &Activation{Number: 1}}, ""},
		{&LayoutChange{Announce: layout(2, "y")}, "does not copy from layout 1"},
		{&LayoutChange{Announce: layout(2, "y", layout(1, "x").Former())}, "does not copy from layout 1"}, // of another log
		{&LayoutChange{Announce: layout(2, "y", r.formerOf(1, "x"))}, ""},
		{&LayoutChange{Announce: layout(3, "z", r.formerOf(1, "x"))}, ""},
		{&LayoutChange{Activate: &Activation{Number: 2}}, "not announced any more"},
		{&LayoutChange{Activate: &Activation{Number: 3}}, ""},
	} {
		err := change(tc.c)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v: want %q", tc.c.describe(), err, tc.want)
		}
	}
	r.Version.Recovery = Recovery{1, 7}
	r.Layouts.Announced = r.Layouts.Active
	if err := change(&LayoutChange{Activate: &Activation{Number: 3}}); err == nil {
		t.Error("a layout became active that was announced before a recovery")
	}
}

// TestRefusedLayouts: a leader whose layouts are refused proposes them less and
// less often.
func TestRefusedLayouts(t *testing.T) {
	w := strictWorld(t, 1, []string{"a"}, "a-0")
	w.untilVoters("a: a-0")
	a := w.find("a-0")
	a.acceptor.base.Number = maxLayout // no layout can follow
	w.run(10 * time.Second)
	before := a.node.Record()
	w.run(time.Minute)
	after := a.node.Record()
	if last := after.Outcomes[len(after.Outcomes)-1]; !strings.Contains(last.Refused, "want at most") {
		t.Fatalf("the latest outcome is %+v: want a layout that is refused", last)
	}
	if n := after.Version.Index - before.Version.Index; n < 5 || n > 30 {
		t.Errorf("%d entries in a minute: want some, and few", n)
	}
}

func (r *Record) formerOf(number uint64, voter string) route.Former {
	return route.Former{Number: number, Log: r.Version.Recovery.log(), Regions: []route.FormerRegion{{Name: "a", Replicas: []string{voter}}}}
}

// TestLayoutStorm: whatever voters are lost, cut off, replaced, and dropped by
// recoveries with the log, each owner counts all that was consumed before.
func TestLayoutStorm(t *testing.T) {
	seeds := 12
	if testing.Short() {
		seeds = 3
	}
	spent := 0
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { spent += layoutStorm(t, seed) })
	}
	if spent < 100*seeds {
		t.Errorf("%d hits were consumed in %d storms: the test shows little", spent, seeds)
	}
}

// TestDroppedLayout: a recovery drops a layout that was active. The voters of
// the next one copy from its voters, too.
func TestDroppedLayout(t *testing.T) {
	w := strictWorld(t, 1, []string{"a", "b", "c"}, "a-0", "a-1", "a-2", "b-0", "c-0", "c-1", "c-2")
	w.untilVoters("a: a-0 a-1 a-2; b: b-0; c: c-0 c-1 c-2")
	w.add("a", "a-3", true)
	w.run(5 * time.Second)
	behind := w.find("c-2")
	// One that votes is replaced while c-2 hears nothing of it but the seal.
	stale := func(from, to *machine) bool {
		return (from == behind || to == behind) && behind.node.Record().Layouts.Announced != nil
	}
	w.cut = stale
	w.find("a-0").node.Leave()
	leader := func() *Record { return w.find("a-1").node.Record() }
	w.until("layout 2 active", time.Minute, func() bool { return leader().Layouts.Active.Number == 2 })
	for range 20 {
		w.run(5 * tick)
		w.consume(w.find("a-1"))
	}
	if w.spent == 0 {
		t.Fatal("nothing was consumed under layout 2")
	}
	if err := behind.node.Recover(RecoverRequest{Behind: true, Stopped: true}); err != nil {
		t.Fatal(err)
	}
	w.cut = func(_, _ *machine) bool { return false }
	w.until("a layout of the recovery", 2*time.Minute, func() bool {
		l := w.layout()
		return l != nil && l.Log.Number == 1
	})
	if l := w.layout(); !slices.ContainsFunc(l.Formers, func(f route.Former) bool { return f.Number == 2 }) {
		t.Errorf("the layout after the recovery is copied from %+v: want also layout 2", l.Formers)
	}
	before := w.spent
	for range 20 {
		w.run(5 * tick)
		w.consume(w.find("a-1"))
	}
	if w.spent == before {
		t.Error("nothing was consumed after the recovery")
	}
}

// TestFirstLayoutOfOneRecovery: a recovery of a log without a layout gets one
// only with a majority of the daemons that began. Two recoveries get one.
func TestFirstLayoutOfOneRecovery(t *testing.T) {
	w := strictWorld(t, 1, []string{"a", "b", "c"}, "a-0", "b-0", "c-0")
	lone := w.find("b-0")
	w.cut = func(from, to *machine) bool { return from == lone || to == lone }
	if err := lone.node.Recover(RecoverRequest{Behind: true, Stopped: true}); err != nil {
		t.Fatal(err)
	}
	w.run(time.Minute)
	if l := lone.node.Record().Layouts; l.Active != nil || l.Announced == nil {
		t.Errorf("active %+v, announced %+v: want one that is announced", l.Active, l.Announced)
	}
	w.cut = func(_, _ *machine) bool { return false }
	w.until("a layout of the recovery", time.Minute, func() bool { return w.layout() != nil })
}

func layoutStorm(t *testing.T, seed uint64) int {
	rng := rand.New(rand.NewPCG(seed, 99))
	names := []string{"a-0", "a-1", "a-2", "a-3", "b-0"}
	w := strictWorld(t, seed, []string{"a", "b"}, names...)
	w.loss = 0.1 * rng.Float64()
	side := map[string]bool{}
	w.cut = func(from, to *machine) bool { return side[from.name] != side[to.name] }
	for range 150 {
		m := w.machines[rng.IntN(len(w.machines))]
		switch rng.IntN(8) {
		case 0:
			w.crash(m)
		case 1:
			w.start(m)
		case 2: // it hands over, and comes back
			if m.up {
				m.node.Leave()
				w.run(time.Duration(rng.IntN(3_000)) * time.Millisecond)
				w.crash(m)
			}
		case 3:
			for _, name := range names {
				side[name] = rng.IntN(2) == 0
			}
		case 4:
			if m.up && m.node.Record() != nil && rng.IntN(2) == 0 {
				_ = m.node.Recover(RecoverRequest{Behind: true, Stopped: true})
			}
		default: // all is well for a while
			clear(side)
			for _, o := range w.machines {
				w.start(o)
			}
		}
		for range rng.IntN(30) {
			w.run(5 * tick)
			if o := w.machines[rng.IntN(len(w.machines))]; o.up && o.node.Record() != nil {
				w.consume(o)
			}
		}
	}
	most := uint64(0)
	for _, m := range w.machines {
		most = max(most, m.acceptor.newest().Number)
	}
	t.Logf("%d hits under %d layouts", w.spent, most)
	return w.spent
}

// strictNames returns the voters of a layout, by region and name.
func strictNames(l *route.Layout) (all []string) {
	for i := range l.Regions {
		all = append(all, l.Regions[i].Replicas...)
	}
	return all
}

// layoutsText describes the layouts of a record.
func layoutsText(l *Layouts) (out string) {
	for _, x := range l.Lost {
		out += fmt.Sprintf("the voters of %s are lost up to layout %d, with all from before %s, until %s\n", x.Region, x.Number, stamped(x.From), stamped(x.Until))
	}
	for what, is := range map[string]*route.Layout{"active": l.Active, "announced": l.Announced} {
		if is == nil {
			continue
		}
		out += fmt.Sprintf("layout %d is %s:", is.Number, what)
		for i := range is.Regions {
			out += fmt.Sprintf(" %s %v", is.Regions[i].Name, is.Regions[i].Replicas)
		}
		for i := range is.Formers {
			out += fmt.Sprintf("; copied from layout %d:", is.Formers[i].Number)
			for _, g := range is.Formers[i].Regions {
				out += " " + g.Name
			}
		}
		for i := range is.Lost {
			x := &is.Lost[i]
			out += fmt.Sprintf("; without what %s of", x.Region)
			for _, g := range x.Regions {
				out += fmt.Sprintf(" %s:%d", g.Name, g.Weight)
			}
			out += " had before " + stamped(x.From)
		}
		out += "\n"
	}
	return out
}
