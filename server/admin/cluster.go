package admin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"
)

// Member is one live incarnation of a daemon, as the daemon that is asked sees
// it. The JSON names are stable: programs read them.
type Member struct {
	// Name is the daemon's, the same across restarts.
	Name string `json:"name"`
	// Region is the name of its region.
	Region string `json:"region"`
	// Incarnation is the slot it counts under, as crdt.Slot prints it: 16
	// hexadecimal digits, others after a restart.
	Incarnation string `json:"incarnation"`
	// Addr is where it takes the streams of other daemons, host:port.
	Addr string `json:"addr"`
	// Build is its version, for people.
	Build string `json:"build"`
	// Ready says that it takes its share of the work.
	Ready bool `json:"ready"`
	// Self marks the daemon that answers.
	Self bool `json:"self"`
	// Rules is the hash of the rules in force there, as RulesHash prints it;
	// "" while it has not told.
	Rules string `json:"rules"`
	// RulesAgree says whether those are the rules of the daemon that
	// answers; null while that is unknown.
	RulesAgree *bool `json:"rules_agree"`
	// Since is when the daemon that answers first saw this incarnation, by
	// its own wall clock; null for unknown.
	Since *time.Time `json:"since"`
}

// MembersAnswer is the answer of /members.
type MembersAnswer struct {
	// At is when it was given, by the wall clock of the daemon: ages of what
	// it holds are told from here.
	At time.Time `json:"at"`
	// Alone: the daemon has no region and shares no counters. Members is
	// empty then.
	Alone bool `json:"alone"`
	// Members are those of all regions, the daemon itself included, by
	// region, name and incarnation. Never null.
	Members []Member `json:"members"`
}

// LinkState is what a peer check found of the stream to a peer.
type LinkState string

// The states.
const (
	// Connected: the stream is up.
	Connected LinkState = "connected"
	// Connecting: an attempt is under way.
	Connecting LinkState = "connecting"
	// Backoff: an attempt failed or the stream broke, and the next attempt
	// has its time.
	Backoff LinkState = "backoff"
	// Refused: one of the two refused the handshake of the latest attempt.
	// It is tried again.
	Refused LinkState = "refused"
	// Silent: the stream is up, and nothing came from the peer for three
	// times as long as usual.
	Silent LinkState = "silent"
)

// PeerCheck is what the daemon that is asked knows of its way to one peer.
// The JSON names are stable: programs read them. A number that is not known is
// null, which is another thing than 0.
type PeerCheck struct {
	// Name, Region and Incarnation are those of the peer; see Member. A peer
	// that was configured by address and never met has no name and no
	// incarnation.
	Name        string `json:"name"`
	Region      string `json:"region"`
	Incarnation string `json:"incarnation"`
	// Addr is the address that is dialed, host:port.
	Addr  string    `json:"addr"`
	State LinkState `json:"state"`

	// RTTSeconds is the round trip of a message and its acknowledgement.
	RTTSeconds *float64 `json:"rtt_seconds"`
	// StalenessSeconds is how old the view of the peer is: all that it had
	// counted and sent that long ago is known here.
	StalenessSeconds *float64 `json:"staleness_seconds"`
	// UnsentSeconds is StalenessSeconds with what the peer had counted and
	// not sent: never less than it.
	UnsentSeconds *float64 `json:"unsent_seconds"`
	// ClockOffsetSeconds is how far the peer's clock is ahead of ours,
	// negative for behind, to within half a round trip.
	ClockOffsetSeconds *float64 `json:"clock_offset_seconds"`

	// The rates are those of late, in bytes of frames as they were sent.
	SentBytesPerSecond     *float64 `json:"sent_bytes_per_second"`
	ReceivedBytesPerSecond *float64 `json:"received_bytes_per_second"`
	// The counts are totals since the daemon that answers came to know the
	// peer. A dropped frame was not sent, for want of a stream or of room in
	// its queue; what it held is told again.
	SentFrames     uint64 `json:"sent_frames"`
	ReceivedFrames uint64 `json:"received_frames"`
	DroppedFrames  uint64 `json:"dropped_frames"`

	// LastError is why the latest stream or attempt ended, "" for never.
	// LastErrorAt is when, by the wall clock of the daemon that answers.
	LastError   string     `json:"last_error"`
	LastErrorAt *time.Time `json:"last_error_at"`
}

// NetcheckAnswer is the answer of /netcheck.
type NetcheckAnswer struct {
	// At and Alone are as in MembersAnswer.
	At    time.Time `json:"at"`
	Alone bool      `json:"alone"`
	// Peers are those of all regions, by region, name, address and
	// incarnation. Never null.
	Peers []PeerCheck `json:"peers"`
}

// RulesHash returns the 16 hexadecimal digits of a hash of rules.
func RulesHash(h uint64) string { return fmt.Sprintf("%016x", h) }

// Seconds returns d in seconds, nil for a negative one: that is how ages and
// round trips that are not known come from the core.
func Seconds(d time.Duration) *float64 {
	if d < 0 {
		return nil
	}
	return new(d.Seconds())
}

// SortMembers puts members into the order in which they are shown.
func SortMembers(m []Member) {
	slices.SortFunc(m, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Incarnation, b.Incarnation))
	})
}

// SortPeers puts peers into the order in which they are shown.
func SortPeers(p []PeerCheck) {
	slices.SortFunc(p, func(a, b PeerCheck) int {
		return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Addr, b.Addr), cmp.Compare(a.Incarnation, b.Incarnation))
	})
}

// members serves what list returns; a nil list is a daemon alone.
func members(list func() []Member) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		answer := MembersAnswer{Alone: list == nil, Members: []Member{}}
		if list != nil {
			answer.Members = append(answer.Members, list()...)
			SortMembers(answer.Members)
		}
		answer.At = time.Now().UTC()
		writeJSON(w, answer)
	}
}

// netcheck serves what list returns; a nil list is a daemon alone.
func netcheck(list func() []PeerCheck) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		answer := NetcheckAnswer{Alone: list == nil, Peers: []PeerCheck{}}
		if list != nil {
			answer.Peers = append(answer.Peers, list()...)
			SortPeers(answer.Peers)
		}
		for i := range answer.Peers {
			answer.Peers[i].forgetNonsense()
		}
		answer.At = time.Now().UTC()
		writeJSON(w, answer)
	}
}

// forgetNonsense makes numbers unknown that JSON cannot carry, as a rate over
// no time at all is: one of them must not cost the whole answer.
func (c *PeerCheck) forgetNonsense() {
	for _, f := range []**float64{&c.RTTSeconds, &c.StalenessSeconds, &c.UnsentSeconds, &c.ClockOffsetSeconds,
		&c.SentBytesPerSecond, &c.ReceivedBytesPerSecond} {
		if v := *f; v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0)) {
			*f = nil
		}
	}
}

func writeJSON(w http.ResponseWriter, answer any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(answer); err != nil {
		text(w, http.StatusInternalServerError, "cannot write the answer: "+err.Error()+"\n")
		return
	}
	respond(w, http.StatusOK, "application/json", b.String())
}
