package quorum

import (
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// report is the last state that a peer reported of itself.
type report struct {
	number, generation uint64
	voting             bool
	at                 time.Duration
}

// announcement is the last time that the layout was sent to a peer.
type announcement struct {
	at    time.Duration
	again bool // it seems not to know
}

// announceEvery is the time between two messages with the layout to a peer
// while nothing changes. fresh is how long a peer's report counts.
const (
	announceEvery = 10 * time.Second
	fresh         = 3 * announceEvery
)

// gossip sends peers the layout: when they appear, when something changed, and
// every announceEvery.
func (r *Acceptor) gossip() {
	voting, _ := r.voting()
	for _, p := range r.live {
		if p.ID == r.self {
			continue
		}
		last, ever := r.announced[p.ID]
		if ever && !r.announceAll && !last.again && r.at-last.at < announceEvery {
			continue
		}
		r.announced[p.ID] = announcement{at: r.at}
		m := r.to(p.ID)
		m.Layouts = append(m.Layouts[:0], r.newest().Clone())
		m.Voting, m.Generation = voting, r.meta.Generation
	}
	r.announceAll = false
}

// onLayout handles the layout of a peer: a later one replaces ours, an earlier
// one makes us announce ours.
func (r *Acceptor) onLayout(from route.Peer, m *sticky.Message, l *route.Layout) error {
	if err := l.Validate(); err != nil || l.Number != m.Number {
		if err == nil {
			err = fmt.Errorf("layout %d in a message of number %d: want the same", l.Number, m.Number)
		}
		return r.reject(BadLayout, from, fmt.Errorf("layout of %q: %w", from.Name, err))
	}
	if from.ID == r.self {
		return nil
	}
	r.reports[from.ID] = report{l.Number, m.Generation, m.Voting, r.at}
	mine := r.newest()
	switch {
	case l.Number < mine.Number:
		r.announced[from.ID] = announcement{at: r.announced[from.ID].at, again: true}
	case l.Number > mine.Number:
		r.adopt(l)
		r.events.Add(Changed, from.Name, fmt.Sprintf("layout %d", l.Number))
	case !mine.Agrees(l):
		return r.reject(Conflict, from, fmt.Errorf("layout %d of %q says something else than this daemon's: want one change at a time, and the same configuration everywhere",
			l.Number, from.Name))
	case l.Number == 1:
		r.learnVoters(from, l)
	}
	return nil
}

// learnVoters adopts the voters of the sender's region, if they are not known.
func (r *Acceptor) learnVoters(from route.Peer, l *route.Layout) {
	theirs, mine := l.Region(from.Region), r.newest().Region(from.Region)
	if theirs == nil || mine == nil || len(mine.Replicas) > 0 || len(theirs.Replicas) == 0 {
		return
	}
	mine.Replicas = slices.Clone(theirs.Replicas)
	r.putLayout()
	r.rebuild()
	r.announceAll = true
}

// complete reports whether the acceptor has all state of the layout in force,
// so that its snapshot for the next one is complete.
func (r *Acceptor) complete() bool { return r.meta.Voting && r.isVoter(&r.layout) }

// adopt puts a later layout in force. A voter under the layout before it seals
// that one by storing the new one. A voter of the new layout votes once it has
// copied the state it needs.
func (r *Acceptor) adopt(l *route.Layout) {
	next := l.Clone()
	sealing := r.next == nil && r.complete() && l.Number == r.layout.Number+1
	if !sealing && r.meta.Voting {
		r.meta.Voting = false
		r.putMeta() // first: it must not pass for a seal of the layout before l
	}
	if sealing || r.isVoter(l) {
		r.next = &next
		r.batch.entries = append(r.batch.entries, Entry{Next: new(next.Clone())})
	} else {
		r.layout, r.next = next, nil
		r.putLayout()
	}
	if sealing {
		r.events.Add(Sealed, "", fmt.Sprintf("layout %d", r.layout.Number))
	}
	r.copying = nil
	r.announceAll = true
	r.rebuild()
}
