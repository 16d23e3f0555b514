// Package hlc is the time of rld: 64-bit hybrid logical timestamps and the
// clock that makes them.
//
// A Timestamp is 48 bits of Unix milliseconds and a 16-bit counter. Stamps of
// one Clock strictly increase, and a stamp made after a peer's stamp was
// observed is greater than that one, so what causes has the smaller stamp.
//
// # The physical reading
//
// The Clock does not read time, it is handed an Instant: a monotonic and a
// wall reading taken together. From these it keeps one physical reading that
// never decreases:
//
//	reading = max(wall, line)
//
// where line runs through the last point at which reading and wall met, at the
// monotonic rate less 1/SlewDivisor. Three things follow.
//
//   - While the wall clock behaves, reading and wall are the same number. Wall
//     readings that jitter by microseconds, or run a little slower than the
//     monotonic clock, hold the reading up for as long as the jitter lasts and
//     no longer, because line falls behind every wall clock that does not lose
//     more than 1/SlewDivisor.
//   - When the wall clock steps back, the reading goes on along line: labels
//     keep rolling and never repeat. Offset says how far the reading stands
//     ahead of the wall. They meet after Offset * SlewDivisor.
//   - When the wall clock steps forward, the reading follows at once. A daemon
//     alone has nobody to ask whether the step is true; it is counted in Steps
//     for the driver to report.
//
// Labels of windows are taken from Clock.Millis, which is the reading or the
// latest observed stamp, whichever is greater. A peer's stamp is observed only
// when it is at most MaxOffset ahead of the reading, so that no single fast
// clock drags everybody's windows over early. Hence, whatever the wall does:
//
//	wall <= Millis <= wall + Offset + MaxOffset
//
// in whole milliseconds, plus one whenever the counter of a millisecond ran full.
package hlc
