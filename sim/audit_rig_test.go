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

// rig is a small cluster that ran for a while, with all auditors watching, for
// tests that then tell the auditors of things that did not happen.
type rig struct {
	t *testing.T
	w *World
}

// newRig runs a configuration until a time.
func newRig(t *testing.T, cfg *Config, until time.Duration) *rig {
	t.Helper()
	w := newWorld(cfg)
	w.auditors = auditors(cfg)
	w.prepare()
	w.runUntil(until)
	r := &rig{t, w}
	for _, a := range w.auditors {
		if rep := a.Report(); rep.Violations > 0 {
			t.Fatalf("%s complains before anything was planted: %s", rep.Name, rep.First)
		}
	}
	return r
}

func (r *rig) books() *books { return r.auditor("messages").(*messagesAuditor).books }

func (r *rig) auditor(name string) Auditor {
	r.t.Helper()
	for _, a := range r.w.auditors {
		if a.Name() == name {
			return a
		}
	}
	r.t.Fatalf("no auditor %q", name)
	return nil
}

// caught checks that an auditor found something, and says what.
func (r *rig) caught(name string) {
	r.t.Helper()
	rep := r.auditor(name).Report()
	if rep.Violations == 0 {
		r.t.Errorf("%s found nothing in %d checks", name, rep.Checks)
		return
	}
	r.t.Log(rep.First)
}

// clean checks that an auditor checked something and found nothing.
func (r *rig) clean(name string) {
	r.t.Helper()
	if rep := r.auditor(name).Report(); rep.Violations > 0 || rep.Checks == 0 {
		r.t.Errorf("%s: %d violations in %d checks: %s", name, rep.Violations, rep.Checks, rep.First)
	}
}

// message makes one that a daemon might send to another now, complete and
// without news.
func (r *rig) message(from, to *Daemon) *gossip.Message {
	at := from.Instant(r.w.now)
	k := earKey{to: r.books().writers.of(to).index, from: r.books().writers.of(from).index}
	hi := r.books().hearing.ears[k].contiguous
	return &gossip.Message{
		From: from.Incarnations()[0], To: to.Incarnations()[0], Shards: 1,
		Header: gossip.Header{
			Stamp: hlc.New(at.Wall/int64(time.Millisecond), 60_000), Rules: r.w.Rules().Hash(),
			Ready: true, Nonce: uint64(at.Mono.Microseconds()),
		},
		Part: gossip.Part{Lo: hi, Hi: hi, Complete: true},
	}
}

// tell hands the auditors a message that a daemon is said to have taken.
func (r *rig) tell(to *Daemon, m *gossip.Message) {
	for _, a := range r.w.auditors {
		a.Stepped(r.w, to, m, nil)
	}
}

// step hands a daemon a message for real, and lets the auditors look at it.
func (r *rig) step(to *Daemon, m *gossip.Message) {
	r.t.Helper()
	if err := to.Nodes[0].Step(to.Instant(r.w.now), m); err != nil {
		r.t.Fatal(err)
	}
	r.books().looking.wait = 0
	r.tell(to, m)
}

// cell is a count of somebody's in the running window of a key.
func (r *rig) cell(k crdt.Key, incarnation crdt.Incarnation, p uint64) gossip.Cell {
	now := (epoch + int64(r.w.now)) / int64(time.Millisecond)
	return gossip.Cell{
		CellID:   gossip.CellID{Key: k, Window: now - now%1_000, Incarnation: incarnation},
		CellMeta: gossip.CellMeta{Rule: uint64(r.rule().ID), WindowLength: 1_000},
		Value:    crdt.PN{P: p},
	}
}

func (r *rig) rule() *rules.Rule { return r.w.Rules().Rules()[0] }

// decide tells the auditors of a decision of one hit on a key.
func (r *rig) decide(d *Daemon, k crdt.Key, allowed bool) {
	at := d.Instant(r.w.now)
	l := r.rule().Limit
	left := l.Window() - at.Wall/int64(time.Millisecond)%l.Window()
	e := &Decided{
		At: r.w.now, Instant: at, Daemon: d, Key: k, Rule: r.rule(), Limit: l, Hits: 1, Allowed: allowed,
		Status: node.Status{Rule: r.rule(), Limit: l, Over: !allowed, Reset: time.Duration(left) * time.Millisecond},
	}
	for _, a := range r.w.auditors {
		a.Decided(r.w, e)
	}
}

// pass lets virtual time go on without anything happening.
func (r *rig) pass(d time.Duration) { r.w.now += d }

// quietKey is a key that nobody asks for.
var quietKey = crdt.Key{Hi: 4, Lo: 2}
