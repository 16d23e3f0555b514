package explore

import (
	"reflect"
	"strings"
	"testing"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/rules"
)

// Everything that can happen to a few daemons within some steps is tried, and
// nothing is found. -short tries one step less, of every third scope.
func TestExploreSmallScopes(t *testing.T) {
	deeper := 0
	if testing.Short() {
		deeper = -1
	}
	for i, s := range Scopes(deeper) {
		t.Run(s.Name, func(t *testing.T) {
			if testing.Short() && i%3 != 1 {
				t.Skip("in short every third")
			}
			t.Parallel()
			x, err := Explore(s)
			if err != nil {
				t.Fatal(err)
			}
			if x.Violation != "" {
				t.Errorf("%s\n  %s", x.Violation, strings.Join(x.Trace, "\n  "))
			}
			if x.Admitted == 0 || x.Denied == 0 || x.Healed == 0 || x.Overage == 0 && !s.Rights || x.Given == 0 && s.Rights {
				t.Errorf("admitted %d, denied %d, healed %d, exceeded the limit by %d, gave %d: a part of the scope is not exercised",
					x.Admitted, x.Denied, x.Healed, x.Overage, x.Given)
			}
		})
	}
}

// Two explorations of one scope give the same counts.
func TestExploreIsDeterministic(t *testing.T) {
	s := Scope{Name: "twice", Regions: []int{1, 1}, Limit: 2, Seconds: 60, Depth: 5, Heal: 3, Restarts: 1}
	var all [2]*Explored
	for i := range all {
		x, err := Explore(s)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = x
	}
	if !reflect.DeepEqual(all[0], all[1]) {
		t.Errorf("first %+v, then %+v", *all[0], *all[1])
	}
}

// The search finds mutations, each by the property that it violates.
func TestExploreFindsMutations(t *testing.T) {
	pair := Scope{Regions: []int{2}, Limit: 2, Seconds: 60, Depth: 1, Heal: 1}
	region := Scope{Regions: []int{1, 1}, Limit: 2, Seconds: 60, Depth: 1, Heal: 1}
	rights := Scope{Regions: []int{2}, Limit: 4, Seconds: 60, Depth: 1, Heal: 1, Rights: true}
	fewRights := Scope{Regions: []int{2}, Limit: 2, Seconds: 60, Depth: 1, Heal: 1, Rights: true}
	for _, c := range []struct {
		name     string
		scope    Scope
		mutation mutation
		heal     int
		want     string // part of the violation
	}{
		{"a frame claims versions that it does not hold", pair, mutation{mangle: func(m *gossip.Message) {
			m.Hi += 2
		}}, 5, "all that was on its way lost: "},
		{"a frame leaves out its cells", pair, mutation{mangle: func(m *gossip.Message) {
			m.Cells = nil
		}}, 5, "all that was on its way lost: "},
		{"the same, and nothing is ever healed", pair, mutation{mangle: func(m *gossip.Message) {
			m.Cells = nil
		}}, 0, "claims to know"},
		{"a cell is acknowledged that never came", pair, mutation{mangle: func(m *gossip.Message) {
			if m.Answers {
				m.Ack++
			}
		}}, 5, "all that was on its way lost: "},
		{"a count is told twice", region, mutation{mangle: func(m *gossip.Message) {
			for i := range m.Cells {
				m.Cells[i].Value.P *= 2
			}
		}}, 0, "which counted"},
		{"a gift is greater than what was charged", rights, mutation{mangle: func(m *gossip.Message) {
			for i := range m.Cells {
				if m.Cells[i].Kind == gossip.Given {
					m.Cells[i].Value.P++
				}
			}
		}}, 0, "was charged"},
		{"a restarted daemon holds its share again", fewRights, mutation{noFence: true}, 0, "all rights are 2"},
		{"a restarted daemon counts under the incarnation it had", pair, mutation{reuseIncarnation: true}, 5, "itself"},
		{"a daemon says it heard what was not sent yet", pair, mutation{mangle: func(m *gossip.Message) {
			m.Echo, m.Held = m.Echo+uint64(5*gossip.DefaultInterval/gossip.NonceUnit), 0
		}}, 5, "claims to know"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.scope
			s.Name, s.mutation = "planted", c.mutation
			if c.mutation.reuseIncarnation || c.mutation.noFence {
				s.Restarts = 1
			}
			for ; s.Depth <= 7; s.Depth++ {
				s.Heal = min(s.Depth, c.heal)
				x, err := Explore(s)
				if err != nil {
					t.Fatal(err)
				}
				if x.Violation == "" {
					continue
				}
				if !strings.Contains(x.Violation, c.want) {
					t.Fatalf("found %q after %v, want it to say %q", x.Violation, x.Trace, c.want)
				}
				return
			}
			t.Error("nothing was found")
		})
	}
}

// A scope out of its bounds is rejected with a reason.
func TestExploreRefusesScopes(t *testing.T) {
	good := Scope{Name: "s", Regions: []int{1}, Limit: 1, Seconds: 1, Depth: 1}
	for want, change := range map[string]func(*Scope){
		"want at least one":      func(s *Scope) { s.Regions = []int{1, 0} },
		"want 1 to 4":            func(s *Scope) { s.Regions = []int{3, 2} },
		"limit of 0":             func(s *Scope) { s.Limit = 0 },
		"healed to 3":            func(s *Scope) { s.Heal = 3 },
		"restarts, want 0":       func(s *Scope) { s.Restarts = 9 },
		"want fixed_window":      func(s *Scope) { s.Algorithm = rules.SlidingLog },
		"want those of windows":  func(s *Scope) { s.Rights, s.Algorithm = true, rules.TokenBucket },
		"a budget of 10 %":       func(s *Scope) { s.Budget = 10 },
		"ticks of -1ns, want 10": func(s *Scope) { s.Tick = -1 },
	} {
		s := good
		change(&s)
		if _, err := Explore(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}
