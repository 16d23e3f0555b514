package node

import (
	"testing"
	"time"
)

// Given rights are gone, also for a key whose count is far from the limit: the
// donor has not received the others' counts yet.
func TestGivenRightsAreGone(t *testing.T) {
	c := &cluster{delay: time.Millisecond, wan: 5 * time.Millisecond, rights: true, cuts: map[[2]string]bool{}}
	for _, n := range []string{"a1", "a2", "b1", "c1"} {
		c.daemons = append(c.daemons, &daemon{name: n, region: n[:1]})
	}
	for _, d := range c.daemons {
		c.start(t, d)
	}
	c.put(t, "domain: d\ndescriptors:\n  - key: k\n    rate_limit: "+
		"{unit: second, unit_multiplier: 10, requests_per_unit: 9, algorithm: fixed_window, overage_budget: 34%}\n")
	a := &asker{c: c, admitted: map[int64]uint64{}}
	a1, b1, c1 := c.daemons[0], c.daemons[2], c.daemons[3]
	a.ask(t, a1, 2)
	c.pass(256 * time.Millisecond)
	a.ask(t, a1, 1)
	c.pass(15 * time.Millisecond)
	a.ask(t, b1, 2)
	a.ask(t, c1, 2)
	a.ask(t, a1, 60)
	if worst := a.worst(false); worst > 12 {
		t.Errorf("%v admitted, want at most 12", worst)
	}
}
