package demo

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
)

func TestTrafficFollowsItsSeed(t *testing.T) {
	draw := func(seed uint64, step time.Duration) []Ask {
		tr := NewTraffic(500, 3, seed)
		var all []Ask
		for now := step; now <= 20*time.Second; now += step {
			asks, left := tr.Due(now, nil)
			if left > 0 {
				t.Fatalf("%d left out", left)
			}
			all = append(all, asks...)
		}
		slices.SortFunc(all, func(a, b Ask) int { return a.Rule*1000 + a.Key - b.Rule*1000 - b.Key })
		return all
	}
	a, b := draw(1, time.Millisecond), draw(1, 4*time.Second)
	count := func(all []Ask) (n [ruleCount]int) {
		for _, a := range all {
			n[a.Rule]++
		}
		return n
	}
	if count(a) != count(b) {
		t.Errorf("looked at every 1ms: %v, every 4s: %v", count(a), count(b))
	}
	if slices.Equal(a, draw(2, 4*time.Second)) {
		t.Error("another seed draws the same")
	}
}

func TestTrafficHasItsRates(t *testing.T) {
	const rate, lasts = 500, 70 * time.Second // ten bursts
	tr := NewTraffic(rate, 3, 1)
	var byRule [ruleCount]int
	byRegion := make([]int, 3)
	for now := time.Duration(0); now <= lasts; now += 100 * time.Millisecond {
		asks, _ := tr.Due(now, nil)
		for _, a := range asks {
			byRule[a.Rule]++
			byRegion[a.Region]++
			if a.Rule == burst && now%burstEvery > burstLasts+100*time.Millisecond {
				t.Fatalf("a burst at %v", now)
			}
			if a.Rule == steady && a.Region != a.Key%3 {
				t.Fatalf("%+v is not at home", a)
			}
		}
	}
	for rule, c := range crowds {
		want := c.share * rate * lasts.Seconds()
		if got := float64(byRule[rule]); math.Abs(got-want) > 6*math.Sqrt(want) {
			t.Errorf("rule %d: %v asks, want about %v", rule, got, want)
		}
	}
	for region, n := range byRegion {
		if want := rate * lasts.Seconds() / 3; math.Abs(float64(n)-want) > want/10 {
			t.Errorf("region %d: %d asks, want about %v", region, n, want)
		}
	}
}

func TestSurge(t *testing.T) {
	tr := NewTraffic(100, 1, 1)
	of := func(from, to time.Duration) (n int) {
		asks, _ := tr.Due(to, nil)
		for _, a := range asks {
			if a.Rule == spread {
				n++
			}
		}
		return n
	}
	usual := of(0, 10*time.Second) // 320
	tr.Surge(10*time.Second, spread, 10)
	surge := of(10*time.Second, 20*time.Second)
	tr.Surge(20*time.Second, spread, 0)
	none := of(20*time.Second, 30*time.Second)
	tr.Surge(30*time.Second, spread, 1)
	again := of(30*time.Second, 40*time.Second)
	if surge < 8*usual || surge > 12*usual || none != 0 || again < usual/2 || again > 2*usual {
		t.Errorf("usually %d, in the surge %d, at 0x %d, then %d", usual, surge, none, again)
	}
}

func TestTrafficThatPilesUpIsLeftOut(t *testing.T) {
	tr := NewTraffic(50_000, 3, 1)
	asks, left := tr.Due(10*time.Second, nil)
	if len(asks) != maxDue || left == 0 {
		t.Errorf("%d asks, %d left out", len(asks), left)
	}
	if asks, left := tr.Due(10*time.Second, asks); len(asks) != 0 || left != 0 {
		t.Errorf("then %d asks, %d left out", len(asks), left)
	}
}

func TestLimitsAreRead(t *testing.T) {
	for _, rate := range []int{0, 1, 500, maxTraffic} {
		all := NewRules(rate)
		all[spread].Budget, all[spread].HasBudget = 12_345, true
		all[login].Home = "eu"
		set, found := limits.Parse([]limits.File{{Name: "demo.yaml", Data: []byte(limitsText(all))}},
			limits.Options{Replicated: true, Regions: []string{"eu", "us"}, Daemons: 6, DaemonsOfRegion: 3})
		if err := found.Err(); err != nil || len(found.Warnings()) > 0 {
			t.Fatalf("%d/s: %v, warnings %v", rate, err, found.Warnings())
		}
		read := make(map[string]*rules.Limit)
		for _, r := range set.Rules() {
			if r.Limit != nil {
				read[r.Limit.Name] = r.Limit
			}
		}
		for i := range all {
			got := read[all[i].Name]
			if got == nil || got.Requests != all[i].Limit || got.Home != all[i].Home ||
				(got.Consistency == rules.Strict) != all[i].Strict ||
				got.Window() != all[i].Period().Milliseconds() || got.Budget != all[i].Budget {
				t.Errorf("%s is %+v", all[i].Name, got)
			}
		}
	}
}

func TestASurgeMayComeBeforeTheClientsBegin(t *testing.T) {
	c := &clients{traffic: NewTraffic(500, 3, 1)}
	c.surge(login, 10)
	asks, left := c.traffic.Due(time.Second, nil)
	if n := len(asks); n < 300 || n > 3000 || left > 0 {
		t.Errorf("%d asks in the first second, %d left out: want about 500", n, left)
	}
}
