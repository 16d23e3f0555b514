package sim

import (
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// rig is a small cluster that ran for a while with all auditors, for tests that
// then give the auditors inputs that did not happen.
type rig struct {
	t *testing.T
	w *World
}

// newRig runs a configuration until a time.
func newRig(t *testing.T, cfg *Config, until time.Duration) *rig {
	t.Helper()
	w := newWorld(cfg)
	w.auditors = watching(TestAuditors()(w))
	w.prepare()
	w.runUntil(until)
	r := &rig{t, w}
	for _, a := range w.auditors.all {
		if a.Found.Violations > 0 {
			t.Fatalf("%s complains of a run without faults: %s", a.Found.Name, a.Found.First)
		}
	}
	return r
}

func (r *rig) auditor(name string) *Auditor {
	r.t.Helper()
	for _, a := range r.w.auditors.all {
		if a.Found.Name == name {
			return a
		}
	}
	r.t.Fatalf("no auditor %q", name)
	return nil
}

// caught checks that an auditor found something.
func (r *rig) caught(name string) {
	r.t.Helper()
	if found := r.auditor(name).Found; found.Violations == 0 {
		r.t.Errorf("%s found nothing in %d checks", name, found.Checks)
	}
}

// clean checks that an auditor checked something and found nothing.
func (r *rig) clean(name string) {
	r.t.Helper()
	if found := r.auditor(name).Found; found.Violations > 0 || found.Checks == 0 {
		r.t.Errorf("%s: %d violations in %d checks: %s", name, found.Violations, found.Checks, found.First)
	}
}

// message makes one that a daemon might send to another now, complete and
// without cells.
func (r *rig) message(from, to *Daemon) *gossip.Message {
	at := from.Instant(r.w.now)
	hi := uint64(0)
	for l := range to.Nodes[0].Links(to.Instant(r.w.now)) {
		if l.Peer.ID == from.Incarnations()[0] {
			hi = l.Contiguous
		}
	}
	return &gossip.Message{
		From: from.Incarnations()[0], To: to.Incarnations()[0], Shards: 1,
		Header: gossip.Header{
			Stamp: hlc.New(at.Wall/int64(time.Millisecond), 60_000), Rules: r.w.Rules().Hash(),
			Ready: true, Nonce: uint64(at.Mono / gossip.NonceUnit),
		},
		Part: gossip.Part{Lo: hi, Hi: hi, Complete: true},
	}
}

// show gives the auditors a message that a daemon did not get.
func (r *rig) show(to *Daemon, m *gossip.Message) { r.w.auditors.stepped(to, m, nil) }

// step gives a daemon a message, and shows it to the auditors.
func (r *rig) step(to *Daemon, m *gossip.Message) {
	r.t.Helper()
	if err := to.Nodes[0].Step(to.Instant(r.w.now), m); err != nil {
		r.t.Fatal(err)
	}
	r.show(to, m)
}

// look has the auditors look at the cells of a daemon.
func (r *rig) look(from, to *Daemon) {
	r.t.Helper()
	for range 4_000 {
		r.show(to, r.message(from, to))
	}
}

// cell is a count in the window that runs of a key.
func (r *rig) cell(k crdt.Key, incarnation crdt.Incarnation, p uint64) gossip.Cell {
	now := (epoch + int64(r.w.now)) / int64(time.Millisecond)
	length := r.rule().Limit.Window()
	return gossip.Cell{
		CellID:   gossip.CellID{Key: k, Window: now - now%length, Incarnation: incarnation},
		CellMeta: gossip.CellMeta{Rule: uint64(r.rule().ID), WindowLength: length},
		Value:    crdt.PN{P: p},
	}
}

func (r *rig) rule() *rules.Rule { return r.w.Rules().Rules()[0] }

// decision makes one of one hit on a key.
func (r *rig) decision(d *Daemon, k crdt.Key, allowed bool) *Decided {
	at := d.Instant(r.w.now)
	l := r.rule().Limit
	clock := at.Wall / int64(time.Millisecond)
	return &Decided{
		At: r.w.now, Instant: at, Clock: clock, Daemon: d, Key: k, Rule: r.rule(), Limit: l, Hits: 1, Allowed: allowed,
		Status: &node.Status{
			Rule: r.rule(), Limit: l, Over: !allowed, Reset: time.Duration(l.Window()-clock%l.Window()) * time.Millisecond,
		},
	}
}

// decide shows the auditors a decision of one hit on a key.
func (r *rig) decide(d *Daemon, k crdt.Key, allowed bool) {
	r.w.auditors.decided(r.decision(d, k, allowed))
}

// pass lets virtual time go on without anything happening.
func (r *rig) pass(d time.Duration) { r.w.now += d }

// quietKey is a key that nobody requests.
var quietKey = crdt.Key(4<<32 | 2)
