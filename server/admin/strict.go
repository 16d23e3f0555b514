package admin

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// StrictAnswer is the answer of /v1/strict. The JSON names are stable: programs
// read them. What is not known is null, which is another thing than 0.
type StrictAnswer struct {
	// At and Alone are as in MembersAnswer.
	At    time.Time `json:"at"`
	Alone bool      `json:"alone"`
	// Self is the daemon that answers.
	Self DaemonRef `json:"self"`
	// Strict is null for a daemon that has no part in strict keys.
	Strict *StrictState `json:"strict"`
}

// StrictState is how strict keys are at one daemon.
type StrictState struct {
	// Layout is the number of the layout in force here: which region is home of
	// what, and who holds marks in each.
	Layout uint64 `json:"layout"`
	// Next is the layout that is under way, null for none.
	Next *NextLayout `json:"next"`
	// Regions are those that keys may be at home in, by name. Never null.
	Regions []StrictRegion `json:"regions"`
	// Pins are the rules with a home region of their own, in the order of the
	// files. Never null.
	Pins []Pin `json:"pins"`
	// Replica is this daemon's own, null where it is none.
	Replica *AcceptorState `json:"acceptor"`
	// Ledgers of at most MaxLedgers are those that this daemon knows of now: it is
	// home of them, was, or asked their homes.
	Ledgers    int `json:"keys"`
	MaxLedgers int `json:"max_keys"`
	// Warnings say what could be better, for people. Never null.
	Warnings []string `json:"warnings"`
}

// NextLayout is a layout that is not in force yet.
type NextLayout struct {
	Number uint64 `json:"number"`
	// Since is when it was put in, as far as it is known here.
	Since *time.Time `json:"since"`
	// WaitsFor is what is missing. Never null.
	WaitsFor []Missing `json:"waits_for"`
}

// Missing is a replica that a layout waits for, and why.
type Missing struct {
	Region string `json:"region"`
	Name   string `json:"name"`
	Why    string `json:"why"`
}

// StrictRegion is a region of a layout.
type StrictRegion struct {
	Region string `json:"region"`
	// Weight is the part of the keys that are at home there.
	Weight float64 `json:"weight_ratio"`
	// Replicas are the daemons that hold its marks, by name. Empty when nothing was
	// heard of them. Never null.
	Replicas []StrictReplica `json:"voters"`
}

// StrictReplica is one of a region's replicas, as the daemon that answers knows it.
type StrictReplica struct {
	Name string `json:"name"`
	Self bool   `json:"self"`
	// Live and Ready are as in MemberState; a home must be both.
	Live  bool `json:"live"`
	Ready bool `json:"ready"`
	// Voting says whether it votes, null when it is not known; WhyNot why not.
	Voting *bool  `json:"voting"`
	WhyNot string `json:"why_not"`
}

// Pin gives a rule a home region.
type Pin struct {
	Domain string `json:"domain"`
	// Rule is its path, "" for a rule that is not in the limits of this daemon;
	// ID is its name among daemons, 16 hexadecimal digits.
	Rule   string `json:"rule"`
	ID     string `json:"id"`
	Region string `json:"region"`
}

// AcceptorState is a replica's memory.
type AcceptorState struct {
	// Voting says that it votes, WhyNot why it does not.
	Voting bool   `json:"voting"`
	WhyNot string `json:"why_not"`
	// DiskLost is when it last began with nothing of what it had promised, null for
	// never.
	DiskLost *time.Time `json:"disk_lost_at"`
	// Records are the ledgers that it holds marks of.
	Records int `json:"records"`
	// JournalBytes is the size of its file, JournalFault why nothing more can be
	// stored, "" when it can.
	JournalBytes uint64 `json:"journal_bytes"`
	JournalFault string `json:"journal_fault"`
}

// LayoutCommand is what an operator may change of a layout.
type LayoutCommand string

// The commands. Each is at /v1/strict/ and its name.
const (
	SetReplicas LayoutCommand = "set-replicas"
	SetHome     LayoutCommand = "set-home"
	UnsetHome   LayoutCommand = "unset-home"
)

// LayoutCommands lists them.
func LayoutCommands() []LayoutCommand { return []LayoutCommand{SetReplicas, SetHome, UnsetHome} }

