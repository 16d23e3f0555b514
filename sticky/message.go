package sticky

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/hlc"
)

// Message is what one daemon tells another about strict keys at one instant.
type Message struct {
	From, To crdt.Incarnation
	Stamp    hlc.Timestamp
	// Number is that of the layout the sender goes by.
	Number uint64
	// Voting says, in a message with layouts, that the sender is a replica and
	// votes under Number.
	Voting bool
	// Generation is, in a message with layouts, that of the sender.
	Generation       uint64
	Requests         []LeaseRequest
	Grants           []LeaseGrant
	Accepts          []Accept
	Accepted         []Accepted
	SnapshotRequests []SnapshotRequest
	SnapshotChunks   []SnapshotChunk
	Layouts          []Layout
}

// The bounds of a message.
const (
	MaxItems          = 1_024 // of each kind but pages and layouts
	MaxSnapshotChunks = 1
	MaxRecords        = 1_024 // of a page
	MaxLayouts        = 1
	// MaxWatermarks bounds the marks of a ledger: a log has one for each of its
	// steps that still matter.
	MaxWatermarks = 40
	// MaxReplicas bounds the replicas of a region.
	MaxReplicas = 9
)

// LeaseRequest is a holder's wish for rights of a ledger. Its ID makes it count once: a
// home that has answered one of a holder with the same ID or a later one grants
// nothing more for it, and answers how things stand.
type LeaseRequest struct {
	// ID is the holder's, ascending, and comes back in the grant. 0 is for an ask
	// that only gives rights back and wants no answer.
	ID uint64
	// Lessee is whom the grant is for: the sender, unless the ask was passed on.
	Lessee crdt.Incarnation
	// Owner is whose grants Returned counts, 0 for none.
	Owner crdt.Incarnation
	// Key names the ledger; Rule is the rule as daemons name it to each other.
	Key  crdt.Key
	Rule uint64
	// Reserve says that the ledger is that of a region's floor. Its Key is the
	// floor's own.
	Reserve bool
	// Window is that of the grants that Returned counts; of windows also the one
	// that rights are wanted of, of a bucket or log the home says which.
	Window int64
	// Want is how many rights are wanted, and Extra how many more the holder has
	// use for. Fewer than Need are of no use and are not granted. A Want of 0 asks
	// how things stand.
	Want, Need, Extra uint64
	// Prefetch is how many more the holder would keep for a time, so that calls that
	// come now and then need not ask: of rights that nobody is short of.
	Prefetch uint64
	// Returned sums up what the holder gave back of Owner's grants in Window.
	Returned uint64
	// Within is for how long a grant must be usable, in milliseconds.
	Within uint32
	// Hops counts the daemons that passed it on.
	Hops uint8
}

// Why is the reason for what was not answered, or not voted for.
type Why uint8

// The reasons.
const (
	NoWhy Why = iota
	// NotOwner: the daemon asked is not home and knows of none.
	NotOwner
	// NoMajority: too few replicas can be reached, or have not answered in time.
	NoMajority
	// WindowOver: the label has ended for the home.
	WindowOver
	// UnknownRule: the home has no such rule in force.
	UnknownRule
	// Full: there is no room for another ledger.
	Full
	// Outvoted: another home has a higher ballot, or consumed what the raise does
	// not know of.
	Outvoted
	// OtherLayout: who is asked goes by another layout.
	OtherLayout
	// NotVoting: the replica has lost its memory and not copied that of the others yet.
	NotVoting
	// Ended: the marks are of labels that are over.
	Ended

	// MaxWhy is the greatest of them.
	MaxWhy = Ended
)

var whyNames = [...]string{"", "not_owner", "no_majority", "window_over", "unknown_rule", "full", "outvoted", "other_layout", "not_voting", "ended"}

// String returns the name that logs and metrics carry.
func (w Why) String() string {
	if int(w) >= len(whyNames) {
		return "unknown"
	}
	return whyNames[w]
}

// LeaseGrant is a home's answer to an ask.
type LeaseGrant struct {
	// ID is that of the ask. A later grant of the same label replaces it.
	ID    uint64
	Owner crdt.Incarnation
	// Round is that of the home's ballot.
	Round   uint64
	Key     crdt.Key
	Rule    uint64
	Reserve bool
	// Window is the label that the rights are of. Until is when they end on the
	// holder's clock, in Unix milliseconds.
	Window, Until int64
	// Total is what all grants of Owner to the holder in Window sum to.
	Total uint64
	// Denied says that there are no more for now, Retry after how many
	// milliseconds to ask again, Never that waiting does not help.
	Denied bool
	Never  bool
	Retry  int64
	// Remaining is what is left beyond what was granted, Reset the
	// milliseconds until all is available again.
	Remaining uint64
	Reset     int64
	// Keep is how much of what the holder has it may keep for calls that come now
	// and then: its part of what all may.
	Keep uint64
	// Why is set when the home could not say: then nothing else is.
	Why Why
}

