// Package epoch decides which share of every window each participant holds. It
// never gives out more than the total: under any delay, loss, duplication or
// reordering of messages, clock skew, restart and network partition, the shares
// of one window sum to at most the total of one epoch. One type, Table, serves
// the regions (their amounts are parts per million of a rule's rights, with own
// shares for some rules) and the daemons of a region (their amounts are
// weights).
//
// # Rules
//
// An Epoch is an immutable vector of amounts. Epochs are totally ordered. Any
// participant may propose one; there is no leader, and an epoch that not all
// members acknowledge raises no share.
//
//   - Acknowledge, in ascending order only. An acknowledgement is the promise
//     to respect the epoch in every window not used yet. It is stored before it
//     is sent, and lists earlier promises.
//   - Settle. An epoch is settled for a window if its predecessor is, all its
//     members have acknowledged it for that window, and no participant it
//     leaves out can use an older epoch there: neither the predecessor, nor an
//     epoch that an acknowledging member had acknowledged before.
//   - The min rule. A share is the least amount of all known epochs from the
//     greatest settled one upward. So a decrease takes effect from the window
//     on for which the participant acknowledged it, and an increase waits for
//     proof that all others have decreased. This is the
//     demarcation protocol of Barbara and Garcia-Molina (1994), used to divide
//     escrow rights. An increase also waits for as long as the history of an
//     algorithm reaches back.
//   - Horizon. In an epoch with a horizon, a member may use its rights in a
//     window only if one third of the members plus one, with itself, extended
//     its horizon to that window. A member that acknowledges an epoch without
//     some participant extends that participant's horizon no more, and states
//     how far it ever did. After that window, the acknowledgement of a dead
//     participant is not needed. A member that reaches too few others loses its
//     rights after the horizon.
//   - Members without a disk extend nobody's horizon where others can, and need
//     the extensions of others also where only one or two have a disk. So when
//     all of them die at once, those with a disk reclaim their shares.
//   - Without a horizon, and in epochs of one or two members, a share is given
//     up only by the participant itself, or by an epoch that retires it. This
//     is safe only if the retirement is true: the participant must be dead, or
//     must never again admit in a window at or after the Retirement's From.
//
// Windows are compared by their start in Unix milliseconds, so that rules with
// different window lengths share one table. docs/adr/0011, 0012 and 0026
// describe the design.
//
// # Duties of the caller
//
// The caller stores and syncs every Record before anything that came with it is
// sent, and then calls Stored. It calls Extend early enough to stay ahead of
// the clock. It distributes epochs, acknowledgements and Claims in any way, and
// answers messages of other participants with ExtendHorizon. It calls Prune as
// windows end. A participant that lost its record starts under a new ID.
package epoch
