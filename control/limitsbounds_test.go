package control

import (
	"fmt"
	"strings"
	"testing"
)

// at returns a version of a test.
func at(index int) Version { return Version{Recovery{Random: 1}, uint64(index)} }

// applyEdition applies a small rule set, and brings it into force at once.
func applyEdition(t *testing.T, l *Limits, edition int, now, over int64) error {
	t.Helper()
	set, err := NewRuleSet([]RuleFile{{"d", fmt.Sprintf("user %d minute", edition)}})
	if err != nil {
		t.Fatal(err)
	}
	next := *l
	if err := next.apply(&RulesChange{Set: set}, at(edition), now); err != nil {
		return err
	}
	if err := next.bringIntoForce(&InForce{at(edition), now, over}, now); err != nil {
		t.Fatal(err)
	}
	*l = next
	return next.validate()
}

// TestStepsBound checks that changes of the rules inside one long window are
// bounded, and that steps whose windows ended go.
func TestStepsBound(t *testing.T) {
	const day = 24 * 3_600_000
	var l Limits
	for i := range maxSteps {
		if err := applyEdition(t, &l, i+1, int64(i+1)*1_000, day); err != nil {
			t.Fatal(err)
		}
	}
	err := applyEdition(t, &l, maxSteps+1, 20_000, day)
	if want := "9 changes of the rules wait for the end of running windows: want the next one after 1970-01-02T00:01:00Z"; err == nil || err.Error() != want {
		t.Fatalf("error %v, want %s", err, want)
	}
	if err := applyEdition(t, &l, maxSteps+1, day+keepEnded, 2*day); err != nil || len(l.Steps) != 2 {
		t.Errorf("%d steps and error %v after the windows ended, want 2", len(l.Steps), err)
	}
}

// TestSetsKept checks which rule sets are kept to roll back to.
func TestSetsKept(t *testing.T) {
	var l Limits
	for i := range 3 * maxApplied / 2 {
		if err := applyEdition(t, &l, i+1, int64(i+1)*1_000_000, 0); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.Sets) != maxSets || len(l.Applied) != maxApplied {
		t.Errorf("%d sets of %d versions are kept, want %d of %d", len(l.Sets), len(l.Applied), maxSets, maxApplied)
	}
	for _, tc := range []struct {
		version int
		want    string
	}{
		{150, ""},
		{141, ""},
		{140, "the files of version 140 are not kept any more: those of 141, 142, 143, 144, 145, 146, 147, 148, 149, 150 are"},
		{20, "version 20 is none of the rules: they are 141, 142, 143, 144, 145, 146, 147, 148, 149, 150, and earlier ones that are not known any more"},
		{151, "version 151 is none of the rules"},
	} {
		v := at(tc.version)
		_, err := l.wanted(&RulesChange{Rollback: &v})
		if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("version %d: error %v, want %q", tc.version, err, tc.want)
		}
	}
	// A set that is applied again is kept once.
	v, sets := at(145), len(l.Sets)
	if err := l.apply(&RulesChange{Rollback: &v}, at(151), 1<<40); err != nil || len(l.Sets) != sets {
		t.Errorf("%d sets and error %v after a rollback, want %d", len(l.Sets), err, sets)
	}
}

// TestOverridesBound checks the bounds of overrides: of one target, and of all.
func TestOverridesBound(t *testing.T) {
	block := func(key, version int) *OverrideChange {
		c := &OverrideChange{Override: Override{For: 1_000}}
		c.Key, c.Block = fmt.Sprintf("%016x", key), true
		if version > 0 {
			v := at(version)
			c.If = &v
		}
		return c
	}
	var l Limits
	for i := range maxOfTarget {
		if err := l.override(block(1, i), "a", "", at(i+1), 1_000); err != nil {
			t.Fatal(err)
		}
		if err := l.bringIntoForce(&InForce{at(i + 1), 1_000_000, 0}, 1_000); err != nil {
			t.Fatal(err)
		}
	}
	err := l.override(block(1, maxOfTarget), "a", "", at(99), 1_000)
	if err == nil || !strings.Contains(err.Error(), "has 16 overrides in its running window") {
		t.Errorf("error %v of one more", err)
	}
	l = Limits{}
	for i := range MaxOverrides {
		o := Override{For: 1, Until: 1 << 50}
		o.Key, o.Block = fmt.Sprintf("%016x", i), true
		l.Overrides = append(l.Overrides, o)
	}
	if err := l.override(block(MaxOverrides, 0), "a", "", at(1), 1_000); err == nil || err.Error() != "there are 10000 overrides: unset some of them first" {
		t.Errorf("error %v of one more", err)
	}
	if err := l.override(block(MaxOverrides, 0), "a", "", at(1), 1<<51); err != nil || len(l.Overrides) != 1 {
		t.Errorf("%d overrides and error %v after all ended", len(l.Overrides), err)
	}
}

