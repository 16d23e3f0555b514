package route

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/georld/rld/crdt"
)

func threeRegions(weights ...uint32) *Layout {
	l := &Layout{Number: 1}
	for i, name := range []string{"asia", "eu", "us"} {
		l.Regions = append(l.Regions, Region{
			Name: name, Weight: weights[i], Replicas: []string{name + "1", name + "2", name + "3"},
		})
	}
	return l
}

func allLive(l *Layout) Peers {
	var live Peers
	id := crdt.Incarnation(0)
	for _, r := range l.Regions {
		for _, n := range r.Replicas {
			id++
			live = append(live, Peer{ID: id, Name: n, Region: r.Name, Ready: true})
		}
	}
	live.Sort()
	return live
}

func keysOf(n int) []crdt.Key {
	rng := rand.New(rand.NewPCG(7, 7))
	keys := make([]crdt.Key, n)
	for i := range keys {
		keys[i] = crdt.Key{Hi: rng.Uint64(), Lo: rng.Uint64()}
	}
	return keys
}

// TestRoutingWeights checks that regions get keys in proportion to their
// weights, and that another weight moves keys to or from that region only.
func TestRoutingWeights(t *testing.T) {
	const n = 100_000
	keys := keysOf(n)
	for _, weights := range [][]uint32{{1, 1, 1}, {1, 2, 7}, {0, 1, 1000}, {1 << 30, 1 << 29, 1}} {
		v := New(threeRegions(weights...), "eu", "eu1", 4, nil)
		got, sum := map[string]int{}, 0.0
		for _, k := range keys {
			got[v.Owner(k, 0, false).Region]++
		}
		for _, w := range weights {
			sum += float64(w)
		}
		for i, name := range []string{"asia", "eu", "us"} {
			want := n * float64(weights[i]) / sum
			if off := math.Abs(float64(got[name]) - want); off > 5*math.Sqrt(want)+1 {
				t.Errorf("weights %v: %d keys in %s, want about %.0f", weights, got[name], name, want)
			}
		}
	}
	before := New(threeRegions(1, 2, 4), "eu", "eu1", 4, nil)
	after := New(threeRegions(1, 3, 4), "eu", "eu1", 4, nil)
	for _, k := range keys {
		a, b := before.Owner(k, 0, false).Region, after.Owner(k, 0, false).Region
		if a != b && b != "eu" {
			t.Fatalf("key %v moved from %s to %s when only eu grew", k, a, b)
		}
	}
}

// TestRoutingGolden pins the owners of some keys: all daemons of all versions
// and architectures must agree on them.
func TestRoutingGolden(t *testing.T) {
	l := threeRegions(1, 2, 3)
	v := New(l, "eu", "eu1", 4, allLive(l))
	got := ""
	for i := range uint64(16) {
		got += v.Owner(crdt.Key{Hi: i, Lo: i * i}, 0, false).Name + " "
	}
	if got != golden {
		t.Errorf("homes %q: want %q", got, golden)
	}
}

const golden = "us1 us2 eu3 eu1 eu3 asia1 us3 eu2 eu2 us1 us2 eu2 us3 eu2 us1 us3 "

