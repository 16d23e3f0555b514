package control

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/rules"
)

// drawFiles draws small rule sets, many of them equal.
func drawFiles(t *rapid.T) []RuleFile {
	var lines []string
	for _, path := range []string{"user", "user=a*", "host"} {
		if rapid.IntRange(0, 3).Draw(t, "rule") > 0 {
			shape := rapid.SampledFrom([]string{"", "", "", " shadow", " budget=10", " owner", " bucket"}).Draw(t, "shape")
			unit := rapid.SampledFrom([]string{"minute", "minute", "hour"}).Draw(t, "unit")
			lines = append(lines, fmt.Sprintf("%s %d %s%s", path, rapid.IntRange(0, 4).Draw(t, "requests"), unit, shape))
		}
	}
	return []RuleFile{{Name: "d", Text: strings.Join(lines, "\n")}}
}

func drawVersion(t *rapid.T, r *Record) Version {
	return Version{r.Version.Recovery, uint64(rapid.IntRange(0, int(min(r.Version.Index, 30))+1).Draw(t, "version"))}
}

func drawSetting(t *rapid.T, ofKey bool) Setting {
	if ofKey {
		block := rapid.Bool().Draw(t, "block")
		return Setting{Block: block, Reset: !block}
	}
	var s Setting
	if rapid.Bool().Draw(t, "has requests") {
		s.Requests = new(rapid.Uint32Range(0, 5).Draw(t, "requests"))
	}
	if rapid.Bool().Draw(t, "has budget") {
		s.Budget = new(rapid.Uint32Range(0, 20).Draw(t, "budget"))
	}
	s.Mode = rapid.SampledFrom([]Mode{"", "", ModeShadow, ModeEnforce, "off"}).Draw(t, "mode")
	return s
}

func drawTarget(t *rapid.T) Target {
	if rapid.IntRange(0, 3).Draw(t, "of key") == 0 {
		return Target{Key: key(rapid.StringMatching("[0-9]").Draw(t, "key"))}
	}
	path := rapid.SampledFrom([]string{"user", "host"}).Draw(t, "path")
	set, err := rules.NewSet([]rules.DomainNode{{Name: "d", Children: []rules.Node{{Key: path}}}})
	if err != nil {
		t.Fatal(err)
	}
	return Target{Domain: "d", Rule: path, RuleID: Number(set.Rules()[0].ID), Window: 60_000}
}

// drawLimitsChange draws a change of the limits, as a leader proposes it.
func drawLimitsChange(t *rapid.T, r *Record) LimitsChange {
	l := &r.Limits
	switch rapid.IntRange(0, 9).Draw(t, "limits") {
	case 0, 1, 2:
		c := &RulesChange{Sizes: []RegionSize{{"a", rapid.IntRange(1, 2).Draw(t, "daemons")}}}
		if rapid.Bool().Draw(t, "if") {
			v := drawVersion(t, r)
			c.If = &v
		}
		if rapid.IntRange(0, 3).Draw(t, "rollback") == 0 {
			v := drawVersion(t, r)
			c.Rollback = &v
			return LimitsChange{Rules: c}
		}
		set, err := NewRuleSet(drawFiles(t))
		if err != nil {
			t.Fatal(err)
		}
		c.Set = set
		return LimitsChange{Rules: c}
	case 3, 4:
		o := OverrideChange{Unset: rapid.IntRange(0, 3).Draw(t, "unset") == 0}
		o.Target = drawTarget(t)
		o.Setting = drawSetting(t, o.Key != "")
		o.For, o.Raises = rapid.Int64Range(0, 200_000).Draw(t, "for"), rapid.Bool().Draw(t, "raises")
		if rapid.Bool().Draw(t, "replaces") {
			v := drawVersion(t, r)
			o.If = &v
		}
		return LimitsChange{Override: &o}
	case 5:
		set, err := NewRuleSet(drawFiles(t))
		if err != nil {
			t.Fatal(err)
		}
		return LimitsChange{Rules: &RulesChange{
			Set: set, Adopt: rapid.Bool().Draw(t, "adopt"), Sizes: []RegionSize{{"a", 1}}, Domains: []string{"d"},
		}}
	case 6:
		e := &Emergency{ID: Number(rapid.IntRange(0, 5).Draw(t, "emergency")), Target: drawTarget(t), Until: rapid.Int64().Draw(t, "until")}
		e.Setting = drawSetting(t, e.Key != "")
		return LimitsChange{Emergency: e}
	}
	v := l.Pending()
	if rapid.IntRange(0, 5).Draw(t, "other") == 0 {
		v = drawVersion(t, r)
	}
	from := rapid.Int64Range(0, 1<<40).Draw(t, "from")
	return LimitsChange{InForce: &InForce{Version: v, From: from, Over: from + rapid.Int64Range(0, 1<<30).Draw(t, "over")}}
}

