package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/control/revocation"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// incarnation is a process that is or was there, as membership sees it.
type incarnation struct {
	daemon       int
	name         string // and with it the address
	incarnations []crdt.Incarnation
	up           bool
}

// membership is the processes of the run, and news of them on the way to
// others.
type membership struct {
	all       []incarnation // in the order in which they started
	byAddress map[crdt.Incarnation]int32
	changes   pool[change]
	batches   map[batch]int32 // of changes, in large clusters
	control   []control.Peer  // of one call
}

// change is news of one incarnation on its way to one process.
type change struct {
	observer int
	process  int32 // incarnation of the observer that it is for
	about    int32
	refused  bool // its streams ended, or began again
	batch    batch
	others   []int32 // it is about these too
}

// batch names the changes that one process learns at the same time.
type batch struct {
	process int32
	at      time.Duration
}

// In clusters of at least manyDaemons, a process learns of changes once per
// batchEvery, with more than batchDaemons less often, as the square of their
// number: when all daemons start, each of them learns of each other one.
const (
	manyDaemons  = 100
	batchEvery   = 100 * time.Millisecond
	batchDaemons = 300
)

// join makes a new process a member: it learns its peers at once, and they
// learn of it after a while.
func (p *membership) join(w *World, d *Daemon) {
	d.member = int32(len(p.all))
	p.all = append(p.all, incarnation{daemon: d.Index, name: d.Name, incarnations: d.incarnations, up: true})
	p.byAddress[d.incarnations[0]] = d.member
	shakeHands(w, d)
	for i := range p.all {
		p.update(w, d, int32(i))
	}
	p.setPeers(w, d)
	p.announce(w, d.member, w.cfg.Members.Join)
}

// leave takes a process that ended out of the members. Others detect that, or
// learn of it as fast as of all else from a process that announces it.
func (p *membership) leave(w *World, d *Daemon) {
	p.all[d.member].up = false
	after := w.cfg.Members.Leave
	if d.leaving != nil && d.leaving.over {
		after = w.cfg.Members.Join
	}
	p.announce(w, d.member, after)
}

// announceReady sends news that a process takes its share of the work, or does
// so no longer. The process itself knows at once.
func (p *membership) announceReady(w *World, d *Daemon) {
	w.events.push(w.now, evMember, p.changes.put(change{observer: d.Index, process: d.member, about: d.member}))
	p.announce(w, d.member, w.cfg.Members.Join)
}

// announce sends news of an incarnation to every other process.
func (p *membership) announce(w *World, about int32, after time.Duration) {
	for _, o := range w.daemons {
		if o.Up && o.member != about {
			p.notify(w, o, about, after)
		}
	}
}

// notify lets a process look after a while whether an incarnation is there.
func (p *membership) notify(w *World, o *Daemon, about int32, after time.Duration) {
	at := w.now + after + w.faults.between(0, w.cfg.Members.Spread)
	if len(w.daemons) < manyDaemons {
		w.events.push(at, evMember, p.changes.put(change{observer: o.Index, process: o.member, about: about}))
		return
	}
	every := batchEvery * time.Duration(max(1, len(w.daemons)*len(w.daemons)/(batchDaemons*batchDaemons)))
	b := batch{o.member, (at/every + 1) * every}
	if i, ok := p.batches[b]; ok {
		p.changes.items[i].others = append(p.changes.items[i].others, about)
		return
	}
	if p.batches == nil {
		p.batches = make(map[batch]int32)
	}
	p.batches[b] = p.changes.put(change{observer: o.Index, process: o.member, about: about, batch: b})
	w.events.push(b.at, evMember, p.batches[b])
}

// learn brings a change to a process. The present state counts, so changes out
// of order end well.
func (p *membership) learn(w *World, c change) {
	o := w.daemons[c.observer]
	w.acting = o
	delete(p.batches, c.batch)
	if !o.Up || o.member != c.process || o.leaving != nil || w.faults.suffers(w, o, LateMembers) {
		return // the peers of a process that leaves stay the same
	}
	differs := p.update(w, o, c.about)
	for _, about := range c.others {
		differs = p.update(w, o, about) || differs
	}
	if differs || c.refused {
		p.setPeers(w, o)
	}
}

