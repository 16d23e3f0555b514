package agent

import (
	"time"

	"github.com/georld/rld/quota/epoch"
)

// disk is the state of the durable record: stored, being stored, or waiting.
type disk struct {
	// number is that of the latest record that Ready returned.
	number uint64
	// flight is the record that Ready returned to store, nil for none; flown
	// are the votes in it.
	flight *Stored
	flown  []epoch.Vote
	// votes and promised are the promises since: they must be stored before
	// anything that depends on them is sent.
	votes    []epoch.Vote
	promised bool
	// dirty requests a store for another reason.
	dirty bool
	// failing is the latest error, nil after a success; retry is the time of
	// the next attempt.
	failing error
	retry   time.Duration
}

// retryStore is the time between two attempts to store.
const retryStore = time.Second

// holding reports whether promises are not stored yet. Nothing is sent until
// they are, since settled epochs may depend on them.
func (d *disk) holding() bool { return d.promised || d.flight != nil && d.flown != nil }

// toStore returns the record to store now, nil for none.
func (a *Agent) toStore() *Stored {
	d := &a.disk
	if d.flight != nil || a.stamp == 0 || d.failing != nil && a.at < d.retry {
		return nil
	}
	ahead := a.cfg.Ahead.Milliseconds()
	stored := min(a.region.Bounds().Window, a.local.Bounds().Window)
	if !d.promised && !d.dirty && (a.stopping || stored-ahead/2 > a.now) {
		return nil // after Stop no record is ahead of the clock
	}
	d.number++
	s := &Stored{
		Region: a.region.Extend(a.now + ahead), Local: a.local.Extend(a.now + ahead),
		Genesis: a.genesis, Number: d.number,
	}
	d.flight, d.flown = s, d.votes
	if d.promised && d.flown == nil {
		d.flown = []epoch.Vote{}
	}
	d.votes, d.promised, d.dirty = nil, false, false
	return s
}

// Stored reports that the latest record of Ready is stored and synced.
func (a *Agent) Stored() {
	d := &a.disk
	if d.flight == nil {
		return
	}
	s, votes := d.flight, d.flown
	d.flight, d.flown = nil, nil
	if d.failing != nil {
		d.failing = nil
		a.log.Add(StoreMended, "", "")
	}
	a.region.Stored(s.Region)
	a.local.Stored(s.Local)
	for _, v := range votes {
		a.addVote(v)
	}
	unblock(a)
	a.changes++
	a.advance()
}

// Failed reports that the record could not be stored. The rights under the last
// stored record remain valid for at most Config.Ahead. The agent makes no
// further promise, and sends none, until a later store succeeds; Ready requests
// one every second. While promises wait the daemon is silent, and peers may
// treat it as dead.
func (a *Agent) Failed(err error) {
	d := &a.disk
	if d.flight == nil {
		return
	}
	d.votes = append(d.flown, d.votes...)
	d.promised = d.promised || d.flown != nil
	d.flight, d.flown, d.dirty = nil, nil, true
	d.retry = a.at + retryStore
	if d.failing == nil {
		a.log.Add(StoreFailed, "", err.Error())
	}
	d.failing = err
}
