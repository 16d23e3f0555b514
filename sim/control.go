package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky/route"
	"github.com/georld/rld/wire"
)

// Founders returns the names of the founders of the control log.
func (c *Config) Founders() []string {
	if c.Control != nil && len(c.Control.Founders) > 0 {
		return c.Control.Founders
	}
	var all []string
	for _, r := range c.Regions[:min(len(c.Regions), control.MaxFounders)] {
		all = append(all, r.Daemon(0))
	}
	return all
}

// controlOf returns the configuration of a daemon's node of the control log.
func (c *Config) controlOf(d *Daemon) control.Config {
	out := *c.Control
	out.Name, out.Region, out.Founders = d.Name, d.Region, c.Founders()
	out.Durable = !c.diskless(d)
	out.DaemonHorizon, out.MaxOffset = max(c.Rights.DaemonHorizon, 0), c.maxOffset()
	out.Layouts = c.HasOwners()
	if out.Format = control.Format; d.newer {
		out.Format++
	}
	out.Language = replica.Language(d.Region, limits.Options{MergeDomains: true})
	return out
}

// validateControl returns an error for a bad configuration of the control log.
func (c *Config) validateControl() error {
	places := c.Places()
	for _, name := range slices.Concat(c.Founders(), c.Diskless) {
		if !slices.Contains(places, name) {
			return fmt.Errorf("sim: control: no region or daemon %q", name)
		}
	}
	if c.Begin < 0 || c.Begin > c.Duration {
		return fmt.Errorf("sim: the cluster begins at %v: want 0 to %v, the duration", c.Begin, c.Duration)
	}
	if c.Control == nil {
		return nil
	}
	for _, r := range c.Regions {
		for i := range r.Daemons {
			x := c.controlOf(&Daemon{Name: r.Daemon(i), Region: r.Name, owner: r.Daemon(i)})
			if err := x.Validate(); err != nil {
				return fmt.Errorf("sim: %w", err)
			}
			if slices.Contains(x.Founders, x.Name) && !x.Durable {
				return fmt.Errorf("sim: control: founder %q is diskless", x.Name)
			}
		}
	}
	return nil
}

// openControl recovers the node of the control log of a process that starts.
func (d *Daemon) openControl(w *World, stream uint64) error {
	if w.cfg.Control == nil {
		return nil
	}
	rng := rand.New(rand.NewPCG(w.cfg.Seed, streamControl+uint64(d.Index)<<32+stream))
	disk := d.storage
	disk.Owner.Name = cmp.Or(d.journalOf, disk.Owner.Name)
	n, log, found, err := disk.OpenControl(w.cfg.controlOf(d), control.InsecureSeed(rng), rng)
	if err != nil {
		if _, later := errors.AsType[*control.FormatError](err); later {
			w.met.took(w, formatRefused)
			d.newer = true // the operator starts the later version again
			return d.openControl(w, stream)
		}
		return fmt.Errorf("sim: the disk of %s: %w", d.Name, err)
	}
	d.control, d.controlLog, d.early, d.limitsOf = n, log, map[crdt.Incarnation]*control.Message{}, control.Version{}
	if log != nil {
		w.opened(d, found.File, found.Damage)
		w.met.opened(w, d, &found)
	}
	return nil
}

// controlPeers sets the live daemons, as a process knows them.
func (d *Daemon) controlPeers(w *World, list []gossip.Peer) {
	if d.control == nil {
		return
	}
	all := w.membership.control[:0]
	for _, p := range list {
		all = append(all, control.Peer{Address: p.ID, Name: p.Name, Region: p.Region})
	}
	w.membership.control = all
	at := d.Instant(w.now)
	d.control.Peers(at.Mono, d.incarnations[0], all)
	for i := 0; i < len(all) && len(d.early) > 0; i++ {
		p := &all[i]
		if m := d.early[p.Address]; m != nil { // as if it came now
			delete(d.early, p.Address)
			w.auditors.counted(d, m, d.control.Receive(at.Mono, at.Wall/int64(time.Millisecond), m))
		}
	}
	d.turnControl(w)
}

