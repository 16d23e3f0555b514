package transfer

import "github.com/georld/rld/internal/sat"

// span turns a time into an unsigned one; negative times are 0.
func span(ms int64) uint64 {
	return uint64(max(ms, 0))
}

// waiting reports whether a pause of at most d that ends at until lasts. An end
// further off than d was set before the clock stepped back, and is over.
func waiting(now, until, d int64) bool {
	return now < until && until <= sat.AddInt(now, d)
}
