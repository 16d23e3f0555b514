package transfer

import "github.com/georld/rld/internal/sat"

// span returns a duration as an unsigned number, 0 for negative ones.
func span(ms int64) uint64 { return uint64(max(ms, 0)) }

// waiting reports whether a pause of at most d that ends at until still lasts.
// An end farther away than d was set before the clock stepped back; such a
// pause is over.
func waiting(now, until, d int64) bool {
	return now < until && until <= sat.AddInt(now, d)
}
