package quorum

import (
	"fmt"
	"time"

	"github.com/georld/rld/internal/enum"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// Rejection is why an item of a message was rejected.
type Rejection uint8

// The rejections.
const (
	NoRejection Rejection = iota
	// UnknownPeer: the sender is not a live peer, or the message is for another
	// daemon.
	UnknownPeer
	// OtherRegion: an Accept of a daemon of another region.
	OtherRegion
	// BadBallot: a ballot that is not the sender's, or beyond the bounds.
	BadBallot
	// BadWatermarks: too many watermarks, none, or out of order.
	BadWatermarks
	// BadSnapshotRequest: a request of a daemon that is no voter, or in the
	// name of another one.
	BadSnapshotRequest
	// BadSnapshotChunk: a chunk that was not requested, or with records that
	// are not valid.
	BadSnapshotChunk
	// NoRoom: more records than the acceptor has room for.
	NoRoom
	// TooMany: more items than a message may have.
	TooMany

	nRejections
)

var rejectionNames = []string{"", "unknown_peer", "other_region", "bad_ballot", "bad_watermarks", "bad_snapshot_request", "bad_snapshot_chunk", "no_room", "too_many"}

// String returns the name in logs and metrics.
func (f Rejection) String() string { return enum.Name(f, rejectionNames...) }

// Stats counts the work of an acceptor since its start.
type Stats struct {
	// Votes counts the Accepts that were stored, Refusals those refused, by
	// reason.
	Votes    uint64
	Refusals [sticky.MaxReason + 1]uint64
	// Rejected counts rejected items, by Rejection.
	Rejected [nRejections]uint64
}

// Receive handles the Accepts, snapshot requests and snapshot chunks of a
// message. now is the clock of windows in Unix milliseconds. The error
// describes the first rejected item; the other items are handled. Messages of
// this daemon to itself are valid.
func (r *Acceptor) Receive(at time.Duration, now int64, m *sticky.Message) error {
	r.clock(at)
	r.now = now
	from := r.live.Get(m.From)
	if from.ID == 0 || m.To != r.self {
		return r.reject(UnknownPeer, from, fmt.Errorf("message of %s for %s: want one of a live peer for %s", m.From, m.To, r.self))
	}
	if len(m.Accepts) > sticky.MaxItems || len(m.SnapshotRequests) > sticky.MaxItems || len(m.SnapshotChunks) > sticky.MaxSnapshotChunks || len(m.Layouts) > sticky.MaxLayouts {
		return r.reject(TooMany, from, fmt.Errorf("message of %q: %d accepts, %d snapshot requests, %d snapshot chunks, %d layouts: want at most %d, %d, %d, %d",
			from.Name, len(m.Accepts), len(m.SnapshotRequests), len(m.SnapshotChunks), len(m.Layouts), sticky.MaxItems, sticky.MaxItems, sticky.MaxSnapshotChunks, sticky.MaxLayouts))
	}
	var first error
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	for i := range m.Accepts {
		note(r.onAccept(from, m, &m.Accepts[i]))
	}
	for i := range m.Accepted {
		r.countsVote(from, &m.Accepted[i])
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
		return r.reject(OtherRegion, from, fmt.Errorf("accept of %q in %q: want one of %q", from.Name, from.Region, r.cfg.Region))
	}
	if f := validateAccept(accept, m.From); f != NoRejection {
		return r.reject(f, from, fmt.Errorf("accept of %q: ballot %d of %s, %d watermarks: want its own ballot and 1 to %d watermarks in order",
			from.Name, accept.Ballot.Round, accept.Ballot.Owner, len(accept.Watermarks), sticky.MaxWatermarks))
	}
	r.accept(m, accept)
	return nil
}

// reject counts a rejected item. It adds an event unless there was one of the
// peer for the same rejection lately.
func (r *Acceptor) reject(f Rejection, from route.Peer, err error) error {
	r.stats.Rejected[f]++
	r.events.AddOnce(Rejected, from.Name, f.String(), err.Error())
	return fmt.Errorf("sticky: %w", err)
}
