package lease

import (
	"fmt"
	"testing"
	"time"
)

const (
	genericRule = `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 1000, consistency: strict}
`
	twentyRule = `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 20, consistency: strict}
`
	bobRule = `
  - key: user
    value: bob
    rate_limit: {unit: day, requests_per_unit: 5, consistency: strict}
`
)

// TestKeyGetsAnotherRule adds a rule for one value: the key stays the same.
func TestKeyGetsAnotherRule(t *testing.T) {
	w := newWorld(t, 1, genericRule, 3)
	for _, d := range w.daemons {
		w.ask(d, descriptor("user", "bob", 1))
		w.pass(20 * time.Millisecond)
	}
	w.reload(genericRule + bobRule)
	w.allowed, w.failed = 0, 0
	for i := range 3000 {
		w.ask(w.daemons[i%3], descriptor("user", "bob", 1))
		if i%7 == 0 {
			w.pass(100 * time.Millisecond)
		}
	}
	w.pass(time.Second)
	if w.failed > 0 || w.allowed > 5 {
		t.Errorf("%d allowed, %d calls reached no owner: want 5 at most, and none", w.allowed, w.failed)
	}
}

// TestRuleOfAKeyIsReplaced removes the rule of a key and adds another one.
func TestRuleOfAKeyIsReplaced(t *testing.T) {
	w := newWorld(t, 1, genericRule, 3)
	for _, d := range w.daemons {
		w.ask(d, descriptor("user", "bob", 1))
		w.pass(20 * time.Millisecond)
	}
	w.reload(`
domain: d
descriptors:
  - key: user
    value: bob
    rate_limit: {unit: day, requests_per_unit: 1000, consistency: strict}
`)
	w.pass(10 * time.Second)
	w.allowed, w.failed = 0, 0
	for i := range 60 {
		w.ask(w.daemons[i%3], descriptor("user", "bob", 1))
		w.pass(50 * time.Millisecond)
	}
	w.pass(time.Second)
	if w.failed > 0 || w.allowed < 60 {
		t.Errorf("%d of 60 allowed, %d calls reached no owner", w.allowed, w.failed)
	}
}

// TestRulesThereAndBack has one daemon read other limits for a while, and then
// the former ones again.
func TestRulesThereAndBack(t *testing.T) {
	w := newWorld(t, 1, twentyRule, 3)
	x, owner, _ := w.roles(descriptor("user", "bob", 1))
	for range 10 {
		w.ask(x, descriptor("user", "bob", 1))
		w.pass(20 * time.Millisecond)
	}
	before := w.set
	w.reload(twentyRule+bobRule, x)
	w.ask(x, descriptor("user", "bob", 1))
	w.pass(200 * time.Millisecond)
	w.set = before
	x.table.SetRules(before)
	for range 40 {
		w.ask(x, descriptor("user", "bob", 1))
		w.ask(owner, descriptor("user", "bob", 1))
		w.pass(20 * time.Millisecond)
	}
	if w.allowed > 20 || w.allowed < 15 {
		t.Errorf("%d allowed, want 15 to 20", w.allowed)
	}
}

// TestBallotIsLostWhileEventual has an owner lose its ballot while the rule is
// not strict.
func TestBallotIsLostWhileEventual(t *testing.T) {
	const strict = `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 40, consistency: strict}
`
	const eventual = `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 40}
`
	w := newWorld(t, 1, strict, 3)
	o, owner, h := w.roles(descriptor("user", "bob", 1))
	w.ask(owner, descriptor("user", "bob", 15))
	w.pass(20 * time.Millisecond)
	w.believeDead(owner)
	next, _ := w.ownerOf(o, descriptor("user", "bob", 1))
	w.ask(next, descriptor("user", "bob", 25))
	w.ask(next, descriptor("user", "bob", 10))
	w.ask(next, descriptor("user", "bob", 10))
	w.pass(20 * time.Millisecond)
	w.believeDead()
	w.fsync = 30 * time.Millisecond
	w.ask(owner, descriptor("user", "bob", 20)) // needs a watermark
	w.reload(eventual)
	w.pass(20 * time.Millisecond)
	w.reload(strict)
	for range 40 {
		w.ask(owner, descriptor("user", "bob", 1))
		w.pass(50 * time.Millisecond)
	}
	if sum := w.sum(h.Key); sum > 40 || sum < 15 {
		t.Errorf("%d hits admitted, want 15 to 40", sum)
	}
}

// believeDead makes all other daemons take some for dead, and no others.
func (w *world) believeDead(dead ...*daemon) {
	for _, d := range w.daemons {
		clear(d.believedDead)
		for _, o := range dead {
			if o != d {
				d.believedDead[o.name] = true
			}
		}
	}
	w.members()
}

// TestBucketGetsShorterSteps makes a bucket smaller, and then refill faster:
// the leases of before, which end much later, do not keep their lessees from
// new ones, in whatever order the daemons read the limits.
func TestBucketGetsShorterSteps(t *testing.T) {
	large := bucketRule(10, 10_000)
	for name, next := range map[string]string{"smaller": bucketRule(10, 20), "faster": bucketRule(10_000, 10_000)} {
		for _, first := range []string{"lessee", "owner"} {
			t.Run(name+" at the "+first+" first", func(t *testing.T) {
				w := newWorld(t, 1, large, 3)
				x, owner, _ := w.roles(descriptor("user", "bob", 1))
				ask := func(n int) {
					for range n {
						w.ask(x, descriptor("user", "bob", 1))
						w.pass(200 * time.Millisecond)
					}
				}
				ask(5)
				early := map[string]*daemon{"lessee": x, "owner": owner}[first]
				w.reload(next, early)
				ask(5)
				w.reload(next)
				ask(5)
				w.pass(2 * time.Second)
				w.allowed, w.failed = 0, 0
				if ask(20); w.allowed < 20 || w.failed > 0 {
					t.Errorf("%d of 20 allowed, %d calls reached no owner", w.allowed, w.failed)
				}
			})
		}
	}
}

func bucketRule(rate, burst int) string {
	return fmt.Sprintf(`
domain: d
descriptors:
  - key: user
    rate_limit: {unit: second, requests_per_unit: %d, burst: %d, algorithm: token_bucket, consistency: strict}
`, rate, burst)
}
