package replica

import (
	"fmt"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
	"github.com/georld/rld/wire"
)

// AcceptorLoop drives the acceptor of a process. After each input the driver
// calls Turn and carries out the quorum.Ready that it returns: it sends the
// messages, appends the records of Store to the log with one sync, and then
// calls Stored. Inputs that come during the sync go into the next one. Messages
// that depend on a record come after it, from Stored.
type AcceptorLoop struct {
	Acceptor *quorum.Acceptor

	self crdt.Incarnation // of the latest Peers
	live []gossip.Peer
	// active, announced and unconfirmed are those of the latest Follow and
	// Confirmed.
	active, announced *route.Layout
	unconfirmed       bool
	retry             time.Duration // when to open a failed log again, 0: it works
}

// RetryAfter is how long a driver waits before it opens a log again that
// failed.
const RetryAfter = 10 * time.Second

// Receive handles a message to the acceptor.
func (l *AcceptorLoop) Receive(at time.Duration, now hlc.Timestamp, m *sticky.Message) error {
	return l.Acceptor.Receive(at, now.Millis(), m)
}

// Peers sets the daemons that are live, in all regions.
func (l *AcceptorLoop) Peers(at time.Duration, self crdt.Incarnation, live []gossip.Peer) {
	l.self, l.live = self, live
	all := make([]route.Peer, len(live))
	for i, p := range live {
		all[i] = route.Peer{ID: p.ID, Name: p.Name, Region: p.Region, Ready: p.Ready}
	}
	l.Acceptor.Peers(at, self, all)
}

// Follow sets the layouts of the control log.
func (l *AcceptorLoop) Follow(at time.Duration, active, announced *route.Layout) {
	l.active, l.announced = active, announced
	l.Acceptor.Follow(at, active, announced)
}

// Confirmed sets whether the record of the control log was confirmed since the
// daemon started.
func (l *AcceptorLoop) Confirmed(is bool) {
	l.unconfirmed = !is
	l.Acceptor.Confirmed(is)
}

// Clocks sets the leads of the clocks of peers, as node.Node.Offsets returns
// them.
func (l *AcceptorLoop) Clocks(at time.Duration, now hlc.Timestamp, offsets map[crdt.Incarnation]time.Duration) {
	leads := make([]quorum.Lead, 0, len(offsets))
	for id, by := range offsets {
		leads = append(leads, quorum.Lead{Peer: id, By: by})
	}
	l.Acceptor.Clocks(at, now.Millis(), leads)
}

// ReopenDue reports whether the log has failed, and is to be opened again now.
// The driver closes it, opens it with Storage.OpenAcceptor, and calls Reopened
// if that works.
func (l *AcceptorLoop) ReopenDue(at time.Duration) bool {
	if l.retry == 0 || at < l.retry {
		return false
	}
	l.retry = at + RetryAfter
	return true
}

// Reopened goes on with the acceptor that was recovered from the log: it has
// what this one had stored when the log failed.
func (l *AcceptorLoop) Reopened(at time.Duration, again *AcceptorLoop) {
	l.Acceptor, l.retry = again.Acceptor, 0
	l.Acceptor.Follow(at, l.active, l.announced)
	l.Acceptor.Confirmed(!l.unconfirmed)
	if l.self != 0 {
		l.Peers(at, l.self, l.live)
	}
}

// Turn runs the timers that are due and returns the work of the driver.
func (l *AcceptorLoop) Turn(at time.Duration, now hlc.Timestamp) quorum.Ready {
	l.Acceptor.Tick(at, now.Millis())
	return l.ready(at, now)
}

// Stored notes that the log holds the entries of Store, or the error of the
// sync. It returns the next work of the driver.
func (l *AcceptorLoop) Stored(at time.Duration, now hlc.Timestamp, err error) quorum.Ready {
	if err != nil {
		l.Acceptor.Failed(err)
	} else {
		l.Acceptor.Stored()
	}
	return l.ready(at, now)
}

func (l *AcceptorLoop) ready(at time.Duration, now hlc.Timestamp) quorum.Ready {
	r := l.Acceptor.Ready(at)
	if l.Acceptor.Failing() {
		if l.retry == 0 {
			l.retry = at + RetryAfter
		}
		r.Wake = min(r.Wake, l.retry)
	}
	for i := range r.Messages {
		r.Messages[i].Stamp = now
	}
	return r
}

// Snapshot returns the records that replace the log.
func (l *AcceptorLoop) Snapshot() [][]byte {
	var records [][]byte
	l.Acceptor.Snapshot(func(e quorum.Entry) { records = append(records, wire.EncodeEntry(nil, &e)) })
	return records
}

// Rewritten notes that the log holds the latest Snapshot.
func (l *AcceptorLoop) Rewritten() { l.Acceptor.Rewritten() }

// Records encodes the entries of quorum.Ready.Store.
func Records(entries []quorum.Entry) [][]byte {
	records := make([][]byte, len(entries))
	for i := range entries {
		records[i] = wire.EncodeEntry(nil, &entries[i])
	}
	return records
}

// Recover returns the state that the records of a log add up to.
func Recover(records [][]byte) (*quorum.Stored, error) {
	s := &quorum.Stored{}
	for i, record := range records {
		e, err := wire.DecodeEntry(record)
		if err == nil {
			err = s.Apply(e)
		}
		if err != nil {
			return nil, fmt.Errorf("record %d of %d: %w", i, len(records), err)
		}
	}
	return s, nil
}
