package overage

import (
	"math"
	"math/bits"
)

// A histogram has subBuckets buckets per octave, so a quantile is at most an
// eighth too high. Samples beyond maxSample count as maxSample.
const (
	subBits    = 3
	subBuckets = 1 << subBits
	maxSample  = 1<<32 - 1
	bucketsAll = (32-subBits)*subBuckets + subBuckets
)

// Histogram counts values in constant memory (1 KiB) and with a relative error
// of an eighth: view ages in milliseconds, or arrivals. The zero value is
// empty. It is not safe for concurrent use.
type Histogram struct {
	counts [bucketsAll]uint32 // stick at their maximum
	total  uint64
	max    uint64
}

// Add counts one sample.
func (h *Histogram) Add(v uint64) { h.add(v, 1) }

// add counts a sample that occurred times times.
func (h *Histogram) add(v, times uint64) {
	v = min(v, maxSample)
	c := &h.counts[bucketOf(v)]
	times = min(times, math.MaxUint32-uint64(*c))
	*c += uint32(times)
	h.total += times
	if times > 0 {
		h.max = max(h.max, v)
	}
}

// Quantile returns a value that at least the fraction q of the samples do not
// exceed, 0 without samples: the upper end of a bucket, and at most the
// greatest sample. q is clamped to 0..1.
func (h *Histogram) Quantile(q float64) uint64 {
	if h.total == 0 {
		return 0
	}
	q = min(max(q, 0), 1)
	want := max(uint64(math.Ceil(q*float64(h.total))), 1)
	seen := uint64(0)
	for i, c := range h.counts {
		seen += uint64(c)
		if seen >= want {
			return min(upperEnd(i), h.max)
		}
	}
	return h.max
}

// bucketOf returns the bucket of v. Values below subBuckets have their own
// bucket, others share one with all values of the same leading bits.
func bucketOf(v uint64) int {
	if v < subBuckets {
		return int(v)
	}
	shift := bits.Len64(v) - 1 - subBits
	return (shift+1)*subBuckets + int(v>>shift)&(subBuckets-1)
}

// upperEnd returns the greatest value of a bucket.
func upperEnd(bucket int) uint64 {
	if bucket < subBuckets {
		return uint64(bucket)
	}
	shift := bucket/subBuckets - 1
	lead := uint64(bucket%subBuckets + subBuckets)
	return (lead+1)<<shift - 1
}
