package agent

import (
	"cmp"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/quota/epoch"
)

// link is what is known of a peer, and what it was sent.
type link struct {
	peer    gossip.Peer
	local   bool
	joined  time.Duration
	due     time.Duration // when it is sent a message whatever there is to say
	heardAt time.Duration // -1 before
	looked  uint64        // Office.changes as of the last message

	// What its newest message said.
	stamp  hlc.Timestamp
	member uint64
	fence  int64
	ready  bool
	tables [2]said
	voted  []uint64
	grant  *epoch.Extension // to be told
	heard  uint64           // the period up to which it has our demand
	period uint64           // of its demand
	rows   []Demand

	sent map[print]sending
}

// said is what a peer said of one table.
type said struct {
	base, settled epoch.ID
	has           []uint64
}

// sending is an item on its way.
type sending struct {
	at    time.Duration
	times uint
}

// origin is where an item came from that this daemon did not make.
type origin struct {
	at      time.Duration
	foreign bool // from another region
}

// How long an item of others is held back from those who probably get it from
// where it came from, inside a region and across.
const (
	holdLocal  = 500 * time.Millisecond
	holdAcross = 2 * time.Second
)

// maxOrigins bounds the origins that are kept.
const maxOrigins = 1 << 14

// link returns the link of an incarnation, nil for none.
func (o *Agent) link(id crdt.Incarnation) *link {
	i, ok := slices.BinarySearchFunc(o.links, id, func(l *link, id crdt.Incarnation) int { return cmp.Compare(l.peer.ID, id) })
	if !ok {
		return nil
	}
	return o.links[i]
}

// silence is after how long without a message a peer does not count as heard.
func (o *Agent) silence(l *link) time.Duration {
	if l.local {
		return 4*o.cfg.Interval + time.Second
	}
	return 4*o.cfg.WANInterval + 2*time.Second
}

// hears reports whether the peer was heard lately.
func (o *Agent) hears(l *link) bool { return l.heardAt >= 0 && o.at-l.heardAt <= o.silence(l) }

// leads reports whether this daemon speaks for its region: no other that is
// ready and heard has a lower name. One that is not ready speaks only where
// none is.
func (o *Agent) leads() bool {
	for _, l := range o.links {
		if l.local && l.ready && o.hears(l) && (!o.ready || l.peer.Name < o.cfg.Name) {
			return false
		}
	}
	return true
}

// addressed reports whether a peer of another region is to be told: the one
// with the lowest name there, those who speak to us, and all while none does.
func (o *Agent) addressed(l *link) bool {
	if l.heardAt >= 0 && o.hears(l) {
		return true
	}
	lowest, quiet := true, true
	for _, other := range o.links {
		if other.peer.Region != l.peer.Region {
			continue
		}
		lowest = lowest && l.peer.Name <= other.peer.Name
		quiet = quiet && !o.hears(other)
	}
	return lowest || quiet
}

// wants reports whether an item of fingerprint p, which the peer lacks, is to
// be sent now, and notes that it is.
func (o *Agent) wants(l *link, p print) bool {
	if from, ok := o.origins[p]; ok {
		hold := time.Duration(0)
		switch {
		case l.local && !from.foreign:
			hold = holdLocal
		case !l.local && from.foreign:
			hold = holdAcross
		}
		if o.at < from.at+hold {
			return false
		}
	}
	s := l.sent[p]
	first := 4 * o.cfg.Interval
	if !l.local {
		first = 3 * o.cfg.WANInterval
	}
	if s.times > 0 && o.at < s.at+first<<min(s.times-1, 5) {
		return false
	}
	if len(l.sent) >= maxOrigins {
		clear(l.sent)
	}
	l.sent[p] = sending{o.at, s.times + 1}
	return true
}

// from notes where a new item came from.
func (o *Agent) from(p print, l *link) {
	if len(o.origins) >= maxOrigins {
		clear(o.origins)
	}
	o.origins[p] = origin{o.at, !l.local}
}
