// Package hlc is the time of rld: 64-bit hybrid logical timestamps, and the
// clock that makes them.
//
// A Timestamp is 48 bits of Unix milliseconds and a 16-bit counter. The stamps
// of one Clock strictly increase, and each is greater than every stamp of a
// peer observed before it. So a cause always has a smaller stamp than its
// effect.
//
// # The physical reading
//
// The Clock does not read time. Its caller passes an Instant: a monotonic and a
// wall reading taken together. From these it keeps one physical reading that
// never decreases:
//
//	reading = max(wall, line)
//
// The line starts at the last point where reading and wall met, and runs at the
// monotonic rate less 1/SlewDivisor. Three properties follow.
//
//   - While the wall clock behaves, reading and wall are the same number. Wall
//     readings that jitter by microseconds, or that run a little slower than
//     the monotonic clock, hold the reading up only while the jitter lasts:
//     line falls behind every wall clock that loses less than 1/SlewDivisor.
//   - When the wall clock steps back, the reading continues along line: windows
//     keep advancing and never repeat. Offset is the lead of the reading over
//     the wall. The two meet again after Offset * SlewDivisor.
//   - When the wall clock steps forward, the reading follows at once, unless
//     HoldJumps is set. Steps counts it for the driver to report.
//
// Window starts are cut from Clock.Millis: the reading, or the latest observed
// stamp if that is greater. A peer's stamp is observed only if it is at most
// MaxOffset ahead of the reading, so that no single fast clock ends the windows
// of all daemons early. Hence, whatever the wall does:
//
//	wall <= Millis <= wall + Offset + MaxOffset
//
// in whole milliseconds, plus one for each millisecond whose counter ran full.
package hlc
