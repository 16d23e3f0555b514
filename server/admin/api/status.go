package api

import "time"

// StatusAnswer is the answer of /v1/status: the state of a daemon, and of its
// cluster as seen by it.
type StatusAnswer struct {
	// At and Alone are as in MembersAnswer. Regions, Breakers, Strict and
	// Cluster are empty for a daemon alone.
	At    time.Time `json:"at"`
	Alone bool      `json:"alone"`

	Daemon DaemonState `json:"daemon"`
	// Regions are all configured or known regions, by name.
	Regions []RegionState `json:"regions"`
	// Breakers are the circuit breakers that are not closed, and the closed
	// ones with recent calls, by owner.
	Breakers []Breaker `json:"circuit_breakers"`
	// Strict is null for a daemon that does not serve strict keys.
	Strict *StrictState `json:"strict"`
	// Cluster is the state of the control log.
	Cluster *ClusterState `json:"cluster"`
	// Degraded are the reasons why answers are degraded now.
	Degraded []DegradedState `json:"degraded"`
	// Worst is the rule that used most of its bound within the last hour.
	// Denied is the rule with the most denied hits now. Null for none.
	Worst  *RuleUse `json:"worst_rule"`
	Denied *RuleUse `json:"most_denied_rule"`
}

// DaemonState is the state of the daemon that answers.
type DaemonState struct {
	DaemonRef
	Version       string  `json:"version"`
	UptimeSeconds float64 `json:"uptime_seconds"`
	// Ready is as on /readyz, WhyNot the reason why it is not.
	Ready  bool   `json:"ready"`
	WhyNot string `json:"why_not"`
	// Shadow reports that the daemon denies nothing.
	Shadow bool `json:"shadow"`
	// LiveKeys of at most MaxKeys are tracked. OverflowKeys counts the overflow
	// counters that further keys share.
	LiveKeys     int `json:"live_keys"`
	MaxKeys      int `json:"max_keys"`
	OverflowKeys int `json:"overflow_keys"`
	// ClockOffsetSeconds is the lead of the clock of windows over the wall
	// clock. PeerOffsetSeconds is the greatest distance to the clock of a peer,
	// in either direction.
	ClockOffsetSeconds float64  `json:"clock_offset_seconds"`
	PeerOffsetSeconds  *float64 `json:"peer_offset_seconds"`
	// Rules is the hash of the rules in force, RuleCount their number.
	// LimitsFault is why the limits on disk, or of the xDS server, are invalid,
	// "" if they are valid.
	Rules       string `json:"rules"`
	RuleCount   int    `json:"rule_count"`
	LimitsFault string `json:"limits_fault"`
	// Certificate is that for streams to peers, null for plain streams.
	Certificate *CertificateState `json:"certificate"`
	// NextSecret is null unless two cluster secrets are in force.
	NextSecret *NextSecret `json:"next_secret"`
	// Keyring are the membership keys of swim.keys_file, null without it.
	Keyring *KeyringState `json:"keyring"`
}

// NextSecret is the state of a replacement of the cluster secret.
type NextSecret struct {
	// Lacking are the connected peers that do not have the next secret, as
	// region/name.
	Lacking []string `json:"lacking"`
	// From is the time from which the next secret can be alone: hits that are
	// under the former one alone count no longer. It is null while a peer lacks
	// it. Due reports that it has come.
	From *time.Time `json:"from"`
	Due  bool       `json:"due"`
}

// KeyringState is the state of the file of membership keys.
type KeyringState struct {
	// Keys are the fingerprints of the keys in force. The first encrypts, all
	// of them decrypt.
	Keys []string `json:"keys"`
	// Fault is why the changed file is not in force, "" if it is.
	Fault string `json:"fault"`
}

// CertificateState is the state of a daemon's certificate for peers.
type CertificateState struct {
	// Names are the daemons that it names, as region/name. Without any, peers
	// need no names in theirs.
	Names []string `json:"names"`
	// NotAfter is when it stops being valid. Soon reports that it should have
	// been renewed.
	NotAfter time.Time `json:"not_after"`
	Soon     bool      `json:"soon"`
	// Fault is why changed files are not in force, "" if they are.
	Fault string `json:"fault"`
	// Peer is the connected peer whose certificate expires first, and
	// PeerNotAfter when; "" and null without any.
	Peer         string     `json:"peer"`
	PeerNotAfter *time.Time `json:"peer_not_after"`
}