// turnControl does the work of the control log that is due.
func (d *Daemon) turnControl(w *World) {
	at := d.Instant(w.now)
	d.control.Tick(at.Mono, at.Wall/int64(time.Millisecond))
	d.serveControl(w)
}

// serveControl carries out the work that the control log returned. While the
// log is rewritten it waits for that.
func (d *Daemon) serveControl(w *World) {
	if d.rewriting {
		return
	}
	d.control.Limits().InUse(d.control.Record()) // no calls depend on these limits here
	r := d.control.Ready(d.Instant(w.now).Mono)
	w.met.concluded(w, d, r.Results)
	w.met.follows(w, d)
	for i := range r.Events {
		e := &r.Events[i]
		w.met.happened(w, d, e)
		w.controls[e.Kind]++
		d.sawKind(w, ofControl, e.Kind)
		w.trace.word(uint64(d.Index)<<32 | uint64(e.Kind))
		if w.traced(d) {
			w.lines.add(d, "event", "control %v peer=%s %s", e.Kind, e.Peer, e.Text)
		}
	}
	w.auditors.controlled(d, &r)
	for i := range r.Messages {
		d.postControl(w, &r.Messages[i])
	}
	d.wakes[len(d.Nodes)+controlWake] = r.Wake
	if len(r.Store) > 0 {
		d.storeControl(w, r.Store)
	} else {
		compactControl(d, w)
	}
	if r := d.control.Record(); r != nil && r.Version != d.limitsOf { // limits that a recovery dropped end with it
		d.limitsOf = r.Version
		followRevoked(d, w)
		d.alone = len(r.Voters) == 1 && r.Voters[0].Daemon == d.control.ID()
		_, _ = d.control.Limits().Effective(d.Instant(w.now).Wall/int64(time.Millisecond), math.MaxInt64) // the auditor checks them
	}
	followRecord(d, w)
	if active, announced := w.steps.layouts(d); d.acceptor != nil && (active != d.layouts[0] || announced != d.layouts[1]) {
		if announced != nil && announced != d.layouts[1] {
			d.saw(w, layoutAnnounced)
		}
		d.layouts = [2]*route.Layout{active, announced}
		d.turnAcceptor(w)
	}
	w.sleep(d)
}

// storeControl stores items of the control log, which takes a while.
func (d *Daemon) storeControl(w *World, items [][]byte) {
	d.write(w, maxSync, controlFile, ackSync,
		func() error { return d.controlLog.Append(items, d.control.Snapshot) },
		func(mono time.Duration, err error) {
			if err != nil {
				d.control.Failed(mono, err)
			} else {
				d.control.Stored(mono)
			}
			d.serveControl(w)
		})
}

// postControl sends a message of the control log.
func (d *Daemon) postControl(w *World, m *control.Message) {
	to, known := w.membership.byAddress[m.To]
	if !known {
		return // as in post
	}
	frame, err := wire.EncodeControl(w.network.buffer(), m)
	if err != nil {
		w.network.traffic.Unsendable++
		return
	}
	if is := &w.membership.all[to]; is.daemon != d.Index {
		w.network.traffic.Control++
		w.network.traffic.ControlBytes += uint64(len(frame))
		w.network.send(w, d.Index, is, frame)
		if d.breaksProtocol(w) {
			sendBadControl(w, d, m, is)
		}
	}
}

// originOf returns the identity that the streams of a process prove: here they
// are trusted.
func originOf(d *Daemon) replica.Origin {
	o := replica.Origin{}
	if len(d.incarnations) > 0 {
		o.Incarnation = d.incarnations[0]
	}
	if d.control != nil {
		o.Daemon, o.Run = d.control.ID(), d.control.Identity().Run
	}
	return o
}

