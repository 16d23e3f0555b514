package control

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestCuts cuts each set of the six directions between three voters. The first
// of them leads before. If two voters receive each other, entries are committed
// and the leader stays; if no two do, nothing is committed. Afterwards the log
// goes on.
func TestCuts(t *testing.T) {
	directions := [][2]int{{0, 1}, {1, 0}, {0, 2}, {2, 0}, {1, 2}, {2, 1}}
	for set := range 1 << len(directions) {
		cut, names := map[[2]int]bool{}, []string{}
		for i, d := range directions {
			if set&(1<<i) != 0 {
				cut[d] = true
				names = append(names, fmt.Sprintf("%dto%d", d[0], d[1]))
			}
		}
		pair := false
		for i := range 3 {
			j := (i + 1) % 3
			pair = pair || !cut[[2]int{i, j}] && !cut[[2]int{j, i}]
		}
		t.Run(strings.Join(names, "_"), func(t *testing.T) { logUnderCuts(t, cut, pair) })
	}
}

func logUnderCuts(t *testing.T, cut map[[2]int]bool, pair bool) {
	w := begin(t)
	place := map[*machine]int{w.leader(): 0}
	for _, m := range w.machines {
		if _, known := place[m]; !known {
			place[m] = len(place)
		}
	}
	w.cut = func(from, to *machine) bool { return cut[[2]int{place[from], place[to]}] }
	w.run(10 * time.Second)
	elected, gap := w.load(5*time.Second, func() { w.run(tick) })
	switch {
	case elected > 0:
		t.Errorf("a daemon became the leader %d times", elected)
	case pair && gap > time.Second:
		t.Errorf("nothing was committed for %v, although two voters receive each other", gap)
	case !pair && gap < 4*time.Second:
		t.Error("an entry was committed, although no two voters receive each other")
	}
	w.cut = func(_, _ *machine) bool { return false }
	w.until("a leader", 10*time.Second, func() bool { return w.leader() != nil })
	if r := w.submit(w.leader(), Change{Note: &Note{Text: "over"}}); r.Err != nil {
		t.Error(r.Err)
	}
	w.until("equal", 20*time.Second, w.equal)
}