// RegionState is the state of a region.
type RegionState struct {
	Region string `json:"region"`
	// Self marks the region of the daemon that answers.
	Self bool `json:"self"`
	// StalenessSeconds is the age of the oldest view of a daemon there, null
	// without any view of another daemon.
	StalenessSeconds *float64 `json:"staleness_seconds"`
	// Partitioned reports that no daemon of the region is reachable,
	// PartitionedSince since when. A region that the control log does not have
	// is not partitioned.
	Partitioned      bool       `json:"partitioned"`
	PartitionedSince *time.Time `json:"partitioned_since"`
	// Members are its live daemons, by name and incarnation.
	Members []MemberState `json:"members"`
}

// MemberState is the state of one live daemon.
type MemberState struct {
	Name        string `json:"name"`
	Incarnation string `json:"incarnation"`
	Ready       bool   `json:"ready"`
	Self        bool   `json:"self"`
	// StalenessSeconds is the age of the view of it, null without one and for
	// the daemon itself.
	StalenessSeconds *float64 `json:"staleness_seconds"`
}

// DegradedState is a reason why answers are degraded.
type DegradedState struct {
	Reason string `json:"reason"`
	// Since is when it began. Answers is the number of degraded answers since.
	Since   *time.Time `json:"since"`
	Answers uint64     `json:"answers"`
	// Text explains the reason and the remedy.
	Text string `json:"text"`
}

// RuleUse is the use of one rule.
type RuleUse struct {
	Domain string `json:"domain"`
	// Rule is its path. Name is the name of its limit, "" if it has none.
	Rule string `json:"rule"`
	Name string `json:"name"`
	// Overage is the greatest overage of the last hour and Bound its bound, as
	// in RuleBudget; null if unknown.
	Overage *float64 `json:"overage_worst_hour_ratio"`
	Bound   *float64 `json:"overage_bound_ratio"`
	// DeniedPerSecond is the recent rate of hits that this daemon denied.
	DeniedPerSecond *float64 `json:"denied_per_second"`
}

// TopOrder is an order of keys.
type TopOrder string

// The orders.
const (
	TopByHits   TopOrder = "hits"
	TopByDenied TopOrder = "denied"
)

// MaxTop bounds the keys of an answer.
const MaxTop = 100

// TopQuery is a request to /v1/top.
type TopQuery struct {
	By TopOrder
	// N is the number of keys, 1 to MaxTop.
	N int
	// Reveal requests the texts of the keys. Only the daemon's own machine may.
	Reveal bool
}

// TopAnswer is the answer of /v1/top: the keys with the most requested or the
// most denied hits at the daemon that answers.
type TopAnswer struct {
	// At is as in MembersAnswer.
	At   time.Time `json:"at"`
	Self DaemonRef `json:"self"`
	By   TopOrder  `json:"by"`
	// SpanSeconds is the interval of the rates.
	SpanSeconds float64 `json:"span_seconds"`
	// HotPerSecond is the rate from which a key is hot, 0 for none.
	HotPerSecond uint64 `json:"hot_per_second"`
	// Reveals reports that the daemon keeps texts of keys, though perhaps not
	// of all.
	Reveals bool `json:"reveals"`
	// Keys are in the order By, those with denied hits alone if By is
	// TopByDenied. Equal keys are ordered by hash.
	Keys []TopKey `json:"keys"`
}

// TopKey is one key of a rule.
type TopKey struct {
	Domain string `json:"domain"`
	// Rule is its path. Name is the name of its limit, "" if it has none.
	Rule string `json:"rule"`
	Name string `json:"name"`
	// Key is the hash of the key, 16 hexadecimal digits. Text is the
	// descriptor, key=value,key=value, "" unless requested and known.
	Key  string `json:"key"`
	Text string `json:"text"`
	// HitsPerSecond is the rate of requested hits, DeniedPerSecond that of
	// denied ones.
	HitsPerSecond   float64 `json:"hits_per_second"`
	DeniedPerSecond float64 `json:"denied_per_second"`
	// Share is the fraction of the limit in use.
	Share *float64 `json:"share_ratio"`
	// Hot reports a rate of at least hot_key.threshold.
	Hot bool `json:"hot"`
}
