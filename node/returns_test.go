package node

import (
	"testing"
	"time"

	"github.com/georld/rld/quota"
	"github.com/georld/rld/sticky"
)

// What comes back counts once, and only of the label that it was granted in, whatever
// the network says again.
func TestReturnsCountOnceAndOfTheirLabel(t *testing.T) {
	w := newStrictWorld(t, 1, stockRules, 3)
	d, home := w.stranger("some")
	d.node.cfg.Strict.Stock = 0 // what is granted is what is used
	w.slowly(d, "some", 6, 300*time.Millisecond)
	h := w.hit("some")
	label := w.at().Wall / int64(time.Millisecond) / h.Limit.Window() * h.Limit.Window()
	back := func(label int64, returned uint64) sticky.Ask {
		return sticky.Ask{
			Holder: d.node.Slot(), Home: home.node.Slot(), Key: h.Key, Rule: SharedRule(h.Rule),
			Label: label, Returned: returned,
		}
	}
	for _, tt := range []struct {
		name string
		ask  sticky.Ask
		left uint64
	}{
		{"of the label before", back(label-h.Limit.Window(), 2), 194},
		{"of the next label", back(label+h.Limit.Window(), 2), 194},
		{"more than was granted", back(label, 7), 194},
		{"two of six", back(label, 2), 196},
		{"once more", back(label, 2), 196},
		{"a sum that includes them", back(label, 5), 199},
		{"an older sum", back(label, 3), 199},
	} {
		home.node.Heed(w.at(home), &sticky.Message{From: d.node.Slot(), To: home.node.Slot(), Asks: []sticky.Ask{tt.ask}})
		led := home.node.ledgerAt(&h, false)
		if left := led.bank.row.Left(h.Limit, quota.Full(h.Limit), w.at().Wall/int64(time.Millisecond)); left != tt.left {
			t.Errorf("%s: %d are left, want %d", tt.name, left, tt.left)
		}
	}
}
