// Package transfer decides who asks whom for rights, and who gives how many.
//
// Rights are the amounts that a daemon may still admit of a key under a label
// without telling anyone. They are handed out in advance by shares, and traffic
// does not follow shares; donations move them to where the traffic is. The
// package decides and moves nothing: its caller charges a gift to the donor's
// own row, as a cumulative amount per donor and receiver, before a message
// exists, and merges such amounts by maximum (the bounded counter of Balegas
// et al., SRDS 2015, after O'Neil's escrow). A wrong decision here costs false
// denials or messages. It cannot cost the bound.
//
// # Inside a region
//
// A daemon that runs dry asks one sibling at a time (Asker), and the sibling
// answers at once with a gift that may be 0 (Giver). Both act on what was
// offered to them in the last tenths of a second (Rates).
//
// # Across regions
//
// One daemon of each region, its aggregator for the key, speaks for it. It
// publishes hunger before the region runs dry (Hunger), since a gift takes a
// round trip; the aggregators of the other regions answer with parts of their
// spare (Terms.Spare, Gift), collect them from the daemons that hold most
// (Collect), and the receiver hands them on (Split).
//
// # What was chosen
//
// Some of the policy could be read in more than one way; of the readings tried,
// these gave the fewest false denials for the messages. They are heuristics.
//
//   - The last ten ticks include the running one. Regions reckon with Rate, which
//     notices a burst within a tick or two.
//   - A sibling's believed gift is all his believed rights but one, or all of
//     them to an asker at 0. Among equals the next by id is asked.
//   - A refusal, or no answer, is remembered for half a second or until the
//     sibling is believed richer; at most four at a time. Most asks in vain come
//     when the whole region is at its end.
//   - Only silent donors heed a last call.
//   - The need of an aggregate key is 5/4 of its rate over the time left, within
//     the limit. Asking for just what is expected costs a second round trip; it
//     tripled the false denials of a moving hot spot in windows of 10 s.
//   - Hunger is told again when the need has doubled. Otherwise the first hits of
//     a burst set the need for a whole round trip.
//   - Collecting leaves a daemon what it was offered in the last second, and one
//     right.
//   - The floor of an entity key melts with the label as that of an aggregate.
//
// # Units
//
// Amounts are hits. Instants and times are in milliseconds of a clock of the
// daemon's own that starts at 0 or later; it should not step back, and if it
// does nothing breaks but the pace. Rates are hits in a second. All arithmetic
// is of integers and saturates: every input is valid, and there are no errors.
package transfer
