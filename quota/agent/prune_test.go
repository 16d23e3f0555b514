package agent

import (
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/quota/epoch"
)

// TestReturnsTwice: the epochs that leave a daemon out and admit it again are
// settled for later windows, until it returns. Then all prune them at the same
// time: a daemon that pruned more than the others would not catch up with them
// after it is left out again.
func TestReturnsTwice(t *testing.T) {
	r := newRig(t, 1, 3, 1)
	r.cfg.DaemonHorizon = 10 * time.Minute
	r.boot()
	r.run(3 * time.Second)
	a, c := r.find("a1"), r.find("a3")
	id := c.id()
	for range 2 {
		r.crash(c)
		r.until(20*time.Second, "left out", func() bool { return !newest(a.local).Epoch.Has(id) })
		r.restart(c, false)
		r.until(20*time.Second, "in again", func() bool { return newest(a.local).Epoch.Has(id) && newest(a.local).Settled })
		r.run(4 * time.Minute)
	}
	if a.local.Len() != c.local.Len() {
		t.Errorf("%d and %d epochs are kept", a.local.Len(), c.local.Len())
	}
	r.safe()
}

// TestPrunedPredecessor: a daemon prunes the predecessor of an epoch before it
// has the last acknowledgement. It settles the epoch by a claim of another one.
func TestPrunedPredecessor(t *testing.T) {
	r := newRig(t, 1, 3, 1)
	r.boot()
	r.run(3 * time.Second)
	a, b := r.find("a1"), r.find("a2")
	var ids []epoch.ID
	for range 2 { // learned and acknowledged together

		top := newest(b.local)
		if err := b.propose(daemonTable, successor(&top), "as the test says"); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, newest(b.local).Epoch.ID)
	}
	r.mangle = func(m *Message) {
		late := func(ack epoch.Ack) bool { return ack.ID == ids[1] }
		if m.Daemons.Acks = slices.Clone(m.Daemons.Acks); m.To == a.self {
			m.Daemons.Acks = slices.DeleteFunc(m.Daemons.Acks, late)
		}
	}
	r.until(5*time.Second, "settled by the others", func() bool { return settledID(b.local) == ids[1] })
	r.until(5*time.Second, "the first settled", func() bool { return settledID(a.local) == ids[0] })
	a.local.Prune(newest(b.local).From)
	r.mangle = nil
	r.until(20*time.Second, "settled by a claim", func() bool { return settledID(a.local) == ids[1] })
	r.safe()
}
