package transfer

import (
	"testing"

	"github.com/georld/rld/rules"
)

// A row is one line of the table that the policy was chosen by: mean false
// denials in percent with 1, 3 and 10 daemons per region, the worse of traffic
// sprayed over them and pinned to one, at a window length and a delay between
// regions. Counts are half a second old on average.
type row struct {
	seconds, wan int64 // Window in seconds; one way in milliseconds.
	budget       rules.PPM
	pattern      string
	want         [3]float64
	why          string // Why ours is allowed to differ.
}

// stranded is the reason that a hard partition of a minute denies more of
// bursts than an earlier policy: a burst that ends in the middle of the window
// was denied the reserve of the silent regions. Without any reserve the result
// would be 0.1 % (and solo worse). It depends on the ends of bursts.
const stranded = "floors left behind by bursts that end early"

const ten = rules.Whole / 10

var table = []row{
	{60, 500, ten, "bursty1.2", [3]float64{0, 0, 0}, ""},
	{60, 500, ten, "moving0.8", [3]float64{.2, .2, .2}, ""},
	{60, 500, ten, "solo", [3]float64{20, 18, 19}, ""},
	{60, 500, ten, "smooth1.5", [3]float64{.2, .2, .2}, ""},
	{60, 500, ten, "attack20", [3]float64{.2, .2, .2}, ""},
	{60, 80, ten, "bursty1.2", [3]float64{0, 0, 0}, ""},
	{60, 80, ten, "moving0.8", [3]float64{.2, .2, .2}, ""},
	{60, 80, ten, "solo", [3]float64{3, 4, 4}, ""},
	{60, 80, ten, "smooth1.5", [3]float64{.2, .2, .2}, ""},
	{60, 80, ten, "attack20", [3]float64{.2, .2, .2}, ""},
	{10, 500, ten, "bursty1.2", [3]float64{3.3, 3.6, 3.9}, ""},
	{10, 500, ten, "moving0.8", [3]float64{.2, .2, .2}, ""},
	{10, 500, ten, "solo", [3]float64{53, 54, 54}, ""},
	{10, 500, ten, "smooth1.5", [3]float64{.2, .2, .2}, ""},
	{10, 500, ten, "attack20", [3]float64{.2, .2, .2}, ""},
	{10, 80, ten, "bursty1.2", [3]float64{.9, 1.5, 1.8}, ""},
	{10, 80, ten, "moving0.8", [3]float64{.2, .2, .2}, ""},
	{10, 80, ten, "solo", [3]float64{42, 49, 49}, ""},
	{60, 500, 0, "bursty1.2", [3]float64{.2, .2, .2}, stranded},
	{60, 500, 0, "moving0.8", [3]float64{.2, .2, .2}, ""},
	{60, 500, 0, "solo", [3]float64{22, 21, 21}, ""},
	{60, 80, 0, "bursty1.2", [3]float64{.1, .1, .2}, stranded},
	{60, 80, 0, "solo", [3]float64{8, 8, 8}, ""},
	{10, 500, 0, "bursty1.2", [3]float64{6, 6.1, 6.3}, ""},
	{10, 500, 0, "solo", [3]float64{57, 57, 58}, ""},
	{10, 80, 0, "bursty1.2", [3]float64{2.1, 3, 3.3}, ""},
	{10, 80, 0, "solo", [3]float64{45, 53, 53}, ""},
}

// setups returns the runs for a row at its nth size.
func (r row) setups(daemons int, short bool) []setup {
	s := setup{
		daemons: daemons, windowMS: r.seconds * 1000, lagMS: 500, wanMS: r.wan, limit: 6000,
		budget: r.budget, pattern: r.pattern, windows: 6, seed: 1,
	}
	switch {
	case r.pattern == "bursty1.2" && !short: // The one with much variance.
		s.windows = 30
	case r.pattern == "attack20":
		s.windows = 2
	}
	if r.seconds == 10 {
		s.limit, s.windows = 3000, 2*s.windows
	}
	if short {
		s.windows /= 2
	}
	if daemons == 1 {
		return []setup{s}
	}
	pinned := s
	pinned.pinned = true
	return []setup{s, pinned}
}

// Totals never pass the bound, false denials and messages stay near those of
// the table. Repeat a line by its setup: the same setup gives the same run.
// Another seed is other traffic: bursts in windows of 10 s then lose 3 to 7 %.
func TestTable(t *testing.T) {
	for _, r := range table {
		if testing.Short() && (r.budget == 0 || r.wan != 500 || r.pattern != "bursty1.2" && r.pattern != "moving0.8") {
			continue
		}
		for i, daemons := range []int{1, 3, 10} {
			worst := 0.
			for _, s := range r.setups(daemons, testing.Short()) {
				res := s.run()
				if res.broken != "" {
					t.Error(res.broken)
				}
				worst = max(worst, res.under*100)
				if r.budget > 0 && res.perDecision() > .2 {
					t.Errorf("%v: %.3f messages a decision", s, res.perDecision())
				}
			}
			allowed := max(1.5*r.want[i], r.want[i]+.3)
			if testing.Short() {
				allowed += 1 // Of few windows a single bad one weighs much.
			}
			if r.why != "" {
				allowed = 1.5
			}
			if worst > allowed {
				t.Errorf("%v: %.2f %% false denials, the table has %.1f", r.setups(daemons, testing.Short())[0], worst, r.want[i])
			}
		}
	}
}

