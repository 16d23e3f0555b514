package transfer

import "github.com/georld/rld/internal/sat"

// Shortage decides when the aggregator of a region announces that the region is
// short of rights to one key in one window. The zero value is ready for use; it
// is 16 bytes.
type Shortage struct {
	announced uint64 // The need announced last.
	until     int64  // Until then, only a need of twice that is announced.
}

// Announce returns the need to announce to the other regions now. It returns ok
// false if there is none or it was announced already. The pause between two
// announcements is a round trip and two ticks, the time until transfers arrive,
// and less in windows of few seconds, unless the need has doubled: at the start
// of a burst the first need is estimated from the first hits. That bounds the
// announcements within a pause to 64.
func (s *Shortage) Announce(now int64, t Policy, leftMS int64, r Region, room uint64) (need uint64, ok bool) {
	if !t.Short(leftMS, r) {
		return 0, false
	}
	need = t.Need(leftMS, r, room)
	if need == 0 || waiting(now, s.until, t.pauseMS()) && need/2 < s.announced {
		return 0, false
	}
	s.announced, s.until = need, sat.AddInt(now, t.pauseMS())
	return need, true
}
