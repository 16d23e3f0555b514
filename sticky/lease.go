package sticky

import "github.com/georld/rld/crdt"

// LeaseRequest asks the owner of a key for rights. The owner grants at most
// once per ID and lessee: a repeated or older ID is answered with the current
// state and grants nothing.
type LeaseRequest struct {
	// ID ascends per lessee and comes back in the grant. A request with ID 0
	// only returns rights and is not answered.
	ID uint64
	// Lessee is the daemon that the grant is for: the sender, unless the
	// request was forwarded.
	Lessee crdt.Incarnation
	// Owner is the daemon whose grants Returned counts, 0 for none.
	Owner crdt.Incarnation
	// Key is the key of the owner's entry. Rule is the shared name of the rule.
	Key  crdt.Key
	Rule uint64
	// Reserve reports that the request is for the regional reserve of a key.
	// The reserve has a Key of its own.
	Reserve bool
	// Window is the window of the grants that Returned counts. For fixed and
	// sliding windows it is also the window of the rights wanted; for buckets
	// and logs the owner picks that one.
	Window int64
	// Want is the number of rights the lessee wants, Need the least number of
	// use to it: the owner grants none when fewer than Need are left. A request
	// with Want 0 only asks for the state.
	Want, Need uint64
	// Extra is how many more rights the lessee has use for at its current rate.
	Extra uint64
	// Prefetch is how many more rights the lessee may keep for later calls if
	// nobody else is short.
	Prefetch uint64
	// Returned is the sum of the rights that the lessee returned of Owner's
	// grants in Window.
	Returned uint64
	// Within is how long a grant must stay usable, in milliseconds.
	Within uint32
	// Hops counts the daemons that forwarded the request.
	Hops uint8
}

// LeaseGrant is the owner's answer to a LeaseRequest.
type LeaseGrant struct {
	// ID is the ID of the request. A later grant of the same window replaces
	// an earlier one.
	ID    uint64
	Owner crdt.Incarnation
	// Round is the round of the owner's ballot.
	Round   uint64
	Key     crdt.Key
	Rule    uint64
	Reserve bool
	// Window is the window of the rights. Until is when they end on the
	// lessee's clock, in Unix milliseconds.
	Window, Until int64
	// Total is the sum of all grants of Owner to the lessee in Window.
	Total uint64
	// Denied reports that no more rights are left for now. Retry is how long to
	// wait before the next request, in milliseconds; Never reports that waiting
	// does not help.
	Denied bool
	Never  bool
	Retry  int64
	// Remaining is the number of rights left after the grant, Reset the
	// milliseconds until all rights are available again.
	Remaining uint64
	Reset     int64
	// Keep is how many unused rights the lessee may keep for later calls: its
	// part of the rights that all lessees may keep.
	Keep uint64
	// Reason is set when the owner cannot answer. Then nothing else is set.
	Reason Reason
}
