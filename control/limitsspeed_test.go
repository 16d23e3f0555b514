package control

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// speedWorld is a cluster of nine daemons in three regions, 80 ms apart one
// way, that has begun.
func speedWorld(t *testing.T) *world {
	w := newWorld(t, 1, "a-0", "b-0", "c-0")
	for _, name := range []string{"a-0", "a-1", "a-2", "b-0", "b-1", "b-2", "c-0", "c-1", "c-2"} {
		w.add(name[:1], name, true)
	}
	w.between = func(from, to *machine) time.Duration {
		if from.region == to.region {
			return time.Millisecond
		}
		return 80 * time.Millisecond
	}
	w.run(2 * time.Second)
	if err := w.find("a-0").node.Init(even("a", "b", "c"), true); err != nil {
		t.Fatal(err)
	}
	w.until("begun", time.Minute, func() bool { return w.equal() && w.leader() != nil })
	w.run(15 * time.Second) // the voters stay
	return w
}

// trial submits a change at a daemon and returns how long it takes until all of
// them have it, and, for one that raises, until all know that it is in force
// from the next window on.
func (w *world) trial(m *machine, c LimitsChange, raises bool) time.Duration {
	w.t.Helper()
	begun := w.now
	id, err := m.node.Submit(Request{Author: "test", Change: Change{Limits: &c}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.until("known to all", 10*time.Second, func() bool {
		return !slices.ContainsFunc(w.machines, func(k *machine) bool {
			o := k.node.Record().Outcome(id)
			if o != nil && o.Refused != "" {
				w.t.Fatalf("refused: %s", o.Refused)
			}
			return o == nil || raises && !k.node.Record().inForce(o.Version)
		})
	})
	return w.now - begun
}

// inForce reports whether all overrides of a version are in force.
func (r *Record) inForce(v Version) bool {
	return !slices.ContainsFunc(r.Limits.Overrides, func(o Override) bool { return o.Version == v && o.Start == 0 })
}

// TestLimitsSpeed: changes that lower act at all daemons, and those that raise
// are acknowledged by all, within a second, wherever the operator is. With
// CONTROL_TRIALS=200 it makes 200 trials.
func TestLimitsSpeed(t *testing.T) {
	trials := 20
	if n, err := strconv.Atoi(os.Getenv("CONTROL_TRIALS")); err == nil {
		trials = n
	}
	w := speedWorld(t)
	set, err := NewRuleSet(ruleFiles("user 100 second"))
	if err != nil {
		t.Fatal(err)
	}
	w.trial(w.find("a-0"), LimitsChange{Rules: &RulesChange{Set: set}}, false)
	w.run(10 * time.Second)
	hour := time.Hour.Milliseconds()
	user := func(requests uint32) LimitsChange {
		return LimitsChange{Override: &OverrideChange{Override: Override{Target: Target{Rule: "user"}, Setting: Setting{Requests: &requests}, For: hour}}}
	}
	unset := LimitsChange{Override: &OverrideChange{Override: Override{Target: Target{Rule: "user"}}, Unset: true}}
	blocked := LimitsChange{Override: &OverrideChange{Override: Override{Target: Target{Key: key("1")}, Setting: Setting{Block: true}, For: hour}}}
	unblock := LimitsChange{Override: &OverrideChange{Override: Override{Target: Target{Key: key("1")}}, Unset: true}}
	var lowers, raises []time.Duration
	for i := range trials {
		m := w.machines[i%len(w.machines)]
		lowers = append(lowers, w.trial(m, blocked, false), w.trial(m, user(uint32(10+i)), false))
		w.trial(m, unset, false)
		w.trial(m, unblock, false)
		raises = append(raises, w.trial(m, user(uint32(200+i)), true))
		w.trial(m, unset, false)
		w.run(13*time.Second + time.Duration(w.rng.Int64N(int64(2*time.Second)))) // a rule has so many overrides
	}
	for name, all := range map[string][]time.Duration{"lowers": lowers, "raises": raises} {
		slices.Sort(all)
		p99 := all[len(all)*99/100]
		t.Logf("%s: %d changes, median %v, p99 %v, longest %v", name, len(all), all[len(all)/2], p99, all[len(all)-1])
		if p99 > time.Second {
			t.Errorf("%s: p99 %v: want at most 1s", name, p99)
		}
	}
}
