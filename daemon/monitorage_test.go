package daemon

import (
	"testing"
	"time"
)

func TestAgeLog(t *testing.T) {
	a := ageLog{regions: make([]ageRing, 3)} // the own one, one that is heard, one where nobody lives
	asked := 0
	for i := range 1_000 {
		a.look(time.Duration(i)*250*time.Millisecond, func() []time.Duration {
			asked++
			return []time.Duration{0, time.Duration(asked) * 10 * time.Millisecond, -1}
		})
	}
	if asked != 250 {
		t.Errorf("looked %d times in 250 s, want once a second", asked)
	}
	if p50, p99, most := a.regions[1].quantiles(); p50 != 1_250 || p99 != 2_470 || most != 2_500 {
		t.Errorf("ages of 10 to 2500 ms: %d, %d and %d", p50, p99, most)
	}
	if p50, p99, most := a.regions[2].quantiles(); p50 != 0 || p99 != 0 || most != 0 || a.regions[2].seen {
		t.Errorf("of nobody: %d, %d and %d", p50, p99, most)
	}
	if age, _ := a.greatest(0, false); age != 2_500 {
		t.Errorf("the greatest age of others is %d", age)
	}
	if age, _ := a.greatest(0, true); age != 0 {
		t.Errorf("the greatest age inside is %d", age)
	}
	if a.since(1_000) || !a.since(1_500) { // 2.5 s old, and known to a second
		t.Error("heard 2.5 s ago")
	}
	a.look(time.Hour, func() []time.Duration { return []time.Duration{0, -1, -1} })
	if !a.since(0) {
		t.Error("a region that nobody lives in any more is waited for")
	}
	for i := range 2 * ageSeconds { // the old ones are forgotten
		a.look(2*time.Hour+time.Duration(i)*time.Second, func() []time.Duration { return []time.Duration{0, time.Second, -1} })
	}
	if age, _ := a.greatest(0, false); age != 1_000 {
		t.Errorf("the greatest age is still %d", age)
	}
}
