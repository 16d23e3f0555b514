package agent

import (
	"time"

	"github.com/georld/rld/quota/epoch"
)

// disk is what is stored, what is being stored, and what waits for it.
type disk struct {
	// flight is what Ready asked to store, nil for nothing; flown are the
	// votes in it.
	flight *Stored
	flown  []epoch.Vote
	// votes and promised are what was promised since: it must be stored before
	// anything that depends on it leaves.
	votes    []epoch.Vote
	promised bool
	// dirty asks for a store for another reason.
	dirty bool
	// failing is the last error, nil when the last store succeeded; retry is
	// when to try again.
	failing error
	retry   time.Duration
}

// retryStore is the time between two attempts to store.
const retryStore = time.Second

// holding reports whether promises are not on disk yet: nothing leaves until
// they are, as what is settled here may rest on them.
func (o *Agent) holding() bool {
	if o.broken&flawEarly != 0 {
		return false
	}
	return o.disk.promised || o.disk.flight != nil && o.disk.flown != nil
}

// toStore returns what must be stored now, nil for nothing.
func (o *Agent) toStore() *Stored {
	d := &o.disk
	if d.flight != nil || o.stamp == 0 || d.failing != nil && o.at < d.retry {
		return nil
	}
	ahead := o.cfg.Ahead.Milliseconds()
	reach := min(o.region.Bounds().Window, o.local.Bounds().Window)
	if !d.promised && !d.dirty && reach-ahead/2 > o.now {
		return nil
	}
	s := &Stored{
		Region: o.region.Extend(o.now + ahead), Local: o.local.Extend(o.now + ahead),
		Genesis: o.genesis, Fence: o.fence,
	}
	d.flight, d.flown = s, d.votes
	if d.promised && d.flown == nil {
		d.flown = []epoch.Vote{}
	}
	d.votes, d.promised, d.dirty = nil, false, false
	return s
}

// Stored says that what Ready asked to store last is on disk.
func (o *Agent) Stored() {
	d := &o.disk
	if d.flight == nil {
		return
	}
	s, votes := d.flight, d.flown
	d.flight, d.flown = nil, nil
	if d.failing != nil {
		d.failing = nil
		o.event(StoreMended, "", "")
	}
	o.region.Stored(s.Region)
	o.local.Stored(s.Local)
	for _, v := range votes {
		o.addVote(v)
	}
	o.unblock()
	o.changes++
	o.advance()
}

// Failed says that it could not be stored. What the last record allows goes on
// to hold, for at most Config.Ahead; no further promise is made, and none that
// was made leaves, until a later store succeeds. Ready asks for one every
// second. While promises wait, the daemon is silent, and the others may take it
// for dead.
func (o *Agent) Failed(err error) {
	d := &o.disk
	if d.flight == nil {
		return
	}
	d.votes = append(d.flown, d.votes...)
	d.promised = d.promised || d.flown != nil
	d.flight, d.flown, d.dirty = nil, nil, true
	d.retry = o.at + retryStore
	if d.failing == nil {
		o.event(StoreFailed, "", err.Error())
	}
	d.failing = err
}
