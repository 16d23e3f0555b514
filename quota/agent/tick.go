package agent

import (
	"fmt"
	"time"

	"github.com/georld/rld/hlc"
	"github.com/georld/rld/quota/epoch"
)

// readyAlone is how long a daemon that holds a share waits for regional peers
// before it becomes ready without them.
const readyAlone = time.Second

// Tick runs timers. stamp is a new stamp of the hybrid logical clock. clockOff
// reports that most peers contradict this clock: the agent proposes no epoch
// then. Peers would reject one of the future, and this daemon could not replace
// it before its time.
func (a *Agent) Tick(at time.Duration, stamp hlc.Timestamp, clockOff bool) {
	if a.started < 0 {
		a.started, a.balance.since = at, at
	}
	a.clock(at)
	a.now, a.stamp = stamp.Millis(), max(a.stamp, stamp)
	// Without a message of a peer it is ready once its record is stored, if it
	// is in the settled epoch.
	if e, _ := a.local.Settled(); !a.ready && at-a.started >= readyAlone && e.Has(a.cfg.Self) && a.local.Bounds().Window >= a.now {
		a.becomeReady()
	}
	if leads := a.links.leads(at, a.cfg.Name, a.ready); leads != a.leading {
		a.leading = leads
		a.changes++
		kind := Following
		if leads {
			kind = Leading
		}
		a.log.Add(kind, "", a.cfg.Region)
	}
	if a.demand.closePeriod(at, a.now, a.leading, a.links) {
		a.changes++
	}
	if !clockOff {
		a.proposeDaemons()
		a.rebalance()
	}
	a.advance()
}

// propose makes a new epoch. One of daemons is added to the table, which
// distributes it; one of regions is left to the control log.
func (a *Agent) propose(table int, e epoch.Epoch, text string) error {
	t := a.table(table)
	stamp := a.stamp
	if top := newest(t).Epoch.ID.Stamp; stamp <= top {
		stamp = top.Next()
	}
	e.ID, e.Pred = epoch.ID{Stamp: stamp, Proposer: uint64(a.self)}, settledID(t)
	err := plausible(table, &e)
	switch {
	case err != nil:
	case table == regionTable:
		err = e.Validate()
	default:
		err = t.Learn(e)
	}
	if err != nil {
		return fmt.Errorf("propose an epoch of %s: %w", tableNames[table], err)
	}
	if table == regionTable {
		a.proposal = proposal{&e, a.at, true}
	} else {
		a.learned[table] = a.at
		a.changes++
	}
	a.log.Add(Proposed, "", fmt.Sprintf("%s: epoch %s: %s", tableNames[table], e.ID, text))
	return nil
}

// retryPropose is the pause of a table after a refused proposal.
const retryPropose = 5 * time.Second

// tryPropose proposes an epoch that is proposed again after an error.
func (a *Agent) tryPropose(table int, e epoch.Epoch, text string) {
	if err := a.propose(table, e, text); err != nil {
		a.refused("", err)
		a.resting[table] = a.at + retryPropose
	}
}

// barren reports whether the newest epoch of a table can never be settled,
// because another one was settled after its proposal.
func barren(t *epoch.Table) bool {
	k := newest(t)
	return !k.Settled && k.Epoch.Pred.Before(settledID(t))
}

// age returns the time since the proposal of an epoch by the window clock; that
// of the genesis is long.
func age(now int64, id epoch.ID) time.Duration {
	if id == (epoch.ID{}) {
		return time.Hour
	}
	return time.Duration(now-id.Stamp.Millis()) * time.Millisecond
}
