package api

import "time"

// StrictAnswer is the answer of /v1/strict.
type StrictAnswer struct {
	// At and Alone are as in MembersAnswer.
	At    time.Time `json:"at"`
	Alone bool      `json:"alone"`
	// Self is the daemon that answers.
	Self DaemonRef `json:"self"`
	// Strict is null for a daemon that does not serve strict keys.
	Strict *StrictState `json:"strict"`
}

// StrictState is the state of strict keys at one daemon.
type StrictState struct {
	// Layout is the number of the active layout, 0 for none.
	Layout uint64 `json:"layout"`
	// Next is the announced layout, null for none. Regions and Pins are then
	// those of it.
	Next *NextLayout `json:"next"`
	// Regions are the home regions, by name.
	Regions []StrictRegion `json:"regions"`
	// Pins are the rules with a home region of their own, in the order of the
	// files.
	Pins []Pin `json:"pins"`
	// Acceptor is the acceptor of this daemon, null if it is not a voter.
	Acceptor *AcceptorState `json:"acceptor"`
	// Keys of at most MaxKeys are tracked by this daemon, as owner or lessee.
	Keys    int `json:"keys"`
	MaxKeys int `json:"max_keys"`
	// Warnings are sentences about possible improvements.
	Warnings []string `json:"warnings"`
}

// NextLayout is a layout that is not active yet.
type NextLayout struct {
	Number uint64 `json:"number"`
	// WaitsFor lists the voters that have not copied all watermarks. A majority
	// in each region suffices.
	WaitsFor []Missing `json:"waits_for"`
}

// Missing is a voter that a layout waits for, and the reason.
type Missing struct {
	Region string `json:"region"`
	Name   string `json:"name"`
	Why    string `json:"why"`
}

// StrictRegion is a region of a layout.
type StrictRegion struct {
	Region string `json:"region"`
	// Weight is the fraction of keys whose home region it is.
	Weight float64 `json:"weight_ratio"`
	// Voters are its strict voters, by name. Empty if none is known.
	Voters []StrictVoter `json:"voters"`
}

// StrictVoter is a strict voter, as seen by the daemon that answers.
type StrictVoter struct {
	Name string `json:"name"`
	Self bool   `json:"self"`
	// Live and Ready are as in MemberState. An owner must be both.
	Live  bool `json:"live"`
	Ready bool `json:"ready"`
	// Voting reports whether it votes, null if unknown; WhyNot why not.
	Voting *bool  `json:"voting"`
	WhyNot string `json:"why_not"`
}

// Pin assigns a home region to a rule.
type Pin struct {
	Domain string `json:"domain"`
	// Rule is its path, "" for a rule that is not in the limits of this
	// daemon. ID is its id in messages, 16 hexadecimal digits.
	Rule   string `json:"rule"`
	ID     string `json:"id"`
	Region string `json:"region"`
}

// AcceptorState is the state of an acceptor.
type AcceptorState struct {
	// Voting reports whether it votes, WhyNot why not.
	Voting bool   `json:"voting"`
	WhyNot string `json:"why_not"`
	// DiskLost is when it lost the state that it had as a voter, null for
	// never.
	DiskLost *time.Time `json:"disk_lost_at"`
	// Keys is the number of keys that it stores watermarks of.
	Keys int `json:"keys"`
	// JournalBytes is the size of its file. JournalFault is why it cannot store
	// anything more, "" if it can.
	JournalBytes uint64 `json:"journal_bytes"`
	JournalFault string `json:"journal_fault"`
}