// update corrects the view that a process has of one incarnation, and reports
// whether it was wrong.
func (p *membership) update(w *World, o *Daemon, about int32) bool {
	at, knew := slices.BinarySearch(o.known, about)
	is := p.isMember(w, o, about)
	ready := is && p.ready(w, about)
	switch {
	case is && !knew:
		o.known, o.ready = slices.Insert(o.known, at, about), slices.Insert(o.ready, at, ready)
	case !is && knew && !w.faults.suffers(w, o, KeepMembers):
		o.known, o.ready = slices.Delete(o.known, at, at+1), slices.Delete(o.ready, at, at+1)
	case is && o.ready[at] != ready:
		o.ready[at] = ready
	default:
		return false
	}
	return true
}

// isMember reports whether membership counts an incarnation as there, seen
// from a process: not when it ended, nor when it was cut off within the region
// for long.
func (p *membership) isMember(w *World, o *Daemon, about int32) bool {
	m := &p.all[about]
	if !m.up || about == o.member {
		return m.up
	}
	if w.daemons[m.daemon].Region != o.Region {
		return true
	}
	since := max(w.network.link(m.daemon, o.Index).cutSince, w.network.link(o.Index, m.daemon).cutSince)
	return since == notCut || w.now-since < w.cfg.Members.Leave
}

// setPeers sets the peers of a process to the members that it knows, without
// those that a fault hides from it.
func (p *membership) setPeers(w *World, d *Daemon) {
	if w.traced(d) {
		w.lines.add(d, "members", "%s", w.lines.namesOf(d.known))
	}
	at := d.Instant(w.now)
	for s, n := range d.Nodes {
		list := make([]gossip.Peer, 0, len(d.known))
		for k, i := range d.known {
			if m := &p.all[i]; i == d.member || !p.misses(w, d, m) {
				list = append(list, gossip.Peer{
					ID: m.incarnations[s], Name: m.name, Region: w.daemons[m.daemon].Region, Ready: d.ready[k],
				})
			}
		}
		n.Peers(at, list)
		w.auditors.stepped(d, nil, nil)
		if s == 0 {
			d.agentPeers(w, list)
			d.strictPeers(w, list)
			d.controlPeers(w, list)
		}
	}
	w.drain(d, allShards)
}

// ready reports whether an incarnation that is up takes its share, as it
// announces.
func (p *membership) ready(w *World, i int32) bool {
	d := w.daemons[p.all[i].daemon]
	return d.leaving == nil && d.Synced()
}

// misses reports whether an incarnation is no peer of a process: it refuses the
// process, or a fault hides it.
func (p *membership) misses(w *World, d *Daemon, m *incarnation) bool {
	o := w.daemons[m.daemon]
	return d.refuses(o) || barred(d, o) || d.suspects != nil && d.suspects[o.Index] || slices.ContainsFunc(w.faults.active, func(i int) bool {
		f := &w.faults.all[i]
		return f.Kind == MissMembers && d.in(f.From) && o.in(f.To) || f.Kind == Zombie && o.in(f.From)
	})
}

// suffers reports whether a fault of a kind is in force at a daemon.
func (a *faults) suffers(w *World, d *Daemon, k FaultKind) bool {
	return slices.ContainsFunc(a.active, func(i int) bool {
		f := &w.faults.all[i]
		return f.Kind == k && d.in(f.From)
	})
}

// resyncMembers sets the peers of a process that a fault of membership affects,
// after it began or ended.
func resyncMembers(a *faults, w *World, _ *Fault, d *Daemon) {
	if !d.Up || d.leaving != nil || a.suffers(w, d, LateMembers) {
		return
	}
	for i := range w.membership.all {
		w.membership.update(w, d, int32(i))
	}
	w.membership.setPeers(w, d)
}

// suspectAgain is the mean time between two draws of the daemons that a fault
// declares dead.
const suspectAgain = 400 * time.Millisecond

// turn continues fault i: its daemons suspect others, or its zombies rise.
func (a *faults) turn(w *World, i int) {
	switch f := &w.faults.all[i]; {
	case !slices.Contains(a.active, i):
	case f.Kind == Zombie:
		a.rise(w, f, i)
	default:
		a.suspect(w, f, i)
	}
}

