// Package lease grants and uses rights to strict keys.
//
// Each key of a strict limit has one owner, the only daemon that consumes the
// limit. A daemon with a call for a key that it does not own leases rights from
// the owner until the window ends, and admits hits from its lease:
//
//	caller        lessee: Table            owner: Table         strict voters
//	  | Probe -------> |                        |                     |
//	  | <---- Pending  |                        |                     |
//	  | Request -----> | --- LeaseRequest ----> | ----- Accept -----> |
//	  |                |                        | <---- Accepted ---- |
//	  | <--- answered  | <---- LeaseGrant ----- |                     |
//	  | Probe -------> |                        |                     |
//	  | <--- Admitted  |                        |                     |
//	  | Spend, Cancel  |                        |                     |
//
// A call at the owner waits for the watermark in the same way, without the
// request and the grant. Most calls do not wait: a lease holds rights for the
// next calls too (see prefetch), and a denial is believed for a while.
//
// A Table is a pure state machine of one shard: each method gets the time,
// messages and tickets to wake come out of Ready. Both roles share a table, so
// one entry of it may have a lease, as a lessee, and an owner state, after this
// daemon became the owner.
//
// Invariants:
//
//   - An owner grants and spends only below a watermark that a majority of the
//     strict voters has on disk, and only after it counts the watermarks of all
//     owners before it.
//   - Grants and returns are sums per owner, lessee and window, so messages may
//     be lost, repeated and reordered.
//   - A lessee uses rights of the window they were granted for only, and never
//     again after it returned them.
//   - The regional reserve of a key (on_failure: share) is an entry of its own,
//     whose limit the key's limit is reduced by.
package lease
