package agent

import (
	"math"
	"slices"
	"testing"
	"time"
)

// TestHolders: the daemons of a region that may hold rights are its members
// until the horizon of those that died is over. A daemon that nobody extends
// knows when its rights end, and then does not know who holds them.
func TestHolders(t *testing.T) {
	r := newRig(t, 1, 3, 1)
	r.boot()
	r.run(5 * time.Second)
	ids := func(names ...string) (out []uint64) {
		for _, name := range names {
			out = append(out, r.find(name).id())
		}
		slices.Sort(out)
		return out
	}
	a1, dead := r.find("a1"), r.find("a3")
	for _, name := range []string{"a1", "a2", "a3"} {
		if got := Holders(r.find(name).Agent); !slices.Equal(got, ids("a1", "a2", "a3")) {
			t.Errorf("%s: holders %v", name, got)
		}
	}
	if end := Held(a1.Agent) - r.now(a1); end < 20_000 || end > 30_000 {
		t.Errorf("rights end in %d ms, want about the horizon", end)
	}
	if b := r.find("b1"); Held(b.Agent) != math.MaxInt64 || !slices.Equal(Holders(b.Agent), ids("b1")) {
		t.Errorf("a daemon without a horizon: end %d, holders %v", Held(b.Agent), Holders(b.Agent))
	}
	r.crash(dead)
	r.run(25 * time.Second)
	if got := Holders(a1.Agent); !slices.Contains(got, dead.id()) {
		t.Errorf("holders %v within the horizon of a dead daemon", got)
	}
	r.until(20*time.Second, "the dead daemon is none of the holders", func() bool {
		return slices.Equal(Holders(a1.Agent), ids("a1", "a2"))
	})
	r.restart(dead, false)
	r.until(20*time.Second, "it is one of them again", func() bool { return slices.Equal(Holders(a1.Agent), ids("a1", "a2", "a3")) })
	r.run(5 * time.Second)

	r.crash(r.find("a2"))
	r.crash(dead)
	end := Held(a1.Agent)
	r.run(40 * time.Second)
	if Held(a1.Agent) > end+1_000 || Held(a1.Agent) > r.now(a1) || Holders(a1.Agent) != nil {
		t.Errorf("alone: rights end at %d, %d before; holders %v", Held(a1.Agent), end, Holders(a1.Agent))
	}
}
