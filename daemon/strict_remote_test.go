package daemon

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// TestStrictRemote requests more than the limit from an owner of a distant
// region. Its denials arrive in time, and no circuit breaker opens.
func TestStrictRemote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := perMinute(5, rules.Deny)
		l.Home = "us"
		w := newStrictWorld(t, 1, strictRules(t, rules.Node{Key: "login", Limit: l}), "us", "eu")
		defer w.closeDisks()
		untilInto(5 * time.Second)
		passed := 0
		for i := range 40 {
			c := w.in("eu")[0].check(descriptor(1, "login", "bob"))
			if c.Decision.Allowed {
				passed++
			}
			if st := c.Statuses[0]; st.Degraded != node.NotDegraded {
				t.Fatalf("hit %d: %+v", i, st)
			}
			time.Sleep(200 * time.Millisecond)
		}
		if passed != 5 {
			t.Errorf("%d passed, want 5", passed)
		}
	})
}
