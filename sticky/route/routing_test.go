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
		keys[i] = crdt.Key(rng.Uint64())
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
			got[v.Owner(k, 0, false, 0).Region]++
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
		a, b := before.Owner(k, 0, false, 0).Region, after.Owner(k, 0, false, 0).Region
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
		got += v.Owner(crdt.Key(i), 0, false, 0).Name + " "
	}
	if got != golden {
		t.Errorf("homes %q: want %q", got, golden)
	}
}

const golden = "us1 us2 us2 us2 us2 eu3 asia1 eu2 us3 eu1 us2 eu3 asia3 us3 asia1 asia3 "

func TestRoutingOwners(t *testing.T) {
	l := threeRegions(1, 1, 1)
	l.Regions[0].Replicas = nil // no daemon of asia is known
	l.Pins = []Pin{{Rule: 9, Region: "us"}}
	all := allLive(threeRegions(1, 1, 1))
	keys := keysOf(300)
	owners := func(v *Routing, rule uint64, regional bool) []string {
		var names []string
		for _, k := range keys {
			h := v.Owner(k, rule, regional, 0)
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
	if h := v.Owner(keys[0], 0, true, 0); h.Incarnation != 0 || h.Name != "" || !h.Own {
		t.Errorf("home %+v in a region of which nobody is known: want none", h)
	}
	if got := (&Routing{}).Owner(keys[0], 1, false, 0); got != (Owner{}) {
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
		a, b := before.Owner(k, 0, false, 0), after.Owner(k, 0, false, 0)
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
				v.Owner(keys[i%1024], 1, false, 0)
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

// TestRoutingLost: the keys of a region that lost its watermarks have no owner
// while hits count from before, and later those of the layout. The others keep
// theirs, whatever their weights are now.
func TestRoutingLost(t *testing.T) {
	was := threeRegions(1, 2, 3)
	was.Pins = []Pin{{Rule: 8, Region: "asia"}, {Rule: 9, Region: "us"}}
	now := threeRegions(3, 2, 0)
	now.Regions = now.Regions[:2]
	lost := was.LossOf("us", 1_000)
	*now = now.WithLost(lost)
	if err := now.Validate(); err != nil {
		t.Fatal(err)
	}
	all := allLive(threeRegions(1, 1, 1))
	before, after := New(was, "eu", "eu1", 4, all), New(now, "eu", "eu1", 4, all)
	for _, k := range keysOf(300) {
		for _, rule := range []uint64{1, 8, 9} {
			old, late := before.Owner(k, rule, false, 999), after.Owner(k, rule, false, 1_000)
			if late.Incarnation == 0 || late.Region == "us" {
				t.Fatalf("owner %+v of a window that began later: want one", late)
			}
			if is := after.Owner(k, rule, false, 999); old.Region == "us" && is != (Owner{Region: "us", Lost: 1_000}) || old.Region != "us" && is != late {
				t.Fatalf("owner %+v of a key that had %+v: want %+v, or none of the lost region", is, old, late)
			}
		}
		if is := after.Owner(k, 9, true, 0); !is.Own {
			t.Fatalf("owner %+v in another region than the lost one: want one here", is)
		}
	}
	// The region is there again, with empty voters.
	back := threeRegions(1, 1, 1).WithLost(lost)
	v := New(&back, "us", "us1", 7, all)
	if a, b := v.Owner(keysOf(1)[0], 1, true, 999), v.Owner(keysOf(1)[0], 1, true, 1_000); a.Incarnation != 0 || b.Incarnation == 0 {
		t.Errorf("owners %+v and %+v in the region that lost its watermarks: want none, then one", a, b)
	}
	many := back
	for i := range int64(MaxLost) {
		many = many.WithLost(was.LossOf("asia", 2_000+i))
	}
	if err := many.Validate(); err != nil || len(many.Lost) != MaxLost || many.Lost[0].Region != "" || many.Lost[0].From != 2_000 {
		t.Errorf("losses %+v, %v: want the first two as one of all keys", many.Lost, err)
	}
	if is := New(&many, "eu", "eu1", 4, all).Owner(keysOf(1)[0], 1, false, 1_999); is.Incarnation != 0 {
		t.Errorf("owner %+v of a key whose region may be lost: want none", is)
	}
	for what, bad := range map[string]Layout{
		"an unknown region": threeRegions(1, 1, 1).WithLost(Loss{Region: "x", Regions: was.Regions}),
		"no weights":        threeRegions(1, 1, 1).WithLost(Loss{Region: "us", Regions: []Region{{Name: "us"}}}),
		"regions of nobody": threeRegions(1, 1, 1).WithLost(Loss{Regions: was.Regions}),
	} {
		if bad.Validate() == nil {
			t.Errorf("a loss with %s is valid", what)
		}
	}
}
