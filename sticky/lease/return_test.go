package lease

import (
	"testing"
	"time"

	"github.com/georld/rld/sticky"
)

// TestReturnsCountOnce repeats, reorders and forges returns: each right counts
// once, and only in the window it was granted in.
func TestReturnsCountOnce(t *testing.T) {
	w, d, owner := prefetchWorld(t, "some")
	d.table.cfg.Prefetch = 0 // every granted right is used
	w.slowly(d, "some", 6, 300*time.Millisecond)
	h := w.hit(descriptor("some", "x", 1))
	window := w.wall() - w.wall()%h.Rule.Limit.Window()
	back := func(window int64, returned uint64) sticky.LeaseRequest {
		return sticky.LeaseRequest{
			Lessee: d.id, Owner: owner.id, Key: h.Key, Rule: h.Rule.Shared(), Window: window, Returned: returned,
		}
	}
	for _, tt := range []struct {
		name    string
		request sticky.LeaseRequest
		left    uint64
	}{
		{"of the window before", back(window-h.Rule.Limit.Window(), 2), 194},
		{"of the next window", back(window+h.Rule.Limit.Window(), 2), 194},
		{"more than was granted", back(window, 7), 194},
		{"two of six", back(window, 2), 196},
		{"once more", back(window, 2), 196},
		{"a sum that includes them", back(window, 5), 199},
		{"an older sum", back(window, 3), 199},
	} {
		w.forge(d, owner, requests(tt.request))
		if left := w.leftAt(owner, h); left != tt.left {
			t.Errorf("%s: %d are left, want %d", tt.name, left, tt.left)
		}
	}
}

// TestLostReturnIsResent loses the message with a return.
func TestLostReturnIsResent(t *testing.T) {
	w, d, owner := prefetchWorld(t, "plenty")
	w.slowly(d, "plenty", 41, 300*time.Millisecond)
	if w.keeps(d, "plenty") == 0 {
		t.Fatal("no rights are kept")
	}
	w.loss = 1
	w.pass(12 * time.Second)
	w.loss = 0
	w.pass(10 * time.Second)
	if n := w.unused(owner, "plenty", 41); n > 0 {
		t.Errorf("%d rights are lost", n)
	}
}

// TestRefundOfALog refunds hits of a log in a later step: they count until the
// end of the step they were marked in.
func TestRefundOfALog(t *testing.T) {
	w := newUserWorld(t, "unit: second, requests_per_unit: 8, algorithm: sliding_log, consistency: strict", 3)
	x, owner, h := w.roles(descriptor("user", "bob", 1))
	call := func(n uint64) {
		c := w.ask(x, descriptor("user", "bob", n))
		for i := 0; i < 20 && !c.decided; i++ {
			w.pass(time.Millisecond)
		}
	}
	w.ask(owner, descriptor("user", "bob", 1))
	w.pass(1500 * time.Millisecond)
	w.hits[h.Key] = nil
	call(4)
	w.pass(500 * time.Millisecond)
	call(4)
	x.table.Refund(w.clocks(x), &h, false, w.hits[h.Key][0].at, 4)
	w.hits[h.Key] = w.hits[h.Key][1:]
	w.drain(x)
	call(4)
	w.pass(650 * time.Millisecond)
	for range 8 {
		w.ask(owner, descriptor("user", "bob", 1))
		w.pass(3 * time.Millisecond)
	}
	if w.sum(h.Key) < 4 {
		t.Errorf("%d hits admitted: the test proves nothing", w.sum(h.Key))
	}
	w.check(1)
}
