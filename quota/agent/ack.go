package agent

import (
	"cmp"
	"slices"

	"github.com/georld/rld/quota/epoch"
)

// maxVotes bounds the kept votes.
const maxVotes = epoch.MaxEpochs * epoch.MaxMembers

// votes are the known votes of the region's daemons, by epoch and daemon.
type votes []epoch.Vote

// add adds the first vote of a daemon for an epoch, and reports whether it is
// new.
func (v *votes) add(vote epoch.Vote) bool {
	i, ok := slices.BinarySearchFunc(*v, vote, func(a, b epoch.Vote) int {
		return cmp.Or(a.Ack.ID.Compare(b.Ack.ID), cmp.Compare(a.Daemon, b.Daemon))
	})
	if ok || len(*v) >= maxVotes {
		return false
	}
	*v = slices.Insert(*v, i, vote)
	return true
}

// of returns the votes for an epoch.
func (v votes) of(id epoch.ID) []epoch.Vote {
	from, _ := slices.BinarySearchFunc(v, id, func(v epoch.Vote, id epoch.ID) int { return v.Ack.ID.Compare(id) })
	to := from
	for to < len(v) && v[to].Ack.ID == id {
		to++
	}
	return v[from:to]
}

// addVote adds a vote and reports whether it is new and of use: that of an
// epoch that was pruned is not.
func (a *Agent) addVote(v epoch.Vote) bool {
	if !a.region.At(0).Epoch.ID.Before(v.Ack.ID) || !a.votes.add(v) {
		return false
	}
	a.changes++
	return true
}

// crowd is how many unsettled epochs of a table are acknowledged as they come.
const crowd = epoch.MaxPending / 4

// chosen returns the epochs of a table to acknowledge now, ascending: all
// pending ones, except in a crowd.
//
// Daemons that do not receive each other's messages all lead, and each may
// propose an epoch, in all more than a daemon may acknowledge. If each
// acknowledged those that it learned first, every epoch could lack someone, and
// none would ever be settled. So of a crowd only the newest is acknowledged,
// once no other one arrived for as long as a lost message takes, and for four
// times as long with each one acknowledged before: leaders that go on proposing
// never use up what a daemon may acknowledge. Retirements do not wait.
func (a *Agent) chosen(table int) []epoch.ID {
	t := a.table(table)
	ids := t.Pending()
	unsettled, mine, retiring := 0, 0, []epoch.ID(nil)
	settled := settledID(t)
	for i := range t.Len() {
		k := t.At(i)
		if settled.Before(k.Epoch.ID) { // those below are replaced
			unsettled++
			if k.Mine {
				mine++
			}
		}
		if len(k.Epoch.Retired) > 0 {
			retiring = append(retiring, k.Epoch.ID)
		}
	}
	if len(ids) == 0 || unsettled <= crowd {
		return ids
	}
	newest := ids[len(ids)-1]
	wait := max(a.cfg.resend(true), a.cfg.resend(false)) << (2 * max(0, mine-crowd))
	calm := a.at-a.learned[table] >= wait
	return slices.DeleteFunc(ids, func(id epoch.ID) bool {
		return !(calm && id == newest) && !slices.Contains(retiring, id)
	})
}

// lead is how long after the proposal of an epoch of daemons the windows begin,
// in milliseconds, for which they acknowledge it: all the same, and after the
// acknowledgements of all have arrived. So each amount has an owner in all
// windows.
const lead = 500

// after returns the instant after which the windows begin for which a daemon
// acknowledges an epoch of daemons.
func after(now int64, id epoch.ID) int64 {
	return max(now, min(id.Stamp.Millis()+lead, now+2*lead))
}

// acknowledge acknowledges the epochs that are due, unless promises are being
// stored: so one record holds many promises.
func (a *Agent) acknowledge() {
	d := &a.disk
	if d.flight != nil || d.failing != nil || a.stamp == 0 {
		return
	}
	for _, id := range a.chosen(daemonTable) {
		if _, _, err := a.local.Acknowledge(id, after(a.now, id), a.region.Acknowledged()); err != nil {
			a.refused("", err)
			break
		}
		d.promised = true
	}
	for _, id := range a.chosen(regionTable) {
		ack, _, err := a.region.Acknowledge(id, a.now, nil)
		if err != nil {
			a.refused("", err)
			break
		}
		d.promised = true
		d.votes = append(d.votes, epoch.Vote{Daemon: a.cfg.Self, Ack: ack, Locals: a.local.Acknowledged()})
	}
}

// compose makes the region's acknowledgements from the known votes.
func (a *Agent) compose() {
	for i := 1; i < a.region.Len(); i++ {
		k := a.region.At(i)
		if hasAck(&k, a.cfg.Generation) {
			continue
		}
		votes := a.votes.of(k.Epoch.ID)
		if len(votes) == 0 || len(votes) > epoch.MaxExtended {
			continue
		}
		ack, ok, err := epoch.Compose(a.local, votes)
		if err == nil && ok {
			err = a.region.TakeAck(ack)
		}
		switch {
		case err != nil:
			a.refused("", err)
		case ok:
			a.changes++
		}
	}
}

// hasAck reports whether an epoch is acknowledged by a participant.
func hasAck(k *epoch.EntryView, by uint64) bool {
	_, ok := slices.BinarySearchFunc(k.Acks, by, func(a epoch.Ack, by uint64) int { return cmp.Compare(a.By, by) })
	return ok
}

// keptEpochs is how many epochs a table keeps for windows in use. The table
// remembers the owner's amounts of pruned epochs, so more are needed only by
// peers without the latest epochs, and every record contains all of them.
const keptEpochs = 4

// defaultLookback is how old the windows in use are without a longer
// Rule.Lookback, and an addition to that, in milliseconds.
const defaultLookback = 120_000

// forget prunes epochs that no window needs, with their votes and dependencies.
// An epoch that counts from later windows on needs its predecessors, while
// there is room: an acknowledgement may still let it count at once.
func (a *Agent) forget() {
	lookback := int64(0)
	for i := range a.cache.rules {
		lookback = max(lookback, a.cache.rules[i].Lookback.Milliseconds())
	}
	oldest := a.now - lookback - defaultLookback
	for _, t := range []*epoch.Table{a.region, a.local} {
		if t.Len() == 1 {
			continue
		}
		t.Prune(oldest)
		for i := t.Len() - keptEpochs; i > 0; i-- {
			if k := t.At(i); k.Settled && (k.From <= a.now || i >= epoch.MaxEpochs/2) {
				t.Prune(k.From)
				break
			}
		}
	}
	base := a.region.At(0).Epoch.ID
	if base != a.compacted {
		a.compacted = base
		a.local.CompactHeld(base)
		a.votes = slices.DeleteFunc(a.votes, func(v epoch.Vote) bool { return !base.Before(v.Ack.ID) })
	}
}