// StepControl implements replica.Receiver.
func (r *receiver) StepControl(m *control.Message) error {
	w, d := r.world, r.daemon
	if d.control == nil {
		return nil
	}
	at := d.Instant(w.now)
	err := d.control.Receive(at.Mono, at.Wall/int64(time.Millisecond), m)
	w.auditors.counted(d, m, err)
	small := m.Base == nil && m.Entries == nil && m.Raft == nil && m.Requests == nil
	if errors.Is(err, control.ErrUnknownSender) && small && m.To == d.incarnations[0] {
		d.early[m.From] = m // as daemons do
	}
	d.serveControl(w)
	return err
}

// initAgain is the least time after which the operator asks again for a
// founding.
const initAgain = 2 * time.Second

// beginControl has the operator ask a founder to found the cluster, again and
// again until it has begun, and another one where all disks were lost.
func beginControl(w *World) {
	if begun := w.controls[control.Begun] > 0; !begun && !anyRecord(w) || begun && forgotten(w) {
		initControl(w, begun)
	}
	w.events.push(w.now+max(initAgain, 5*w.cfg.Control.Heartbeat), evInit, 0)
}

// forgotten reports whether no daemon, and no copy of a disk, has the record of
// a cluster.
func forgotten(w *World) bool {
	return !slices.ContainsFunc(w.daemons, func(d *Daemon) bool { return d.control == nil || d.control.Record() != nil }) &&
		!slices.ContainsFunc(w.cfg.Faults, func(f Fault) bool { return f.Kind == CopiedControl || f.Kind == ClonedDisk })
}

// initControl has the operator ask a founder to found the cluster. To found one
// again, when all disks are lost, it leaves out regions whose daemons are all
// stopped, and does not state that nothing ran before.
func initControl(w *World, again bool) {
	var able []*Daemon
	for _, d := range w.daemons {
		if d.Up && !d.Paused && d.control != nil && slices.Contains(w.cfg.Founders(), d.Name) {
			able = append(able, d)
		}
	}
	if len(able) > 0 {
		d := able[w.faults.rng.IntN(len(able))]
		w.acting = d
		w.met.asked(w, d)
		_ = d.control.Init(firstRegions(w, again), !again) // the next attempt comes anyway
		d.turnControl(w)
	}
}

// anyRecord reports whether the cluster has begun somewhere.
func anyRecord(w *World) bool {
	return slices.ContainsFunc(w.daemons, func(d *Daemon) bool { return d.control != nil && d.control.Record() != nil })
}

// commandControl has the operator give a drawn command at a daemon of a fault:
// a change, the one before once more, or a recovery that nothing requires.
func (a *faults) commandControl(w *World, f *Fault, _ int) {
	var able []*Daemon
	for _, d := range w.daemons {
		if d.Up && !d.Paused && d.control != nil && d.in(f.From) {
			able = append(able, d)
		}
	}
	if len(able) == 0 {
		return
	}
	d := able[a.rng.IntN(len(able))]
	w.acting = d
	defer d.turnControl(w)
	if a.rng.IntN(100*int(rules.Percent)) < int(f.Share) {
		if err := d.control.Recover(control.RecoverRequest{Author: "operator", Behind: true, Stopped: true}); err == nil { // not by a diskless daemon
			w.met.recovers(w, d)
		}
		return
	}
	if a.rng.IntN(2) == 0 {
		_, _ = d.control.Limits().SubmitEmergency(a.emergency(d.Instant(w.now).Wall)) // refused while a leader is there
	}
	if f.Command != "" || a.rng.IntN(4) > 0 || a.latest.ID == 0 {
		if d.control.Record() == nil {
			return // it would be refused
		}
		kind, wild := slices.Index(commandWords, f.Command), false
		if kind < 0 {
			kind, wild = a.rng.IntN(len(commandWords)), a.rng.IntN(4) == 0
		}
		if kind == resumesRegion {
			resumeRegion(w, d)
			return
		}
		a.latest = control.Request{Author: "operator", Change: a.change(w, d, kind, wild)}
	}
	if id, err := d.control.Submit(a.latest); err == nil {
		a.latest.ID = id
		w.met.ordered(w, d, id, a.latest.Change)
	}
}

