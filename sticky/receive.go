package sticky

import (
	"fmt"
	"time"
)

// Refusal is why something received was not taken.
type Refusal uint8

// The refusals.
const (
	NoRefusal Refusal = iota
	// Stranger: the sender is not among the peers, or the message is for another.
	Stranger
	// OtherRegion: raises of a daemon of another region.
	OtherRegion
	// BadBallot: a ballot that is not the sender's, or beyond all bounds.
	BadBallot
	// BadWatermarks: marks too many, out of order or none at all.
	BadWatermarks
	// BadLayout: a layout that makes no sense.
	BadLayout
	// Conflict: a layout that says something else under the same number.
	Conflict
	// BadSnapshotRequest: a copy of who is no replica, or for another replica.
	BadSnapshotRequest
	// BadSnapshotChunk: a page that was not asked for, or with records that make no sense.
	BadSnapshotChunk
	// NoRoom: more records than the replica has room for.
	NoRoom
	// TooMany: more items than a message may have.
	TooMany

	nRefusals
)

var refusalNames = [...]string{"", "stranger", "other_region", "bad_ballot", "bad_marks", "bad_layout", "conflict", "bad_copy", "bad_page", "no_room", "too_many"}

// String returns the name that logs and metrics carry.
func (f Refusal) String() string {
	if int(f) >= len(refusalNames) {
		return "unknown"
	}
	return refusalNames[f]
}

// Stats counts what a replica did since its start.
type Stats struct {
	// Votes are the raises that it holds, Refusals those it refused, by Why.
	Votes    uint64
	Refusals [MaxWhy + 1]uint64
	// Refused counts what made no sense, by Refusal.
	Refused [nRefusals]uint64
	// Events that there was no room for.
	Dropped uint64
}

// Receive takes in the raises, copies, pages and layouts of a message; the rest
// is not the replica's. now is the label clock in Unix milliseconds. The error
// says what was refused first; whatever else made sense was taken. Messages of
// this daemon to itself are taken too.
func (r *Acceptor) Receive(at time.Duration, now int64, m *Message) error {
	r.at, r.now = max(r.at, at), now
	from := r.peer(m.From)
	if from.ID == 0 || m.To != r.self {
		return r.refuse(Stranger, from, fmt.Errorf("message of %s for %s: want one of a live peer for %s", m.From, m.To, r.self))
	}
	if len(m.Accepts) > MaxItems || len(m.SnapshotRequests) > MaxItems || len(m.SnapshotChunks) > MaxSnapshotChunks || len(m.Layouts) > MaxLayouts {
		return r.refuse(TooMany, from, fmt.Errorf("message of %q: %d raises, %d copies, %d pages, %d layouts: want at most %d, %d, %d, %d",
			from.Name, len(m.Accepts), len(m.SnapshotRequests), len(m.SnapshotChunks), len(m.Layouts), MaxItems, MaxItems, MaxSnapshotChunks, MaxLayouts))
	}
	var first error
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	for i := range m.Layouts {
		note(r.hear(from, m, &m.Layouts[i]))
	}
	for i := range m.Accepts {
		note(r.takeAccept(from, m, &m.Accepts[i]))
	}
	for i := range m.SnapshotRequests {
		note(r.takeCopy(from, m, &m.SnapshotRequests[i]))
	}
	for i := range m.SnapshotChunks {
		note(r.takePage(from, &m.SnapshotChunks[i]))
	}
	return first
}

func (r *Acceptor) takeAccept(from Peer, m *Message, accept *Accept) error {
	if from.Region != r.cfg.Region {
		return r.refuse(OtherRegion, from, fmt.Errorf("raise of %q in %q: want one of %q", from.Name, from.Region, r.cfg.Region))
	}
	if f := accept.validate(m.From); f != NoRefusal {
		return r.refuse(f, from, fmt.Errorf("raise of %q: ballot %d of %s, %d marks: want its own ballot and 1 to %d marks in order",
			from.Name, accept.Ballot.Round, accept.Ballot.Owner, len(accept.Watermarks), MaxWatermarks))
	}
	r.accept(m, accept)
	return nil
}

// refuse counts what was not taken, and tells of it now and then.
func (r *Acceptor) refuse(f Refusal, from Peer, err error) error {
	r.stats.Refused[f]++
	key := hashText(from.Name, f.String())
	if at, told := r.since[key]; !told || r.at-at >= refuseEvery {
		if len(r.since) >= maxEvents {
			clear(r.since)
		}
		r.since[key] = r.at
		r.event(Refused, from.Name, err.Error())
	}
	return fmt.Errorf("sticky: %w", err)
}
