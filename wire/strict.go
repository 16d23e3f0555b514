package wire

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/hlc"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/sticky"
)

// StrictVersion is the version of the encoding of messages about strict keys,
// the first byte of their frames.
const StrictVersion = 0x62

// IsStrict reports whether a frame is about strict keys, by its first byte.
func IsStrict(frame []byte) bool { return len(frame) > 0 && frame[0] == StrictVersion }

// EncodeStrict appends the frame of a message to dst and returns the extended
// slice. It only reads the message and keeps no part of it.
//
// On an error it returns dst as it was: a *SizeError when a list of the message
// is too long or the frame would exceed MaxFrameBytes, so that it must be
// split, and a *FormatError when the message is not valid.
func EncodeStrict(dst []byte, m *sticky.Message) ([]byte, error) {
	if err := checkStrict(m); err != nil {
		return dst, err
	}
	return seal(dst, StrictVersion, strictFrame(m))
}

// DecodeStrict returns the message of a frame, which shares no memory with it.
// Empty lists are nil. The message is valid on its own: bounded, its lists in
// the order that package sticky requires, and its reasons known. The receiver
// checks its content and its sender.
//
// The error is a *VersionError, a *SizeError, a *ChecksumError for a frame that
// was cut or changed, or a *FormatError. The memory that it allocates is at
// most some 200 bytes for each byte of the frame.
func DecodeStrict(frame []byte) (*sticky.Message, error) {
	var f rldv1.StrictFrame
	if err := unseal(frame, StrictVersion, &f); err != nil {
		return nil, err
	}
	m := &sticky.Message{
		From: crdt.Incarnation(f.From), To: crdt.Incarnation(f.To), Stamp: hlc.Timestamp(f.Stamp),
		Number:   f.Number,
		Requests: fromList(f.Requests, requestOf), Grants: fromList(f.Grants, grantOf),
		Accepts: fromList(f.Accepts, acceptOf), Accepted: fromList(f.Accepted, acceptedOf),
		SnapshotRequests: fromList(f.SnapshotRequests, snapshotRequestOf),
		SnapshotChunks:   fromList(f.SnapshotChunks, chunkOf),
		Layouts:          fromList(f.Layouts, layoutOf),
	}
	if err := checkStrict(m); err != nil {
		return nil, err
	}
	return m, nil
}

func strictFrame(m *sticky.Message) *rldv1.StrictFrame {
	return &rldv1.StrictFrame{
		From: uint64(m.From), To: uint64(m.To), Stamp: uint64(m.Stamp),
		Number:   m.Number,
		Requests: listOf(m.Requests, strictRequest), Grants: listOf(m.Grants, strictGrant),
		Accepts: listOf(m.Accepts, strictAccept), Accepted: listOf(m.Accepted, strictAccepted),
		SnapshotRequests: listOf(m.SnapshotRequests, strictSnapshotRequest),
		SnapshotChunks:   listOf(m.SnapshotChunks, strictChunk),
		Layouts:          listOf(m.Layouts, strictLayout),
	}
}

func strictRequest(r *sticky.LeaseRequest) *rldv1.LeaseRequest {
	return &rldv1.LeaseRequest{
		Id: r.ID, Lessee: uint64(r.Lessee), Owner: uint64(r.Owner), Key: uint64(r.Key),
		Rule: r.Rule, Reserve: r.Reserve, Window: r.Window, Want: r.Want, Need: r.Need, Extra: r.Extra,
		Returned: r.Returned, WithinMs: r.Within, Hops: uint32(r.Hops), Prefetch: r.Prefetch,
	}
}

// requestOf converts a request. Hops above 255 become 255, which is more than
// any receiver accepts.
func requestOf(r *rldv1.LeaseRequest) sticky.LeaseRequest {
	return sticky.LeaseRequest{
		ID: r.Id, Lessee: crdt.Incarnation(r.Lessee), Owner: crdt.Incarnation(r.Owner),
		Key: crdt.Key(r.Key), Rule: r.Rule, Reserve: r.Reserve, Window: r.Window,
		Want: r.Want, Need: r.Need, Extra: r.Extra, Returned: r.Returned, Within: r.WithinMs,
		Hops: uint8(min(r.Hops, 255)), Prefetch: r.Prefetch,
	}
}

func strictGrant(g *sticky.LeaseGrant) *rldv1.LeaseGrant {
	return &rldv1.LeaseGrant{
		Id: g.ID, Owner: uint64(g.Owner), Round: g.Round, Key: uint64(g.Key), Rule: g.Rule,
		Reserve: g.Reserve, Denied: g.Denied, Never: g.Never, Window: g.Window, UntilMs: g.Until,
		Total: g.Total, RetryMs: g.Retry, Remaining: g.Remaining, ResetMs: g.Reset,
		Reason: uint32(g.Reason), Keep: g.Keep,
	}
}

func grantOf(g *rldv1.LeaseGrant) sticky.LeaseGrant {
	return sticky.LeaseGrant{
		ID: g.Id, Owner: crdt.Incarnation(g.Owner), Round: g.Round, Key: crdt.Key(g.Key),
		Rule: g.Rule, Reserve: g.Reserve, Denied: g.Denied, Never: g.Never, Window: g.Window,
		Until: g.UntilMs, Total: g.Total, Retry: g.RetryMs, Remaining: g.Remaining, Reset: g.ResetMs,
		Reason: reasonOf(g.Reason), Keep: g.Keep,
	}
}

// reasonOf converts a reason. An unknown one becomes one that checkStrict
// rejects.
func reasonOf(v uint32) sticky.Reason {
	return sticky.Reason(min(v, uint32(sticky.MaxReason)+1))
}