// One user of an entity rule spends his whole limit in two seconds in one
// region: at least nine tenths pass, at a round trip of 160 ms.
func TestUserInOneRegion(t *testing.T) {
	for _, daemons := range []int{1, 3, 10} {
		s := setup{
			daemons: daemons, windowMS: 60_000, lagMS: 500, wanMS: 80, limit: 6000, budget: ten,
			entity: true, pattern: "user", windows: regions, seed: 1,
		}
		for _, s.pinned = range []bool{false, true} {
			r := s.run()
			if r.under > .1 || r.broken != "" {
				t.Errorf("%v: %.2f %% false denials %s", s, r.under*100, r.broken)
			}
		}
	}
}

// Rights of an entity key do not go round between daemons that all receive hits
// of its caller: each right is transferred less than twice on average, and few
// messages are sent.
func TestRightsDoNotCirculate(t *testing.T) {
	for _, pattern := range []string{"smooth0.8", "smooth1.5", "moving0.8"} {
		s := setup{
			daemons: 3, windowMS: 60_000, lagMS: 500, wanMS: 80, limit: 6000, budget: ten,
			entity: true, pattern: pattern, windows: 4, seed: 1,
		}
		r := s.run()
		if moved := float64(r.moved) / float64(uint64(s.windows)*s.limit); moved > 2 || r.perDecision() > .2 || r.under > .01 || r.broken != "" {
			t.Errorf("%v: %.2f times the limit transferred, %.3f messages a decision, %.2f %% false denials %s",
				s, moved, r.perDecision(), r.under*100, r.broken)
		}
	}
}

// find runs a setup with seeds until a check fails.
func find(s setup, seeds int, failed func(result) bool) (result, bool) {
	var r result
	for range seeds {
		if r = s.run(); failed(r) {
			return r, true
		}
		s.seed++
	}
	return r, false
}

// Each mutation is found by its check, and the sound policy passes the same
// check in the same runs.
func TestMutatedFaultsAreFound(t *testing.T) {
	base := setup{daemons: 3, windowMS: 60_000, lagMS: 500, wanMS: 500, limit: 6000, budget: ten, windows: 2, seed: 1}
	broken := func(r result) bool { return r.broken != "" }
	for _, c := range []struct {
		variant variant
		pattern string
		check   string
		failed  func(result) bool
	}{
		{uncharged, "relay", "admitted at most L(1+b)", broken},
		{twice, "bursty1.2", "rights at most L(1+b)", broken},
		{floorless, "wakeup", "false denials at most 7 %", func(r result) bool { return r.under > .07 }},
		{none, "moving0.8", "false denials at most 1 %", func(r result) bool { return r.under > .01 }},
		{noisy, "moving0.8", "0.2 messages a decision", func(r result) bool { return r.perDecision() > .2 }},
	} {
		s := base
		s.pattern = c.pattern
		switch c.variant {
		case noisy:
			s.daemons, s.pinned = 10, true
		case floorless:
			s.pinned, s.windowMS, s.wanMS, s.windows = true, 20_000, 300, 4
		}
		if r, bad := find(s, 3, c.failed); bad {
			t.Errorf("%v: the sound policy fails %q: %+v", s, c.check, r)
		}
		s.variant = c.variant
		r, bad := find(s, 3, c.failed)
		if !bad {
			t.Errorf("%v: not found by %q: %+v", s, c.check, r)
		}
	}
}

// The bound holds in random configurations, a third of them with a region cut
// off, whatever the policy then is worth.
func TestBoundHoldsAnywhere(t *testing.T) {
	runs := 40
	if testing.Short() {
		runs = 12
	}
	patterns := []string{"smooth1.5", "bursty1.2", "solo", "moving0.8", "syncburst", "wakeup", "relay", "user"}
	for i := range runs {
		s := setup{
			daemons: 1 + i%5, windowMS: int64(2+i%7*3) * 1000, lagMS: int64(100 + i*37%2000), wanMS: int64(1 + i*53%900),
			limit: uint64(i*131%900 + 3), budget: rules.PPM(i % 4 * 100_000), entity: i%2 == 1,
			pattern: patterns[i%len(patterns)], pinned: i%3 == 0, windows: 6, seed: uint64(i), cut: i%3 == 1,
			loss: float64(i%5) / 10,
		}
		if r := s.run(); r.broken != "" {
			t.Error(r.broken)
		}
	}
}
