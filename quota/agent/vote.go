package agent

import (
	"cmp"
	"slices"

	"github.com/georld/rld/quota/epoch"
)

// maxVotes bounds the votes that are kept.
const maxVotes = epoch.MaxEpochs * epoch.MaxMembers

// acknowledge promises whatever waits for this daemon, unless a promise is
// being stored: so that one store takes all there is.
func (o *Agent) acknowledge() {
	d := &o.disk
	if d.flight != nil || d.failing != nil || o.stamp == 0 {
		return
	}
	for _, id := range o.local.Pending() {
		held := o.held()
		if o.broken&flawUnheld != 0 {
			held = nil
		}
		if _, _, err := o.local.Acknowledge(id, o.now, held); err != nil {
			o.event(Refused, "", err.Error())
			break
		}
		d.promised = true
	}
	for _, id := range o.region.Pending() {
		a, _, err := o.region.Acknowledge(id, o.now, nil)
		if err != nil {
			o.event(Refused, "", err.Error())
			break
		}
		d.promised = true
		d.votes = append(d.votes, epoch.Vote{Daemon: o.member, Ack: a, Locals: o.local.Acknowledged()})
		if o.broken&flawEarly != 0 {
			o.addVote(d.votes[len(d.votes)-1])
		}
	}
}

// held returns the epochs of regions that this daemon is bound by, as an
// acknowledgement in the table of daemons carries them.
func (o *Agent) held() []epoch.Dependency {
	ids := o.region.Acknowledged()
	held := make([]epoch.Dependency, len(ids))
	for i, id := range ids {
		held[i] = epoch.Dependency{Table: regionsKey, ID: id}
	}
	return held
}

// addVote keeps the first vote of each daemon for each epoch, and reports
// whether it was new.
func (o *Agent) addVote(v epoch.Vote) bool {
	i, ok := slices.BinarySearchFunc(o.votes, v, compareVote)
	if ok || len(o.votes) >= maxVotes {
		return false
	}
	o.votes = slices.Insert(o.votes, i, v)
	o.changes++
	return true
}

func compareVote(a, b epoch.Vote) int {
	if c := a.Ack.ID.Compare(b.Ack.ID); c != 0 {
		return c
	}
	return cmp.Compare(a.Daemon, b.Daemon)
}

// votesOf returns the votes for an epoch.
func (o *Agent) votesOf(id epoch.ID) []epoch.Vote {
	first, _ := slices.BinarySearchFunc(o.votes, id, func(v epoch.Vote, id epoch.ID) int {
		if v.Ack.ID.Before(id) {
			return -1
		}
		return 1
	})
	end := first
	for end < len(o.votes) && o.votes[end].Ack.ID == id {
		end++
	}
	return o.votes[first:end]
}

// compose makes the region's acknowledgements of the votes that are there.
func (o *Agent) compose() {
	for i := 1; i < o.region.Len(); i++ {
		k := o.region.At(i)
		if hasAck(&k, o.ids[o.own]) {
			continue
		}
		votes := o.votesOf(k.Epoch.ID)
		if len(votes) == 0 || len(votes) > epoch.MaxExtended {
			continue
		}
		a, ok, err := epoch.Compose(o.local, votes)
		if o.broken&flawSpeak != 0 {
			a, ok, err = votes[0].Ack, true, nil
		}
		if err != nil {
			o.event(Refused, "", err.Error())
			continue
		}
		if !ok {
			continue
		}
		if err := o.region.TakeAck(a); err != nil {
			o.event(Refused, "", err.Error())
			continue
		}
		o.changes++
	}
}

// hasAck reports whether the participant's acknowledgement is there.
func hasAck(k *epoch.EntryView, by uint64) bool {
	_, ok := slices.BinarySearchFunc(k.Acks, by, func(a epoch.Ack, by uint64) int { return cmp.Compare(a.By, by) })
	return ok
}

// keptEpochs is how many epochs a table keeps for labels that are still asked
// for. The table remembers what it pruned gave to its owner, so more are needed
// only by those who are behind; and all are written with every record.
const keptEpochs = 4

// defaultReach is how far back labels are asked for where no rule says more,
// and by how much later than a rule says epochs are dropped.
const defaultReach = 120_000 // milliseconds

// forget drops epochs that no label needs, and votes and demands for knowledge
// about them.
func (o *Agent) forget() {
	reach := int64(0)
	for i := range o.rules {
		reach = max(reach, o.rules[i].Lookback.Milliseconds())
	}
	oldest := o.now - reach - defaultReach
	for _, t := range []*epoch.Table{o.region, o.local} {
		if t.Len() == 1 {
			continue
		}
		t.Prune(oldest)
		for i := t.Len() - keptEpochs; i > 0; i-- {
			if k := t.At(i); k.Settled {
				t.Prune(k.From)
				break
			}
		}
	}
	base := o.region.At(0).Epoch.ID
	if base != o.compacted {
		o.compacted = base
		o.local.CompactHeld(regionsKey, base)
		o.votes = slices.DeleteFunc(o.votes, func(v epoch.Vote) bool { return !base.Before(v.Ack.ID) })
	}
}
