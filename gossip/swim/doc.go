// Package swim maintains the membership of this daemon's region: a list with
// failure detection, by hashicorp/memberlist over UDP and TCP. It carries
// nothing else; counters travel over the streams of package link.
//
// This package adds to memberlist:
//
//   - Rejoining. memberlist forgets a member that was dead for half a minute
//     and never contacts it again, so a longer network partition would last
//     forever. Here each daemon contacts its seeds until all of them are
//     members.
//   - Unique names. A daemon first asks its seeds for the holder of its name
//     and joins only if there is none. So a second daemon of one name learns
//     of the mistake, and the first one stays.
//   - Refusals that are counted and logged once: see Stats.
//   - Bounds: on members, on incoming streams and their bytes, and on the
//     goroutines that remain after Close.
//
// A daemon with a key is trusted as a member; one without a key is refused.
package swim
