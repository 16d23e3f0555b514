package api

import "time"

// Member is one live incarnation of a daemon, as seen by the daemon that
// answers.
type Member struct {
	// Name is the id of the daemon, which stays the same across restarts.
	Name   string `json:"name"`
	Region string `json:"region"`
	// Incarnation consists of 16 hexadecimal digits. It changes at a restart.
	Incarnation string `json:"incarnation"`
	// Addr is the address of its peer listener, host:port.
	Addr string `json:"addr"`
	// Build is its version.
	Build string `json:"build"`
	// Ready reports whether it does its share of the work of its region.
	Ready bool `json:"ready"`
	// VoterOnly daemons have control.voter: only. They decide nothing.
	VoterOnly bool `json:"voter_only"`
	// Self marks the daemon that answers.
	Self bool `json:"self"`
	// Rules is the hash of its rules, see RulesHash; "" while unknown.
	Rules string `json:"rules"`
	// RulesAgree reports whether its rules are those of the daemon that
	// answers; null while unknown.
	RulesAgree *bool `json:"rules_agree"`
	// Since is when the daemon that answers first saw this incarnation, on its
	// own wall clock; null if unknown.
	Since *time.Time `json:"since"`
}

// MembersAnswer is the answer of /members.
type MembersAnswer struct {
	// At is the wall-clock time of the answer.
	At time.Time `json:"at"`
	// Alone reports that the daemon has no region and shares no counters.
	// Members is then empty.
	Alone bool `json:"alone"`
	// Members are the live daemons of all regions, including the one that
	// answers, by region, name and incarnation.
	Members []Member `json:"members"`
	// Revoked are the daemons whose certificates do not count any more, as
	// region/name.
	Revoked []string `json:"revoked"`
}

// LinkState is the state of the stream to a peer.
type LinkState string

// The states of a stream.
const (
	// Connected: the stream is up.
	Connected LinkState = "connected"
	// Connecting: an attempt is under way.
	Connecting LinkState = "connecting"
	// Backoff: an attempt failed or the stream broke. The next attempt waits.
	Backoff LinkState = "backoff"
	// Refused: one side refused the handshake of the latest attempt. The
	// daemon tries again.
	Refused LinkState = "refused"
	// Silent: the stream is up, but no message came from the peer for three
	// times the usual interval.
	Silent LinkState = "silent"
)

// PeerCheck describes the connection of the daemon that answers to one peer.
type PeerCheck struct {
	// Name, Region and Incarnation identify the peer, see Member. Name and
	// Incarnation are "" for a configured address that never connected.
	Name        string `json:"name"`
	Region      string `json:"region"`
	Incarnation string `json:"incarnation"`
	// Addr is the dialed address, host:port.
	Addr  string    `json:"addr"`
	State LinkState `json:"state"`

	// RTTSeconds is the round trip of a message and its acknowledgement.
	RTTSeconds *float64 `json:"rtt_seconds"`
	// StalenessSeconds is the age of the view of the peer: everything that the
	// peer had counted and sent by then is merged.
	StalenessSeconds *float64 `json:"staleness_seconds"`
	// UnsentSeconds is StalenessSeconds including counts that the peer had not
	// sent yet. It is never less.
	UnsentSeconds *float64 `json:"unsent_seconds"`
	// LagSeconds is how old the view gets while the peer has counts to send. An
	// idle peer sends heartbeats alone, and the view of it gets older.
	LagSeconds *float64 `json:"lag_seconds"`
	// ClockOffsetSeconds is the lead of the peer's clock over the local one,
	// negative for a lag, to within half a round trip.
	ClockOffsetSeconds *float64 `json:"clock_offset_seconds"`

	// The recent rates count bytes of frames as sent.
	SentBytesPerSecond     *float64 `json:"sent_bytes_per_second"`
	ReceivedBytesPerSecond *float64 `json:"received_bytes_per_second"`
	// The frames are totals since the daemon that answers learned of the
	// peer. A dropped frame was not sent, for lack of a stream or of room in
	// its queue; later frames repeat its content.
	SentFrames     uint64 `json:"sent_frames"`
	ReceivedFrames uint64 `json:"received_frames"`
	DroppedFrames  uint64 `json:"dropped_frames"`

	// LastError is why the latest stream or attempt ended, "" if none has.
	// LastErrorAt is when, on the wall clock of the daemon that answers.
	LastError   string     `json:"last_error"`
	LastErrorAt *time.Time `json:"last_error_at"`
}

// NetcheckAnswer is the answer of /netcheck.
type NetcheckAnswer struct {
	// At and Alone are as in MembersAnswer.
	At    time.Time `json:"at"`
	Alone bool      `json:"alone"`
	// Peers are those of all regions, by region, name, address and
	// incarnation.
	Peers []PeerCheck `json:"peers"`
}