// suspect draws the peers that the daemons of a fault believe to be dead.
func (a *faults) suspect(w *World, f *Fault, i int) {
	ofEach(func(_ *faults, _ *World, _ *Fault, d *Daemon) {
		d.suspects = make([]bool, len(w.daemons))
		for o := range d.suspects {
			d.suspects[o] = w.daemons[o].in(f.To) && a.rng.IntN(2) == 0
		}
		if d.Up && d.leaving == nil {
			w.membership.setPeers(w, d)
		}
	})(a, w, f, i)
	w.events.push(w.now+a.between(suspectAgain/4, 2*suspectAgain), evSuspect, int32(i))
}

// trust ends what suspect began.
func (a *faults) trust(w *World, _ *Fault, d *Daemon) {
	d.suspects = nil
	if d.Up && d.leaving == nil {
		w.membership.setPeers(w, d)
	}
}

// bury stops the daemons of a fault, and all others take them for dead.
func (a *faults) bury(w *World, f *Fault, i int) {
	ofEach((*faults).pause)(a, w, f, i)
	a.risen[i] = false
	w.membership.resyncAll(w)
	if f.For > 0 {
		w.events.push(w.now+f.For/2, evSuspect, int32(i))
	}
}

// rise lets the zombies of fault i go on, once.
func (a *faults) rise(w *World, f *Fault, i int) {
	if !a.risen[i] {
		a.risen[i] = true
		ofEach((*faults).unpause)(a, w, f, i)
	}
}

// reveal ends what bury began.
func (a *faults) reveal(w *World, f *Fault, i int) {
	a.rise(w, f, i)
	w.membership.resyncAll(w)
}

// resyncAll sets the peers of every process anew.
func (p *membership) resyncAll(w *World) {
	for _, d := range w.daemons {
		if d.Up && d.leaving == nil {
			p.setPeers(w, d)
		}
	}
}

// recheckEvery is the time between two looks of a daemon at the names of its
// streams, and willingAfter the longest time until the parts of a process learn
// of a refused peer, as in gossip/link and daemon.
const (
	recheckEvery = 30 * time.Second
	willingAfter = time.Second
)

// nameOf returns a daemon as its certificate names it.
func nameOf(d *Daemon) revocation.Name { return revocation.Name{Region: d.Region, Daemon: d.Name} }

// revokes reports whether a daemon has another one as revoked, by its own
// record.
func revokes(d, o *Daemon) bool {
	return d.control != nil && d.control.Record() != nil && d.control.Record().Revoked.Has(nameOf(o))
}

// bars reports whether a daemon refuses the streams of another one as revoked,
// and barred whether one of two refuses those of the other.
func bars(d, o *Daemon) bool { return d.bars != nil && d.bars[o.Index] }

func barred(a, b *Daemon) bool { return bars(a, b) || bars(b, a) }

// bar ends the streams between two daemons, or accepts them again. Both notice.
func bar(w *World, d, o *Daemon, is bool) {
	if bars(d, o) == is || d == o {
		return
	}
	if d.bars == nil {
		d.bars = make([]bool, len(w.daemons))
	}
	d.bars[o.Index] = is
	if w.traced(d) {
		w.lines.add(d, "event", "revoked peer=%s refused=%t", o.Name, is)
	}
	for _, pair := range [][2]*Daemon{{d, o}, {o, d}} {
		a, b := pair[0], pair[1]
		if w.network.relinkOne(w, a, b); a.Up && b.Up {
			at := w.now + w.faults.between(0, willingAfter)
			w.events.push(at, evMember, w.membership.changes.put(change{observer: a.Index, process: a.member, about: b.member, refused: true}))
		}
	}
}

// shakeHands begins the streams of a process that starts: each end refuses
// those of a revoked name at once.
func shakeHands(w *World, d *Daemon) {
	for _, o := range w.daemons {
		bar(w, d, o, revokes(d, o))
		bar(w, o, d, revokes(o, d))
		if o.Up && bars(o, d) {
			w.met.took(w, revokedRefused)
		}
	}
}