func TestRoutingOwners(t *testing.T) {
	l := threeRegions(1, 1, 1)
	l.Regions[0].Replicas = nil // no daemon of asia is known
	l.Pins = []Pin{{Rule: 9, Region: "us"}}
	all := allLive(threeRegions(1, 1, 1))
	keys := keysOf(300)
	owners := func(v *Routing, rule uint64, regional bool) []string {
		var names []string
		for _, k := range keys {
			h := v.Owner(k, rule, regional)
			if h.Own != (h.Region == "eu") || h.Self != (h.Incarnation == 4) {
				t.Fatalf("home %+v at eu1, which has slot 4", h)
			}
			name := h.Name
			if h.Incarnation == 0 {
				name += " dead"
			}
			names = append(names, name)
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	without := func(gone ...string) []Peer {
		return slices.DeleteFunc(slices.Clone(all), func(p Peer) bool { return slices.Contains(gone, p.Name) })
	}
	unready := func(names ...string) []Peer {
		out := slices.Clone(all)
		for i := range out {
			out[i].Ready = !slices.Contains(names, out[i].Name)
		}
		return out
	}
	for _, c := range []struct {
		what     string
		live     []Peer
		rule     uint64
		regional bool
		want     []string
	}{
		{"all live", all, 0, false, []string{"asia1", "asia2", "asia3", "eu1", "eu2", "eu3", "us1", "us2", "us3"}},
		{"pinned", all, 9, false, []string{"us1", "us2", "us3"}},
		{"regional goes before a pin", all, 9, true, []string{"eu1", "eu2", "eu3"}},
		{"one is dead", without("us2"), 9, false, []string{"us1", "us3"}},
		{"one is not ready", unready("us2"), 9, false, []string{"us1", "us3"}},
		{"none is ready", unready("us1", "us2", "us3"), 9, false, []string{"us1", "us2", "us3"}},
		{"all dead", without("us1", "us2", "us3"), 9, false, []string{"us1 dead", "us2 dead", "us3 dead"}},
	} {
		v := New(l, "eu", "eu1", 4, c.live)
		if got := owners(v, c.rule, c.regional); !slices.Equal(got, c.want) {
			t.Errorf("%s: homes %v, want %v", c.what, got, c.want)
		}
	}
	v := New(l, "asia", "asia1", 1, without("asia1", "asia2", "asia3"))
	if h := v.Owner(keys[0], 0, true); h.Incarnation != 0 || h.Name != "" || !h.Own {
		t.Errorf("home %+v in a region of which nobody is known: want none", h)
	}
	if got := (&Routing{}).Owner(keys[0], 1, false); got != (Owner{}) {
		t.Errorf("home %+v by the zero view: want none", got)
	}
}

// TestRoutingTakeover checks that a death moves only the dead daemon's keys.
func TestRoutingTakeover(t *testing.T) {
	l := threeRegions(1, 1, 1)
	all := allLive(l)
	before := New(l, "eu", "eu1", 4, all)
	after := New(l, "eu", "eu1", 4, slices.DeleteFunc(slices.Clone(all), func(p Peer) bool { return p.Name == "eu2" }))
	for _, k := range keysOf(1_000) {
		a, b := before.Owner(k, 0, false), after.Owner(k, 0, false)
		if a.Name != "eu2" && a != b {
			t.Fatalf("home %+v became %+v when eu2 died", a, b)
		}
	}
}

func TestRoutingVoters(t *testing.T) {
	l := threeRegions(1, 1, 1)
	live := Peers{
		{ID: 7, Name: "eu1", Region: "eu", Ready: true},
		{ID: 9, Name: "eu2", Region: "eu"},
		{ID: 8, Name: "eu2", Region: "eu", Ready: true},
		{ID: 5, Name: "eu9", Region: "eu", Ready: true},
		{ID: 6, Name: "eu3", Region: "us", Ready: true},
	}
	live.Sort()
	v := New(l, "eu", "eu1", 7, live)
	want := []Voter{{NameHash("eu1"), "eu1", 7}, {NameHash("eu2"), "eu2", 8}, {NameHash("eu3"), "eu3", 0}}
	if !slices.Equal(v.Voters(), want) || v.Majority() != 2 || v.Live() != 2 || !v.IsVoter() || v.Number() != 1 {
		t.Errorf("seats %+v, majority %d of %d live, seated %v, layout %d", v.Voters(), v.Majority(), v.Live(), v.IsVoter(), v.Number())
	}
	if v := New(l, "eu", "eu9", 5, live); v.IsVoter() {
		t.Error("eu9 is seated: want replicas only")
	}
}

func BenchmarkOwner(b *testing.B) {
	for _, c := range []struct {
		name    string
		weights []uint32
	}{{"equal", []uint32{1, 1, 1}}, {"weighted", []uint32{1, 2, 3}}} {
		b.Run(c.name, func(b *testing.B) {
			l := threeRegions(c.weights...)
			v := New(l, "eu", "eu1", 4, allLive(l))
			keys := keysOf(1024)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				v.Owner(keys[i%1024], 1, false)
			}
		})
	}
}

// TestMajority: two majorities of a group have a member in common, and none is
// larger than needed.
func TestMajority(t *testing.T) {
	for n := 1; n <= MaxReplicas; n++ {
		if m := Majority(n); 2*m <= n || 2*(m-1) > n {
			t.Errorf("%d of %d are a majority", m, n)
		}
	}
}

// TestRetired: a region is retired when it has neither weight nor voters.
func TestRetired(t *testing.T) {
	for _, tt := range []struct {
		region Region
		want   bool
	}{
		{Region{}, true},
		{Region{Weight: 1}, false},
		{Region{Replicas: []string{"a"}}, false},
		{Region{Weight: 1, Replicas: []string{"a"}}, false},
	} {
		if tt.region.Retired() != tt.want {
			t.Errorf("%+v: retired %v", tt.region, !tt.want)
		}
	}
}

// TestPinsAscend: a layout has one pin of a rule.
func TestPinsAscend(t *testing.T) {
	l := threeRegions(1, 1, 1)
	for _, tt := range []struct {
		rules []uint64
		valid bool
	}{{[]uint64{1, 2, 3}, true}, {[]uint64{1, 1}, false}, {[]uint64{2, 1, 3}, false}} {
		l.Pins = nil
		for _, rule := range tt.rules {
			l.Pins = append(l.Pins, Pin{Rule: rule, Region: "eu"})
		}
		if err := l.Validate(); (err == nil) != tt.valid {
			t.Errorf("pins of rules %d: %v", tt.rules, err)
		}
	}
}