// Ballot orders the homes of a ledger; the greater prevails.
type Ballot struct {
	Round uint64 // at most MaxRound
	Owner crdt.Incarnation
	// Term counts the keepers that Owner has begun, so that one which forgot a
	// ledger and begins it anew does not pass for the one before.
	Term uint64
}

// MaxRound bounds the rounds of ballots: who took the last one could never be
// outvoted.
const MaxRound = 1 << 62

// Less reports whether b is below o.
func (b Ballot) Less(o Ballot) bool {
	if b.Round != o.Round {
		return b.Round < o.Round
	}
	return b.Owner < o.Owner || b.Owner == o.Owner && b.Term < o.Term
}

// Watermark says that up to Amount may have been consumed of a label. Nobody needs
// to know from End on, in Unix milliseconds.
type Watermark struct {
	Window int64
	Amount uint64
	End    int64
}

// Watermarks are those of one ledger, by label, each label once, at most MaxWatermarks.
type Watermarks []Watermark

// Accept is a home's wish that a replica hold marks under its ballot.
type Accept struct {
	Key    crdt.Key
	Ballot Ballot
	// Seq is the home's number for it, and comes back in the vote.
	Seq uint64
	// Known is what the home counts as consumed by others: a replica that has
	// more under a lower ballot refuses.
	Known      Watermarks
	Watermarks Watermarks
}

// Accepted is a replica's answer to a raise.
type Accepted struct {
	Key    crdt.Key
	Ballot Ballot // of the raise
	Seq    uint64 // of the raise
	// Voter is the replica, see NameHash.
	Voter uint64
	// OK says that the marks are held durably under the ballot.
	OK  bool
	Why Why
	// Promised and Held are what the replica has, when it refused.
	Promised Ballot
	Held     Watermarks
	// Generations are those of the replicas as the voter knows them, its own among
	// them: a vote of an earlier life of one of them does not count beside it.
	Generations []Generation
}

// Generation numbers the times that a replica had lost its memory.
type Generation struct{ Voter, Generation uint64 }

// SnapshotRequest asks a replica for all it holds, page by page. The layout that it is
// for is in the same message.
type SnapshotRequest struct {
	// Voter and Generation are those of who asks.
	Voter, Generation uint64
	// Number is the layout that it wants to vote under. When the replica goes by
	// the one before, it seals that first: it never votes under it again.
	Number uint64
	// After is the last key of the page before, Begin that there was none.
	After crdt.Key
	Begin bool
}

// SnapshotChunk answers a SnapshotRequest.
type SnapshotChunk struct {
	Voter   uint64 // who answers
	Number  uint64 // of the Copy
	After   crdt.Key
	Begin   bool
	Why     Why // it cannot; the rest is empty then
	Records []Record
	Last    bool
	// Ended is the replica's: marks that ended before are forgotten.
	Ended       int64
	Generations []Generation
}

// Record is what a replica holds of one ledger.
type Record struct {
	Key        crdt.Key
	Ballot     Ballot // promised; its Home is 0 when it was raised by a copy
	Watermarks Watermarks
	// Ended is the instant before which ended marks of this ledger were let go,
	// in Unix milliseconds: raises of them are refused.
	Ended int64
}

// Layout says who may be home of what. It changes by numbered steps only.
type Layout struct {
	Number  uint64
	Regions []Region // by name
	Pins    []Pin    // by rule
}

// Region is a region that keys may be at home in.
type Region struct {
	Name string
	// Weight is in proportion to how many keys are at home here.
	Weight uint32
	// Replicas are the names of the daemons that hold its marks, sorted. Of
	// another region they are hearsay; empty when nothing was heard.
	Replicas []string
	// Former are those of the layout before, empty in the first one.
	Former []string
	// Generations are those of Replicas when the layout was made, where they were not
	// 0: a replica of a later life may have voted under it and not know.
	Generations []Generation
}

// Pin names the home region of a rule.
type Pin struct {
	Rule   uint64 // rules.ID
	Region string
}

// Entry is something a replica stores; exactly one field is set. Entries are
// appended in order, and are good only when all before them are stored too.
type Entry struct {
	Record *Record
	Layout *Layout // replaces the one in force
	Next   *Layout // sealed in favor of: no votes under the one in force from here on
	Meta   *Meta
}

// Meta is what a replica stores beside ledgers and layouts.
type Meta struct {
	Generation uint64
	// Voting is false from a loss of memory to the end of the copy.
	Voting bool
	// Ended is the instant before which ended marks are forgotten, in Unix
	// milliseconds: raises of such labels are refused.
	Ended       int64
	Generations []Generation
}

// Stored is all that a replica has stored: the sum of its entries.
type Stored struct {
	Meta    Meta
	Layout  Layout
	Next    *Layout
	Records []Record // each key once, in any order

	index map[crdt.Key]int // of Records by key, while entries are applied
}