// followRevoked accepts the peers that the record of a daemon has no more as
// revoked, which try again all the time. The streams of the others end at the
// next look at them. These are a fixed time apart, from a drawn one on.
func followRevoked(d *Daemon, w *World) {
	for _, o := range w.daemons {
		bar(w, d, o, bars(d, o) && revokes(d, o))
	}
	if len(d.control.Record().Revoked) == 0 {
		return
	}
	acceptAgain(w)
	if d.rechecks {
		return
	}
	d.rechecks = true
	rng := rand.New(rand.NewPCG(w.cfg.Seed, streamRecheck+uint64(d.member)))
	first := d.started + time.Duration(rng.Int64N(int64(recheckEvery)))
	w.events.push(w.now+recheckEvery-(w.now-first+recheckEvery)%recheckEvery, evRecheck, d.member)
}

// recheck ends the streams of revoked names at a process, which looks again
// while its record has any.
func recheck(w *World, process int32) {
	d := w.daemons[w.membership.all[process].daemon]
	switch {
	case !d.Up || d.member != process:
		return
	case d.Paused:
		d.defers(evRecheck, process)
		return
	}
	for _, o := range w.daemons {
		bar(w, d, o, revokes(d, o))
	}
	if d.rechecks = len(d.control.Record().Revoked) > 0; d.rechecks {
		w.events.push(w.now+recheckEvery, evRecheck, process)
	}
}

// revoke has the operator revoke the daemons of fault i, where there is a
// record.
func (a *faults) revoke(w *World, f *Fault, i int) {
	if w.cfg.Control == nil {
		return
	}
	ofEach(func(_ *faults, _ *World, _ *Fault, d *Daemon) {
		name := nameOf(d)
		r := &removal{name: name, change: func(*Daemon) control.Change {
			return control.Change{Revoke: &revocation.Change{Name: name}}
		}}
		a.removals[i] = append(a.removals[i], r)
		a.order(w, func() bool { return r.step(w, slices.Contains(a.active, i)) })
	})(a, w, f, i)
}

// unrevoke ends what revoke began.
func (a *faults) unrevoke(w *World, _ *Fault, i int) {
	delete(a.removals, i)
	acceptAgain(w)
}

// acceptAgain has the operator accept again the daemons that a record has as
// revoked without a fault in force: where it is over, and where a recovery of
// the control log dropped that they were accepted.
func acceptAgain(w *World) {
	a := &w.faults
	if a.undoing || !slices.ContainsFunc(w.daemons, func(d *Daemon) bool { return unwanted(w, d) != nil }) {
		return
	}
	a.undoing = true
	w.events.push(w.now+commandEvery, evCommand, a.commands.put(&command{step: func() bool {
		a.undoing = false
		has := func(o *Daemon) bool { return unwanted(w, o) != nil && led(w, o) }
		if w.healed { // what an operator must do first, whether or not all daemons can agree
			if !controlMajority(w) || !slices.ContainsFunc(w.daemons, has) {
				recoverControl(w, false)
			}
			_ = uncontrolled(w)
		}
		if d := operated(w, has); d != nil {
			a.submitUndo(w, d, *unwanted(w, d))
		}
		acceptAgain(w)
		return true
	}}))
}

// submitUndo submits the command to accept a name at a daemon whose record has
// it as revoked. It is the same command until such a record has its outcome:
// the control log does it once. Other commands would wait for each other, each
// for as long as an entry takes, and so would all later changes.
func (a *faults) submitUndo(w *World, d *Daemon, name revocation.Name) {
	id := a.undos[name]
	if d.control.Record().Outcome(id) != nil { // it was revoked again
		id = 0
	}
	change := control.Change{Revoke: &revocation.Change{Name: name, Undo: true}}
	if id, err := d.control.Submit(control.Request{ID: id, Author: "operator", Change: change}); err == nil {
		a.undos[name] = id
		w.met.ordered(w, d, id, change)
	}
	d.turnControl(w)
}

// unwanted returns a name that the record of a daemon has as revoked without a
// fault in force, nil for none.
func unwanted(w *World, d *Daemon) *revocation.Name {
	if d.control == nil || d.control.Record() == nil {
		return nil
	}
	for _, e := range d.control.Record().Revoked {
		inForce := slices.ContainsFunc(w.faults.active, func(i int) bool {
			return slices.ContainsFunc(w.faults.removals[i], func(r *removal) bool { return r.name == e.Name })
		})
		if !inForce {
			return &e.Name
		}
	}
	return nil
}
