package transfer

import "github.com/georld/rld/internal/sat"

// Shortage is the publishing of one region's hunger for one key under one label,
// by its aggregator. The zero value is ready; it is 16 bytes.
type Shortage struct {
	told  uint64 // The need published last.
	until int64  // No publication of a need that is not twice that before.
}

// Publish returns the need to tell the other regions at once; ok is false if
// there is none or it has been told. Gifts take a round trip and two ticks, and
// for so long hunger is not told again, unless the need has doubled: where a
// burst has just begun, the first need was reckoned from its first hits. Within
// a pause that is at most 64 publications.
func (h *Shortage) Publish(now int64, t Policy, leftMS int64, r Region, room uint64) (need uint64, ok bool) {
	if !t.Short(r) {
		return 0, false
	}
	need = t.Need(leftMS, r, room)
	if need == 0 || waiting(now, h.until, t.answer()) && need/2 < h.told {
		return 0, false
	}
	h.told, h.until = need, sat.AddInt(now, t.answer())
	return need, true
}
