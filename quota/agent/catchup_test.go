package agent

import (
	"testing"
	"time"
)

// TestReadyWithoutFormerMembers: a pending epoch has the acknowledgement of a
// daemon that only a pruned epoch named. A daemon that starts then cannot
// record it, and becomes ready without it.
func TestReadyWithoutFormerMembers(t *testing.T) {
	r := newRig(t, 1, 3, 1)
	r.cfg.DaemonHorizon = 0 // the share of no dead daemon is reclaimed
	r.boot()
	r.run(3 * time.Second)
	a1, former := r.find("a1"), r.find("a3")
	r.leave(former, 0)
	r.until(4*time.Second, "it is gone", func() bool { return !former.up })
	joins := r.join("a")
	r.until(10*time.Second, "an epoch of three is proposed", func() bool {
		top := newest(joins.local) // which leads
		return !top.Settled && top.Epoch.Has(joins.id())
	})
	r.crash(r.find("a2"))  // before it acknowledges
	r.run(5 * time.Second) // until it is known to be gone
	r.restart(former, false)
	r.until(10*time.Second, "the former member acknowledges it", func() bool {
		top := newest(a1.local)
		return hasAck(&top, former.id()) && !top.Settled
	})
	r.until(4*time.Minute, "no epoch names it", func() bool { return !a1.local.Names(former.id()) })
	r.crash(joins)
	r.run(3 * time.Second)
	r.restart(joins, false)
	r.until(5*time.Second, "it is ready", func() bool { return joins.ready })
	r.safe()
}
