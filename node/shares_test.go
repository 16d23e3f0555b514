package node

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/keytable"
	"github.com/georld/rld/rules"
)

const dayLimits = `
domain: d
descriptors:
  - {key: ip, rate_limit: {unit: day, requests_per_unit: 5}}
  - {key: user, rate_limit: {unit: day, requests_per_unit: 5}}
  - {key: team, rate_limit: {unit: day, requests_per_unit: 5}}
  - {key: note}
`

// TestAFloodedRuleDegradesItselfAlone: a caller with random values of one
// descriptor takes keys from its rule alone, although windows of a day keep all
// of them. Tallies name the rule.
func TestAFloodedRuleDegradesItselfAlone(t *testing.T) {
	cfg := Default()
	cfg.MaxKeys, cfg.KeyReserve = 80, 50*rules.Percent // 10 keys for each of ip, user, team and keys without a rule
	r := newRig(t, cfg)
	r.put(t, dayLimits)
	ask := func(d string) *Status {
		t.Helper()
		if err := r.ask("d", 1, d); err != nil {
			t.Fatal(err)
		}
		return &r.call.Statuses[0]
	}
	for i := range 1_000 {
		// Its own part of 10, and the 40 that are not reserved.
		if st := ask("ip=" + strconv.Itoa(i)); (st.Degraded == KeysFull) != (i >= 50) {
			t.Fatalf("random key %d: %+v", i, st)
		}
	}
	for i := range 10 {
		for _, key := range []string{"user", "team"} {
			if st := ask(key + "=" + strconv.Itoa(i)); st.Degraded != NotDegraded || st.Remaining != 4 {
				t.Errorf("%s %d after the flood: %+v", key, i, st)
			}
		}
	}
	if st := ask("user=11"); st.Degraded != KeysFull {
		t.Errorf("more keys than the part of a rule, while others lack theirs: %+v", st)
	}
	if st := ask("ip=7"); st.Degraded != NotDegraded || st.Remaining != 3 {
		t.Errorf("a key from before the flood was forgotten: %+v", st)
	}
	full := map[string]quota.Tally{}
	r.node.Tallies(func(rule *rules.Rule, t quota.Tally) {
		if rule != nil {
			full[rule.Path] = t
		}
	})
	if full["ip"].KeysFull != 950 || full["user"].KeysFull != 1 || full["team"].KeysFull != 0 || full["ip"].Keys != 50 || full["team"].Keys != 10 {
		t.Errorf("tallies: %+v", full)
	}
	r.mono += 25 * time.Hour
	if st := ask("ip=new"); st.Degraded != NotDegraded {
		t.Errorf("a day later: %+v", st)
	}
}

// TestAFloodedStrictRuleDegradesItselfAlone: likewise for strict keys, in the
// tables of their owner and of their lessee.
func TestAFloodedStrictRuleDegradesItselfAlone(t *testing.T) {
	for _, room := range []struct{ owner, lessee int }{{40, 1000}, {1000, 40}, {40, 40}} {
		p := newReservedStrictPair(t, `
domain: d
descriptors:
  - {key: ip, rate_limit: {unit: day, requests_per_unit: 3, consistency: strict}}
  - {key: user, rate_limit: {unit: day, requests_per_unit: 3, consistency: strict}}
`, room.owner, room.lessee, 60*rules.Percent)
		ask := func(key string, i int) *Call {
			return p.decide(p.lessee, &Call{Domain: "d", Descriptors: []rules.Descriptor{{Entries: []rules.Entry{{Key: key, Value: fmt.Sprint(i)}}, Hits: 1}}})
		}
		for i := range 60 {
			if c := ask("ip", i); c.Decision.Allowed != (c.Statuses[0].Degraded == NotDegraded) || i >= 24 && c.Decision.Allowed {
				t.Errorf("room for %v: random key %d: %+v", room, i, c.Statuses[0])
			}
		}
		for i := range 8 {
			if c := ask("user", i); !c.Decision.Allowed || c.Statuses[0].Degraded != NotDegraded {
				t.Errorf("room for %v: key %d of another rule: %+v", room, i, c.Statuses[0])
			}
		}
	}
}

// TestSharesCountTheEntries: however rules come and go, the shares count the
// entries of each rule.
func TestSharesCountTheEntries(t *testing.T) {
	files := []string{
		dayLimits,
		"domain: d\ndescriptors:\n  - {key: user, rate_limit: {unit: hour, requests_per_unit: 5}}\n  - {key: ip, rate_limit: {unit: day, requests_per_unit: 9}}\n",
		"domain: d\ndescriptors:\n  - {key: team, rate_limit: {unlimited: true}}\n  - {key: ip, rate_limit: {unit: minute, requests_per_unit: 9}}\n",
	}
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Default()
		cfg.MaxKeys = rapid.IntRange(1, 30).Draw(rt, "room")
		cfg.KeyReserve = rules.PPM(rapid.IntRange(0, 100).Draw(rt, "reserve")) * rules.Percent
		r := newRig(t, cfg)
		r.put(t, files[0])
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				r.put(t, rapid.SampledFrom(files).Draw(rt, "file"))
			case 1:
				r.mono += time.Duration(rapid.IntRange(0, 100).Draw(rt, "minutes")) * time.Minute
				r.node.Tick(r.instant())
			default:
				d := rapid.SampledFrom([]string{"ip", "user", "team"}).Draw(rt, "key")
				all := []string{d + "=" + strconv.Itoa(rapid.IntRange(0, 20).Draw(rt, "value")), "ip=" + strconv.Itoa(rapid.IntRange(0, 20).Draw(rt, "ip"))}
				if err := r.ask("d", 1, all...); err != nil {
					rt.Fatal(err)
				}
			}
			counts, k := map[int32]int{}, &r.node.keys
			for i := range k.live.Used() {
				if e := k.live.At(i); e.Rule != keytable.Free {
					counts[e.Rule]++
				}
			}
			for rule := int32(-1); int(rule) < len(r.node.rules.set.Rules()); rule++ {
				if got := k.shares.Keys(rule); got != counts[rule] {
					rt.Fatalf("rule %d: %d keys are counted, want %d", rule, got, counts[rule])
				}
			}
			if k.live.Len() > cfg.MaxKeys || k.shares.Len() != k.live.Len() {
				rt.Fatalf("%d keys, counted as %d, of at most %d", k.live.Len(), k.shares.Len(), cfg.MaxKeys)
			}
		}
	})
}
