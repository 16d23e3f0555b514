// Package swim knows who lives in this daemon's region: a membership list with
// failure detection, kept by hashicorp/memberlist over UDP and TCP. It carries
// nothing else; counters travel over the streams of package link.
//
// What this package adds to memberlist:
//
//   - A loop that joins again. memberlist forgets a member that was dead for
//     half a minute and never asks for it again, so a longer cut would last
//     forever. Here each daemon asks its seeds again until all of them are
//     members.
//   - A claim before a daemon is heard. A daemon first asks its seeds who
//     holds its name and joins only if nobody else does, so that a second
//     daemon of the same name learns of its mistake and the first one stays.
//   - Refusals that are counted and said once: see Refusals.
//   - Bounds: on members, on the streams that others open, on what one of them
//     may send, and on the goroutines that are left after Close.
//
// Whoever holds a key is trusted to be a member; who has none is kept out.
package swim