// LayoutRequest is the body of a command.
type LayoutRequest struct {
	// Replicas are for SetReplicas: the names of the daemons that are to hold the
	// marks of Region, "" for the region of the daemon that is asked.
	Replicas []string `json:"voters,omitempty"`
	// Rule is for the others: the path of a rule or the name of its limit, as rld
	// budget takes it. Region is for SetHome.
	Rule   string `json:"rule,omitempty"`
	Region string `json:"region,omitempty"`
	// DryRun asks what would be done, and does nothing.
	DryRun bool `json:"dry_run,omitempty"`
}

// LayoutAnswer says what a command has come to.
type LayoutAnswer struct {
	// Before is the number of the layout in force, After that of the one that was
	// put in, or would be.
	Before uint64 `json:"layout_before"`
	After  uint64 `json:"layout_after"`
	// Changes say what is different in it, for people. Never null.
	Changes []string `json:"changes"`
	// DryRun says that nothing was done.
	DryRun bool `json:"dry_run"`
	// Next says what happens now, for people.
	Next string `json:"next"`
}

// maxLayoutBytes bounds the body of a command.
const maxLayoutBytes = 16 << 10

// strictPage serves what ask returns; a nil ask is a daemon alone.
func strictPage(ask func() StrictAnswer) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		answer := StrictAnswer{Alone: true}
		if ask != nil {
			answer = ask()
		}
		answer.Strict = answer.Strict.filled()
		answer.At = time.Now().UTC()
		writeJSON(w, answer)
	}
}

// layout serves one command. It is taken from this machine alone, as those about
// rights are.
func layout(c LayoutCommand, do func(LayoutCommand, LayoutRequest) (LayoutAnswer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := fromHere(r); err != nil {
			fail(w, http.StatusForbidden, err)
			return
		}
		var q LayoutRequest
		err := readJSON(w, r, maxLayoutBytes, c.body(), &q)
		if err == nil {
			err = q.check(c)
		}
		if err != nil {
			fail(w, http.StatusBadRequest, err)
			return
		}
		if do == nil {
			fail(w, http.StatusConflict, errors.New("this daemon has no part in strict keys: it has no region"))
			return
		}
		answer, err := do(c, q)
		if err != nil {
			fail(w, http.StatusConflict, err)
			return
		}
		if answer.Changes == nil {
			answer.Changes = []string{}
		}
		writeJSON(w, answer)
	}
}

// body is what the body of a command looks like.
func (c LayoutCommand) body() string {
	switch c {
	case SetReplicas:
		return `{"replicas": ["...", "...", "..."], "region": "..."}`
	case SetHome:
		return `{"rule": "...", "region": "..."}`
	}
	return `{"rule": "..."}`
}

// check finds what a request has too much or too little of, for a command. What
// the names mean is for the daemon to say.
func (q *LayoutRequest) check(c LayoutCommand) error {
	takesReplicas, takesRule, takesRegion := c == SetReplicas, c != SetReplicas, c != UnsetHome
	switch {
	case takesReplicas != (len(q.Replicas) > 0), takesRule != (q.Rule != ""),
		!takesRegion && q.Region != "", c == SetHome && q.Region == "":
		return fmt.Errorf("want %s", c.body())
	case len(q.Rule) > maxRuleText:
		return fmt.Errorf("a rule of %d bytes, want at most %d", len(q.Rule), maxRuleText)
	}
	return nil
}

// filled returns a copy with lists for what is missing. What the daemon keeps is
// not changed.
func (s *StrictState) filled() *StrictState {
	if s == nil {
		return nil
	}
	out := *s
	if s.Next != nil {
		next := *s.Next
		next.WaitsFor = append([]Missing{}, next.WaitsFor...)
		out.Next = &next
	}
	out.Regions = append([]StrictRegion{}, s.Regions...)
	for i := range out.Regions {
		out.Regions[i].Replicas = append([]StrictReplica{}, out.Regions[i].Replicas...)
	}
	out.Pins = append([]Pin{}, s.Pins...)
	out.Warnings = append([]string{}, s.Warnings...)
	return &out
}
