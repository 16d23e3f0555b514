package node

import (
	"testing"
	"time"

	"github.com/georld/rld/quota"
	"github.com/georld/rld/sticky"
)

// What comes back counts once, and only of the label that it was granted in, whatever
// the network says again.
func TestReturnsCountOnceAndOfTheirWindow(t *testing.T) {
	w := newStrictWorld(t, 1, prefetchRules, 3)
	d, owner := w.stranger("some")
	d.node.cfg.Strict.Prefetch = 0 // what is granted is what is used
	w.slowly(d, "some", 6, 300*time.Millisecond)
	h := w.hit("some")
	window := w.at().Wall / int64(time.Millisecond) / h.Limit.Window() * h.Limit.Window()
	back := func(window int64, returned uint64) sticky.LeaseRequest {
		return sticky.LeaseRequest{
			Lessee: d.node.Incarnation(), Owner: owner.node.Incarnation(), Key: h.Key, Rule: SharedRule(h.Rule),
			Window: window, Returned: returned,
		}
	}
	for _, tt := range []struct {
		name string
		ask  sticky.LeaseRequest
		left uint64
	}{
		{"of the label before", back(window-h.Limit.Window(), 2), 194},
		{"of the next label", back(window+h.Limit.Window(), 2), 194},
		{"more than was granted", back(window, 7), 194},
		{"two of six", back(window, 2), 196},
		{"once more", back(window, 2), 196},
		{"a sum that includes them", back(window, 5), 199},
		{"an older sum", back(window, 3), 199},
	} {
		owner.node.StepLease(w.at(owner), &sticky.Message{From: d.node.Incarnation(), To: owner.node.Incarnation(), Requests: []sticky.LeaseRequest{tt.ask}})
		led := owner.node.ledgerAt(&h, false)
		if left := led.bank.row.Left(h.Limit, quota.Of(h.Limit).Full(), w.at().Wall/int64(time.Millisecond)); left != tt.left {
			t.Errorf("%s: %d are left, want %d", tt.name, left, tt.left)
		}
	}
}
