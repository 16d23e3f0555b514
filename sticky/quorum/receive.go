package quorum

import (
	"fmt"
	"time"

	"github.com/georld/rld/internal/rendezvous"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// Refusal is why something received was not taken.
type Rejection uint8

// The refusals.
const (
	NoRejection Rejection = iota
	// Stranger: the sender is not among the peers, or the message is for another.
	UnknownPeer
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

	nRejections
)

var rejectionNames = [...]string{"", "unknown_peer", "other_region", "bad_ballot", "bad_watermarks", "bad_layout", "conflict", "bad_snapshot_request", "bad_snapshot_chunk", "no_room", "too_many"}

// String returns the name that logs and metrics carry.
func (f Rejection) String() string {
	if int(f) >= len(rejectionNames) {
		return "unknown"
	}
	return rejectionNames[f]
}

// Stats counts what a replica did since its start.
type Stats struct {
	// Votes are the raises that it holds, Refusals those it refused, by Why.
	Votes    uint64
	Refusals [sticky.MaxReason + 1]uint64
	// Rejected counts what made no sense, by Refusal.
	Rejected [nRejections]uint64
	// Events that there was no room for.
	Dropped uint64
}

// Receive takes in the raises, copies, pages and layouts of a message; the rest
// is not the replica's. now is the label clock in Unix milliseconds. The error
// says what was refused first; whatever else made sense was taken. Messages of
// this daemon to itself are taken too.
func (r *Acceptor) Receive(at time.Duration, now int64, m *sticky.Message) error {
	r.at, r.now = max(r.at, at), now
	from := r.live.Get(m.From)
	if from.ID == 0 || m.To != r.self {
		return r.reject(UnknownPeer, from, fmt.Errorf("message of %s for %s: want one of a live peer for %s", m.From, m.To, r.self))
	}
	if len(m.Accepts) > sticky.MaxItems || len(m.SnapshotRequests) > sticky.MaxItems || len(m.SnapshotChunks) > sticky.MaxSnapshotChunks || len(m.Layouts) > sticky.MaxLayouts {
		return r.reject(TooMany, from, fmt.Errorf("message of %q: %d raises, %d copies, %d pages, %d layouts: want at most %d, %d, %d, %d",
			from.Name, len(m.Accepts), len(m.SnapshotRequests), len(m.SnapshotChunks), len(m.Layouts), sticky.MaxItems, sticky.MaxItems, sticky.MaxSnapshotChunks, sticky.MaxLayouts))
	}
	var first error
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	for i := range m.Layouts {
		note(r.onLayout(from, m, &m.Layouts[i]))
	}
	for i := range m.Accepts {
		note(r.onAccept(from, m, &m.Accepts[i]))
	}
	for i := range m.SnapshotRequests {
		note(r.onSnapshotRequest(from, m, &m.SnapshotRequests[i]))
	}
	for i := range m.SnapshotChunks {
		note(r.onSnapshotChunk(from, &m.SnapshotChunks[i]))
	}
	return first
}

func (r *Acceptor) onAccept(from route.Peer, m *sticky.Message, accept *sticky.Accept) error {
	if from.Region != r.cfg.Region {
		return r.reject(OtherRegion, from, fmt.Errorf("raise of %q in %q: want one of %q", from.Name, from.Region, r.cfg.Region))
	}
	if f := validateAccept(accept, m.From); f != NoRejection {
		return r.reject(f, from, fmt.Errorf("raise of %q: ballot %d of %s, %d marks: want its own ballot and 1 to %d marks in order",
			from.Name, accept.Ballot.Round, accept.Ballot.Owner, len(accept.Watermarks), sticky.MaxWatermarks))
	}
	r.accept(m, accept)
	return nil
}

// reject counts what was not taken, and tells of it now and then.
func (r *Acceptor) reject(f Rejection, from route.Peer, err error) error {
	r.stats.Rejected[f]++
	key := rendezvous.Hash(from.Name, f.String())
	if at, told := r.rejectedAt[key]; !told || r.at-at >= rejectEvery {
		if len(r.rejectedAt) >= maxEvents {
			clear(r.rejectedAt)
		}
		r.rejectedAt[key] = r.at
		r.event(Rejected, from.Name, err.Error())
	}
	return fmt.Errorf("sticky: %w", err)
}
