package overage

import (
	"testing"
	"time"
)

func TestViewLog(t *testing.T) {
	a := viewLog{regions: make([]viewRing, 3)} // the own region, a live one, and one without daemons
	samples := 0
	for i := range 1_000 {
		a.sample(time.Duration(i)*250*time.Millisecond, func() []view {
			samples++
			return []view{{}, {age: time.Duration(samples) * 10 * time.Millisecond}, {age: -1}}
		})
	}
	if samples != 250 {
		t.Errorf("%d samples in 250 s, want one a second", samples)
	}
	if p50, p99, most := a.regions[1].quantiles(); p50 != 1_250 || p99 != 2_470 || most != 2_500 {
		t.Errorf("ages of 10 to 2500 ms: %d, %d and %d", p50, p99, most)
	}
	if p50, p99, most := a.regions[2].quantiles(); p50 != 0 || p99 != 0 || most != 0 || a.regions[2].n > 0 {
		t.Errorf("without daemons: %d, %d and %d", p50, p99, most)
	}
	if age, _ := a.greatest(0, false); age != 2_500 {
		t.Errorf("the greatest age of other regions is %d", age)
	}
	if age, _ := a.greatest(0, true); age != 0 {
		t.Errorf("the greatest age of the own region is %d", age)
	}
	if a.since(1_000) || !a.since(1_500) { // 2.5 s old, to within a second
		t.Error("a view that is 2.5 s old")
	}
	a.sample(time.Hour, func() []view { return []view{{}, {age: -1}, {age: -1}} })
	if !a.since(0) {
		t.Error("a region without daemons makes others wait")
	}
	for i := range 2 * viewSeconds { // replace the old ones
		a.sample(2*time.Hour+time.Duration(i)*time.Second, func() []view { return []view{{}, {age: time.Second}, {age: -1}} })
	}
	if age, _ := a.greatest(0, false); age != 1_000 {
		t.Errorf("the greatest age is still %d", age)
	}
}