// drawn is a node with a record that rapid changes, outside of a cluster.
type drawn struct {
	t    *rapid.T
	node *Node
	at   int64 // the clock of the leader, in ms
}

func newDrawn(t *rapid.T) *drawn {
	n, err := New(Config{Name: "a-0", Region: "a", Language: language()}, nil, InsecureSeed(rand.New(rand.NewPCG(1, 2))), rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	f := &Founding{Cluster: 1, Regions: even("a", "b"), Founders: []Founder{{Name: "a-0", Region: "a", Raft: 1}}}
	n.record = f.record()
	return &drawn{t: t, node: n, at: 1_000_000}
}

// try makes a change of the limits as a leader does, and reports whether it is
// not refused. Regions are taken as acknowledged.
func (d *drawn) try(c LimitsChange) bool {
	n := d.node
	n.wall = d.at
	n.limits.stored, n.limits.used = n.record.Version, n.record.Version
	e := n.record.entry(&Request{ID: n.number(), Author: "operator", Change: Change{Limits: &c}})
	e.Command.At = d.at
	if c.InForce != nil {
		x := *c.InForce
		x.From = d.at + 1_000
		if s := n.record.Limits.Latest(); s != nil && s.From == 0 {
			x.Over = x.From + 3_600_000
		}
		e.Limits = &LimitsChange{InForce: &x}
	} else if err := n.limits.lookUpChange(e); err != nil {
		return false
	}
	if _, err := n.record.check(e); err != nil {
		return false
	}
	next, err := n.record.apply(Version{n.record.Version.Recovery, n.record.Version.Index + 1}, e)
	if err != nil {
		d.t.Fatal(err)
	}
	n.record = next
	return true
}

// agree brings pending limits into force, and waits until they are for all
// windows.
func (d *drawn) agree() {
	if v := d.node.record.Limits.Pending(); v != (Version{}) {
		if !d.try(LimitsChange{InForce: &InForce{Version: v}}) {
			d.t.Fatalf("version %v is not in force", v)
		}
	}
	d.at += 2 * 3_600_000
}

func (d *drawn) effective() *Effective {
	e, err := d.node.Limits().Effective(d.at, math.MaxInt64)
	if err != nil {
		d.t.Fatal(err)
	}
	return e
}

// change draws a change that may be refused.
func (d *drawn) change() bool {
	c := drawLimitsChange(d.t, d.node.record)
	if all := d.node.record.Limits.Overrides; len(all) > 0 && rapid.IntRange(0, 2).Draw(d.t, "unset one") == 0 {
		o := rapid.SampledFrom(all).Draw(d.t, "which")
		c = LimitsChange{Override: &OverrideChange{Override: Override{Target: o.Target}, Unset: true}}
	}
	for c.InForce != nil || c.Emergency != nil || c.Rules != nil && c.Rules.If != nil {
		c = drawLimitsChange(d.t, d.node.record)
	}
	if c.Override != nil && !c.Override.Unset {
		c.Override.For = 100 * 3_600_000 // does not end
	}
	return d.try(c)
}

// admitsMore returns a rule of a that admits more than in b, where it has the
// same shape, "" for none.
func admitsMore(a, b *rules.Set) string {
	for _, r := range a.Rules() {
		o := b.Find(r.ID)
		if o == nil || !rules.SameShape(r.Limit, o.Limit) || r.Limit == nil {
			continue
		}
		if low := rules.Lower(r.Limit, o.Limit); low.Requests < r.Limit.Requests || low.Budget < r.Limit.Budget || low.Burst < r.Limit.Burst || r.Limit.Shadow && !o.Limit.Shadow {
			return fmt.Sprintf("%s: %+v and %+v", r.Path, r.Limit, o.Limit)
		}
	}
	return ""
}

// TestEffectivePending checks limits while a change is pending, for any limits
// in force and any change of rules and overrides: no rule admits more than
// before the change, nor than when it is in force.
func TestEffectivePending(t *testing.T) {
	pending, raised := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		d := newDrawn(t)
		for range rapid.IntRange(1, 6).Draw(t, "before") {
			if d.change() {
				d.agree()
			}
		}
		before := d.effective()
		for range 8 {
			if d.change() && d.node.record.Limits.Pending() != (Version{}) {
				break
			}
		}
		if d.node.record.Limits.Pending() == (Version{}) {
			return
		}
		pending++
		during := d.effective()
		again := d.effective()
		if during.Set.Hash() != again.Set.Hash() {
			t.Fatalf("two results at one time:\n%s%s", describeSet(during.Set), describeSet(again.Set))
		}
		d.agree()
		after := d.effective()
		if more := admitsMore(during.Set, before.Set); more != "" {
			t.Fatalf("more than before: %s", more)
		}
		if more := admitsMore(during.Set, after.Set); more != "" {
			t.Fatalf("more than after: %s", more)
		}
		if admitsMore(after.Set, before.Set) != "" {
			raised++
		}
		for _, r := range during.Set.Rules() {
			if o := before.Set.Find(r.ID); o == nil || !rules.SameShape(r.Limit, o.Limit) {
				t.Fatalf("%s has another shape before the change is in force", r.Path)
			}
		}
		for _, k := range slices.Concat(before.Keys, after.Keys) {
			blocked := slices.ContainsFunc(during.Keys, func(o KeyOverride) bool { return o.Key == k.Key && o.Blocked })
			if k.Blocked && !blocked {
				t.Fatalf("key %s is blocked before or after, and not in between", k.Key)
			}
		}
	})
	if !testing.Short() && (pending < 50 || raised == 0) { // of few checks none may
		t.Errorf("%d changes were pending, and %d raised something: these prove too little", pending, raised)
	}
}

