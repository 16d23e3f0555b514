package agent

import (
	"fmt"
	"time"

	"github.com/georld/rld/hlc"
	"github.com/georld/rld/quota/epoch"
)

// readyAlone is how long a daemon that may hold something waits for others of
// its region before it counts as ready without them.
const readyAlone = time.Second

// Tick does what time calls for. stamp is a new one of the hybrid logical
// clock.
func (o *Agent) Tick(at time.Duration, stamp hlc.Timestamp) {
	if o.started < 0 {
		o.started, o.balance.since = at, at
	}
	o.at, o.now, o.stamp = at, stamp.Millis(), max(o.stamp, stamp)
	if !o.ready && at-o.started >= readyAlone && o.mayStand() {
		o.becomeReady()
	}
	o.listen()
	if leads := o.leads(); leads != o.leading {
		o.leading = leads
		o.changes++
		kind := Following
		if leads {
			kind = Leading
		}
		o.event(kind, "", o.cfg.Region)
	}
	o.closePeriod()
	o.proposeDaemons()
	o.rebalance()
	o.advance()
}

// mayStand reports whether the daemon may be ready without having heard
// another: it is stored and, as far as it knows, in the epochs.
func (o *Agent) mayStand() bool {
	e, _ := o.local.Settled()
	return e.Has(o.member) && o.local.Bounds().Window >= o.now
}

// propose makes an epoch of a table known here, from where it spreads.
func (o *Agent) propose(table int, e epoch.Epoch, text string) error {
	t := o.table(table)
	stamp := o.stamp
	if top := newest(t).Epoch.ID.Stamp; stamp <= top {
		stamp = top.Next()
	}
	s, _ := t.Settled()
	e.ID, e.Pred = epoch.ID{Stamp: stamp, Proposer: uint64(o.self)}, s.ID
	err := o.plausible(table, &e)
	if err == nil {
		err = t.Learn(e)
	}
	if err != nil {
		return fmt.Errorf("propose an epoch of %s: %w", tableName(table), err)
	}
	o.changes++
	o.event(Proposed, "", fmt.Sprintf("%s: epoch %s: %s", tableName(table), e.ID, text))
	return nil
}

// retryPropose is how long a table is left alone after a proposal was refused.
const retryPropose = 5 * time.Second

// tryPropose is propose for what is tried again anyway.
func (o *Agent) tryPropose(table int, e epoch.Epoch, text string) {
	if err := o.propose(table, e, text); err != nil {
		o.event(Refused, "", err.Error())
		o.resting[table] = o.at + retryPropose
	}
}

// barren reports whether the newest epoch of a table can never be settled,
// because another was settled after its proposer looked.
func barren(t *epoch.Table) bool {
	k := newest(t)
	return !k.Settled && k.Epoch.Pred.Before(settledID(t))
}

// age returns how long ago an epoch was proposed, by the label clock; of the
// genesis it is long.
func (o *Agent) age(id epoch.ID) time.Duration {
	if id == (epoch.ID{}) {
		return time.Hour
	}
	return time.Duration(o.now-id.Stamp.Millis()) * time.Millisecond
}
