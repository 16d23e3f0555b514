package quorum

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky"
)

const (
	// overflowRecords is the number of records that the keys beyond
	// Config.MaxKeys share.
	overflowRecords = 1_024
	// overflowFront is what the keys of these records have in common, above
	// the bits of their number. The key of a limit has it with a probability
	// of 2^-54: its record is then one that it shares.
	overflowFront = 0x6f766572666c6c00
)

// overflowKey returns the key of the record that a key shares with others when
// there is no room for one of its own.
//
// The watermarks of that record are upper bounds: each key that shares it may
// have consumed as much. The next owner of any of them counts all of it as
// consumed, so their limits may deny falsely, and are never exceeded. A record
// of its own begins with them, as soon as there is room, and from then on the
// other keys do not concern it. This needs proposers that differ by key: see
// Proposer.Term.
func overflowKey(key crdt.Key) crdt.Key {
	return overflowFront | key%overflowRecords
}

// recordOf returns the state that stands for a key, a new one if there is none,
// and whether it may have watermarks of other keys.
func recordOf(r *Acceptor, key crdt.Key) (l *keyState, shared bool) {
	if l = r.records[key]; l != nil {
		return l, l.Key == overflowKey(l.Key)
	}
	over := r.records[overflowKey(key)]
	l = &keyState{Record: sticky.Record{Key: key}}
	switch full := len(r.records) >= r.cfg.MaxKeys; {
	case full && over == nil:
		l.Key = overflowKey(key)
		return l, true
	case full:
		return over, true
	case over == nil:
		return l, false
	}
	// No proposer of the key made the ballot, but none below it may follow.
	l.Ballot, l.Watermarks, l.Ended = sticky.Ballot{Round: over.Ballot.Round}, over.Watermarks, over.Ended
	return l, len(l.Watermarks) > 0
}

// spread joins the overflow records with those of the keys that may be in them:
// a voter that was copied from may have had no room for a key of which another
// one had a record.
func spread(r *Acceptor) {
	for _, key := range r.keys() {
		l, over := r.records[key], r.records[overflowKey(key)]
		if over == nil || over == l || len(over.Watermarks) == 0 {
			continue
		}
		r.join(&sticky.Record{Key: l.Key, Ballot: over.Ballot, Watermarks: over.Watermarks, Ended: over.Ended})
	}
}
