//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/internal/admitted"
)

// Daemons are killed in the middle of writes and start again, first one after
// the other and then with their promises lost, under three times the load of
// the limit. No window exceeds the budget.
func TestBudgetHoldsWhenDaemonsDie(t *testing.T) {
	t.Parallel()
	c := newCluster(t, loopback{}, 3, "us", "eu", "ap")
	tr := c.traffic(20, aim{bounded, "dying", 1})
	tr.fills(bounded, boundedLimit, 40*time.Second)
	for i, name := range []string{"us-0", "eu-1", "ap-2", "eu-0"} {
		d := c.daemon(name)
		d.die(t)
		time.Sleep(300 * time.Millisecond)
		if i == 3 { // its disk is gone: it joins as a new daemon
			if err := os.RemoveAll(c.file(d.name + "-state")); err != nil {
				t.Fatal(err)
			}
		}
		d.start(t)
		c.whole(patience)
		time.Sleep(5 * time.Second)
	}
	tr.stop()
	tr.served(c.daemons...)
	tr.keptTo(bounded, boundedLimit, boundedTotal)
}

// fills waits until a window of a rule is used up: then rights are shared out.
func (tr *traffic) fills(rule string, limit int, atMost time.Duration) {
	tr.cluster.t.Helper()
	tr.cluster.within(atMost, "a window of "+rule+" that is used up", func() string {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		used := func(w *admitted.Count) bool { return w.Rule == rule && w.Total >= limit*98/100 }
		if !slices.ContainsFunc(tr.account.Counts(), used) {
			return "none is"
		}
		return ""
	})
}

// keptTo fails the test unless no window of a rule admitted more than total,
// and one at least reached its limit.
func (tr *traffic) keptTo(rule string, limit, total int) {
	t := tr.cluster.t
	t.Helper()
	most, full, worst := 0, 0, ""
	for _, w := range tr.account.Counts() {
		if w.Rule != rule {
			continue
		}
		got := w.Total
		if got > total {
			t.Errorf("%d admitted of %v, want at most %d in every execution:\n%s", got, w.Window, total, list(w))
		}
		if got >= limit*98/100 {
			full++
		}
		if got > most {
			most, worst = got, fmt.Sprint(w.Window)
		}
	}
	if full == 0 {
		t.Errorf("no window of %s was used up, the fullest with %d of %d: the load proves nothing", rule, most, limit)
	}
	t.Logf("%d windows of %s used up; the fullest: %d admitted, %d allowed, at %s", full, rule, most, total, worst)
}
