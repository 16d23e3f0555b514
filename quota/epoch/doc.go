// Package epoch decides who holds which share of every label, and never gives
// out more than there is: under any delay, loss, repetition, reordering, skew
// of clocks, restart and cut, the shares of one label sum to at most the total
// of one epoch. One Table serves regions (their amounts are parts per million of
// a rule's rights, with a row for each rule that is shared in its own way) and
// the daemons of a region (their amounts are weights).
//
// # The rules
//
// An Epoch is an immutable vector of amounts. Epochs are totally ordered, and
// anybody may propose one; there is no vote and no leader, and one that not
// all acknowledge raises nobody.
//
//   - Acknowledge, in ascending order only: the promise to take the epoch into
//     account in every label not used yet. It is stored before it is sent, and
//     it tells what was promised before it.
//   - Settle: an epoch is settled for a label when its predecessor is, all its
//     members have acknowledged it for that label, and nobody who is left out
//     can use an older epoch there: of the predecessor, or of any that one who
//     acknowledged had acknowledged before.
//   - Use the least amount of all known epochs from the greatest that is
//     settled upward. So lowering is immediate, and raising waits for proof
//     that all others have lowered (the demarcation protocol of Barbara and
//     Garcia-Molina). Where an algorithm's history reaches back, a raise waits
//     for that long too.
//   - Horizon: in an epoch with one, base rights of a label may be used only
//     with the grants of a third of the members and one, the user among them.
//     Whoever acknowledges an epoch that leaves somebody out grants it nothing
//     under older ones any more, and says how far it ever did; so after that
//     label the acknowledgement of one that died is not needed. A member that
//     hears fewer loses its base after the horizon.
//   - Without a horizon, and in epochs of one or two members, only the
//     participant itself gives up its share, or an operator by an epoch that
//     retires it. That is safe only because, and only if, the operator is
//     right: the participant must be dead, or must never again admit under a
//     label at or after the Retirement's From.
//
// All labels are compared by their start, in Unix milliseconds, so that rules
// of different widths share one table.
//
// # What the caller does
//
// It stores every Record and syncs it before what came with it leaves, and
// then calls Stored; keeps Extend ahead of the clock; spreads epochs,
// acknowledgements and Reports as it likes; answers signs of life with Grants;
// and calls Prune as labels end.
package epoch