// TestEffectiveReplaced checks that of pending changes the last one counts:
// nothing of the others is left once it is in force, and meanwhile no rule
// admits more than before all of them.
func TestEffectiveReplaced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDrawn(t)
		for range 2 {
			if d.change() {
				d.agree()
			}
		}
		before := d.effective()
		for range rapid.IntRange(1, 5).Draw(t, "pending") {
			d.change()
			if more := admitsMore(d.effective().Set, before.Set); more != "" {
				t.Fatalf("more than before: %s", more)
			}
			d.at += 100
		}
		d.agree()
		set, err := d.node.limits.latest()
		if err != nil {
			t.Fatal(err)
		}
		after := d.effective()
		if len(after.Set.Rules()) != len(set.Rules()) {
			t.Fatalf("%sin force, of\n%s", describeSet(after.Set), describeSet(set))
		}
		for _, r := range set.Rules() {
			overridden := slices.ContainsFunc(d.node.record.Limits.Overrides, func(o Override) bool { return o.RuleID == Number(r.ID) && o.stays(d.at) })
			if is := after.Set.Find(r.ID); !overridden && (is.Limit == nil) != (r.Limit == nil) || !overridden && r.Limit != nil && rules.EffectOf(is.Limit, r.Limit) != (rules.Effect{}) {
				t.Fatalf("%s: %+v in force, %+v applied", r.Path, is.Limit, r.Limit)
			}
		}
	})
}

// TestEmergencyOrder checks that daemons with the same emergency overrides have
// the same limits, in whatever order and how often these came, and that none
// raises anything.
func TestEmergencyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDrawn(t)
		for range 3 {
			if d.change() {
				d.agree()
			}
		}
		before := d.effective()
		var all []Emergency
		for i := range rapid.IntRange(1, 5).Draw(t, "emergencies") {
			e := Emergency{ID: Number(i + 1), Target: drawTarget(t), Until: d.at + 1_000}
			e.Setting = drawSetting(t, e.Key != "")
			if e.check() == nil {
				all = append(all, e)
			}
		}
		results := map[string]bool{}
		for range 3 {
			n := *d.node
			n.events.Take()
			n.limits.node, n.emergencies.node, n.emergencies.all, n.wall = &n, &n, nil, d.at
			for _, e := range rapid.Permutation(slices.Concat(all, all)).Draw(t, "order") {
				if _, err := n.emergencies.take(&e); err != nil {
					t.Fatal(err)
				}
			}
			is, err := n.limits.Effective(d.at, math.MaxInt64)
			if err != nil {
				t.Fatal(err)
			}
			if more := admitsMore(is.Set, before.Set); more != "" {
				t.Fatalf("more than without: %s", more)
			}
			results[describeSet(is.Set)+fmt.Sprint(is.Keys)] = true
		}
		if len(results) != 1 {
			t.Fatalf("%d results: %v", len(results), results)
		}
	})
}
