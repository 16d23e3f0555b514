package node

import (
	"slices"
	"time"
)

// watchClock compares this clock with the peers'. A wall clock that leapt ahead
// is believed when a majority has it too, and at once by a node that has no
// peers. A clock that more than half of the cluster contradicts is said to be
// off.
func (n *Node) watchClock(now time.Duration) {
	r := n.replica
	offsets := make([]int64, 0, len(r.offsets))
	for _, off := range r.offsets {
		offsets = append(offsets, off)
	}
	slices.Sort(offsets)
	n.watchJump(now, offsets)
	limit := n.cfg.maxOffset() * 4 / 5
	ahead, behind := 0, 0
	for _, off := range offsets {
		if off > limit {
			ahead++
		}
		if off < -limit {
			behind++
		}
	}
	outlier := 2*max(ahead, behind) > len(offsets)+1
	if outlier == r.outlier {
		return
	}
	r.outlier = outlier
	e := Event{At: now, Kind: ClockAgrees}
	if outlier {
		e.Kind = ClockOutlier
		median := offsets[len(offsets)/2]
		e.Amount = uint64(max(median, -median))
	}
	r.event(e)
}

func (n *Node) watchJump(now time.Duration, offsets []int64) {
	r := n.replica
	jump := n.clock.Held()
	if jump == 0 {
		r.held = false
		return
	}
	with := 0
	for _, off := range offsets {
		if off > jump.Milliseconds()/2 {
			with++
		}
	}
	amount := uint64(jump.Milliseconds())
	switch {
	case 2*with > len(offsets) || len(offsets) == 0:
		n.clock.AdoptJump()
		r.held = false
		r.event(Event{At: now, Kind: JumpAdopted, Amount: amount})
	case !r.held:
		r.held = true
		r.event(Event{At: now, Kind: JumpHeld, Amount: amount})
	}
}