// resumeRegion has the operator state that the region of a daemon was not
// removed, nor any of its daemons, where that is true.
func resumeRegion(w *World, d *Daemon) {
	if slices.ContainsFunc(w.daemons, func(o *Daemon) bool { return o.control == nil }) {
		return // it may know of a removal
	}
	for _, o := range w.daemons {
		r := o.control.Record()
		dead := func(l *Daemon) bool { return r.DeadID(l.control.ID()) != nil }
		if r != nil && (r.Region(d.Region) == nil || slices.ContainsFunc(w.local[d.RegionIndex], dead)) {
			return
		}
	}
	if d.control.Resume("operator", "", false) == nil {
		w.met.took(w, regionResumed)
	}
}

// recoverAgain is the time after which the operator recovers the control log
// again: until then the others follow the recovery before.
const recoverAgain = 20 * time.Second

// recoverControl has the operator recover the control log where the voters that
// are left are no majority, or two recoveries of one number began: at the
// daemon with the latest record, or at another one if that refuses, as where
// its record differs from that of the leader.
func recoverControl(w *World, split bool) {
	best := latestRecord(w)
	durable := slices.DeleteFunc(slices.Clone(w.daemons), func(d *Daemon) bool {
		return !d.Up || d.control == nil || d.control.Record() == nil || !w.cfg.controlOf(d).Durable || best.Revoked.Has(nameOf(d))
	})
	if len(durable) == 0 || w.now < w.faults.recovers {
		return
	}
	slices.SortStableFunc(durable, func(a, b *Daemon) int {
		return b.control.Record().Version.Compare(a.control.Record().Version)
	})
	w.acting, w.faults.recovers = durable[0], w.now+recoverAgain
	if split && w.faults.rng.IntN(2) == 0 && recoverAt(w, w.daemons, control.RecoverRequest{Author: "operator", Yield: true}) {
		return
	}
	recoverAt(w, durable, control.RecoverRequest{Author: "operator", Stopped: split}) // refused where a majority is live
}

// recoverAt recovers the control log at the first of some daemons that does not
// refuse it. It returns false if all refuse.
func recoverAt(w *World, all []*Daemon, request control.RecoverRequest) bool {
	for _, d := range all {
		if d.Up && d.control != nil && d.control.Recover(request) == nil {
			w.acting = d
			d.turnControl(w)
			return true
		}
	}
	return false
}

// latestRecord returns the latest record of the daemons that run, nil for none.
func latestRecord(w *World) (best *control.Record) {
	for _, d := range w.daemons {
		if d.control != nil {
			if r := d.control.Record(); r != nil && (best == nil || r.Version.Compare(best.Version) > 0) {
				best = r
			}
		}
	}
	return best
}

// controlMajority reports whether a majority of the voters of the latest record
// is up in the core. Nobody accepts the vote of a revoked one.
func controlMajority(w *World) bool {
	best := latestRecord(w)
	if best == nil {
		return false
	}
	up := 0
	for _, local := range w.Core() {
		for _, d := range local {
			if d.control == nil {
				continue
			}
			if s := best.VoterOf(d.control.ID()); s != nil && !s.Learner && !best.Revoked.Has(nameOf(d)) {
				up++
			}
		}
	}
	return 2*up > best.Voting()
}

// twoClusters reports whether daemons are in different clusters.
func twoClusters(w *World) bool {
	var id control.Number
	return slices.ContainsFunc(w.daemons, func(d *Daemon) bool {
		if d.control == nil || d.control.Record() == nil {
			return false
		}
		was := id
		id = d.control.Record().Cluster.ID
		return was != 0 && was != id
	})
}

// split reports whether daemons of the core follow two recoveries of a number.
// One that nobody hears keeps its own.
func split(w *World) bool {
	var one control.Recovery
	return slices.ContainsFunc(slices.Concat(w.Core()...), func(d *Daemon) bool {
		if d.control == nil || d.control.Record() == nil {
			return false
		}
		is := d.control.Record().Version.Recovery
		if is.Number > one.Number || one == (control.Recovery{}) {
			one = is
		}
		return is.Number == one.Number && is != one
	})
}
