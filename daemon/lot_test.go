package daemon

import "testing"

func woken(p *parked) bool {
	select {
	case <-p.woken:
		return true
	default:
		return false
	}
}

// TestLot wakes a call when all shards that it waits for have answered, and only
// then.
func TestLot(t *testing.T) {
	l := newLot()
	a, b := l.park(2), l.park(1)
	if a.ticket == b.ticket || a.ticket == 0 || len(a.owners) != 2 || l.size() != 2 {
		t.Fatalf("parked %+v and %+v", a, b)
	}
	l.expect(a, 1<<3|1<<63)
	l.answered(b.ticket, 3)
	l.answered(99, 3)
	l.answered(a.ticket, 3)
	l.answered(a.ticket, 3)
	if woken(a) || woken(b) {
		t.Error("woken before all have answered")
	}
	l.answered(a.ticket, 63)
	if !woken(a) || woken(a) {
		t.Error("not woken once")
	}
	l.expect(a, 1)
	l.answered(a.ticket, 0)
	l.expect(a, 1) // what came before does not count
	if woken(a) {
		t.Error("woken by an answer of the round before")
	}
	l.answered(a.ticket, 0)
	former := a.ticket
	l.leave(a)
	l.leave(b)
	if l.size() != 0 {
		t.Errorf("%d still there", l.size())
	}
	c := l.park(3)
	l.expect(c, 1)
	l.answered(former, 0)
	if woken(c) || c.ticket == former || len(c.owners) != 3 {
		t.Error("a place is not as good as new")
	}
}

// TestLotIsBounded turns away the call that is one too many.
func TestLotIsBounded(t *testing.T) {
	l := newLot()
	var all []*parked
	for range maxParked {
		p := l.park(1)
		if p == nil {
			t.Fatalf("full after %d", len(all))
		}
		all = append(all, p)
	}
	if l.park(1) != nil || l.full.Load() != 1 {
		t.Error("one more than fit")
	}
	for _, p := range all {
		l.leave(p)
	}
	if l.park(1) == nil || len(l.free) > maxFree {
		t.Error("not empty again")
	}
}
