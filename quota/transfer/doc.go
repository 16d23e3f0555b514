// Package transfer decides which daemon requests rights of which, and how many
// rights a donor transfers.
//
// Rights are the hits that a daemon may admit for a key in a window on its own.
// They are allotted in advance by shares, and traffic does not follow shares;
// transfers move the rights to the traffic. The package decides and sends
// nothing itself: its caller charges a transfer to the donor's account, as a
// cumulative amount per donor and receiver, before a message about it exists,
// and merges such amounts by maximum. This is the bounded counter of Balegas et
// al. (SRDS 2015), after the escrow method of O'Neil (1986); docs/adr/0010
// describes how rld uses it. A wrong decision costs false denials or messages.
// It cannot exceed the bound.
//
// # State machine
//
// Key is one daemon's part for one key. A call passes an Input, the state of
// the key at that time, and returns an Output: transfers to make and messages
// to send. Messages are sent once; a lost one is replaced by a later one.
//
//	hit offered      Offer, Check    TransferRequest, NeedReport, ShortageNotice
//	counts arrived   Review          ShortageNotice (aggregator)
//	message arrived  Step            transfers, TransferRefusal, CollectRequest
//	rights arrived   Received        transfers to daemons in need
//	Output.Wake      Review          transfers to regions that expect a shortage
//
// # Inside a region
//
// A daemon that is about to run short requests rights of one regional peer at a
// time (Requester). The peer replies at once with a transfer or a refusal
// (Donor). Both decide by the hits offered to them in the last second (Rates).
//
// # Across regions
//
// One daemon of each region is the aggregator of the key. It announces a
// shortage before the region runs out of rights (Shortage), since a transfer
// needs a round trip. The aggregators of the other regions transfer parts of
// their spare rights (Policy.Spare, Policy.Transfer) and collect them from the
// daemons with most rights (Collect). The receiver splits them over the daemons
// in need (Split).
//
// In windows that are too short for a round trip (Policy.Open), it announces
// the shortage that it forecasts for the next window, and the others transfer
// as that begins (outlook). It does so while such forecasts come true more
// often than not.
//
// # Chosen heuristics
//
// Several variants were tried in simulation. These caused the fewest false
// denials for their messages.
//
//   - The last ten ticks include the current one. Regions use Rate, which
//     detects a burst within one or two ticks.
//   - A peer is expected to transfer all its rights but one, and its last one
//     to a requester without rights. Among equals the next by id is asked.
//   - A refusal or a missing reply is remembered for half a second, or until
//     the peer is believed to have received rights; at most four are
//     remembered. Most requests fail when the whole region is near its end.
//   - Only donors without traffic transfer their last right.
//   - The need is 5/4 of the rate over the next ten seconds or the rest of the
//     window, within the limit. Requesting just the expected demand costs a
//     second round trip and tripled the false denials of a moving hot spot in
//     windows of 10 s. Requesting the rest of the limit, as entity keys once
//     did, made the rights go round between daemons that all receive hits, 100
//     times the limit in a window of a minute, and lost most of them with the
//     daemon that had received them last.
//   - A shortage is announced again once the need has doubled. Otherwise the
//     first hits of a burst would decide the need for a whole round trip.
//   - Collecting leaves a daemon the hits of its last second and one right.
//   - In windows of less than 4 s, a quarter of the window takes the place of a
//     second: what a burst of the last window used is no reason to keep
//     rights.
//     A shortage is announced again after a twentieth of the window, since
//     there is no time for a second round trip.
//   - Expected shortages are met as late as the rights arrive in time, at most
//     two ticks after the start: the region in which the load is now has
//     noticed it by then, and keeps its rights. It saved a third of the false
//     denials of a hot spot that moves.
//   - The reserve of an entity key shrinks with the rest of the window, like
//     that of an aggregate key.
//
// # Units
//
// Amounts are hits. Times are in milliseconds of a monotonic clock of this
// process that starts at 0 or later. If that clock steps back, only the pace
// changes. Rates are hits per second. All arithmetic is on integers and
// saturates: every input is valid, and there are no errors.
package transfer