// TestEmergencyEntered checks that an emergency override becomes an entry once,
// also after it was unset and no outcome is known any more.
func TestEmergencyEntered(t *testing.T) {
	e := &Emergency{ID: 7, Target: Target{Key: fmt.Sprintf("%016x", 1)}, Setting: Setting{Block: true}, Until: 3_600_000}
	var l Limits
	if err := l.enter(e, at(1), 1_000); err != nil {
		t.Fatal(err)
	}
	if err := l.override(&OverrideChange{Override: Override{Target: e.Target}, Unset: true}, "a", "", at(2), 2_000); err != nil || len(l.Overrides) != 0 {
		t.Fatalf("%d overrides, error %v", len(l.Overrides), err)
	}
	if err := l.enter(e, at(3), 3_000); err == nil || len(l.Overrides) != 0 {
		t.Fatalf("%d overrides, error %v: it came back", len(l.Overrides), err)
	}
	l.prune(e.Until + maxEmergency.Milliseconds() + keepEnded - 1)
	if len(l.Entered) != 1 {
		t.Error("its id is forgotten while a daemon may still have it")
	}
	l.prune(e.Until + maxEmergency.Milliseconds() + keepEnded)
	if len(l.Entered) != 0 {
		t.Error("its id is kept for ever")
	}
}

// The end of an override is in force from a time that is known once all regions
// have acknowledged it. Before, its own end is not that time.
func TestStateOfAnEnd(t *testing.T) {
	v, ended := Version{Index: 7}, Version{Index: 8}
	l := Limits{Overrides: []Override{{Version: v, Start: 5, Until: 1000, Ended: &ended}}}
	if is, want := l.StateOf(ended), (ChangeState{Pending: true}); is != want {
		t.Errorf("pending: %+v, want %+v", is, want)
	}
	if err := l.bringIntoForce(&InForce{Version: ended, From: 20}, 10); err != nil {
		t.Fatal(err)
	}
	if is, want := l.StateOf(ended), (ChangeState{From: 20}); is != want {
		t.Errorf("in force: %+v, want %+v", is, want)
	}
}

// The state of an override that replaces another one is its own, not that of
// the end of the other one.
func TestStateOfAReplacement(t *testing.T) {
	v, next := Version{Index: 7}, Version{Index: 8}
	l := Limits{Overrides: []Override{{Version: v, Start: 5, Until: 1000, Ended: &next}, {Version: next, Start: 10, From: 10, Until: 2000}}}
	if is, want := l.StateOf(next), (ChangeState{From: 10, Until: 2000}); is != want {
		t.Errorf("%+v, want %+v", is, want)
	}
}

// An override that ended before all regions acknowledged it is not pending any
// more once the leader brings it into force: it would ask for ever.
func TestEndedOverrideIsNotPending(t *testing.T) {
	v := Version{Index: 7}
	l := Limits{Overrides: []Override{{Version: v, Until: 10}}}
	if is := l.Pending(); is != v {
		t.Fatalf("version %v is pending, want %v", is, v)
	}
	at := int64(10 + keepEnded)
	if err := l.bringIntoForce(&InForce{Version: v, From: at + 1}, at); err != nil {
		t.Fatal(err)
	}
	if is := l.Pending(); is != (Version{}) {
		t.Errorf("version %v is pending, want none", is)
	}
}
