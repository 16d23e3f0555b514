package daemon

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// TestMostDenied: the rule that refuses most of late is told with its rate, and is
// forgotten when it does not any more.
func TestMostDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hour := &rules.Limit{Unit: rules.Hour, Multiplier: 1, Requests: 1}
		d := aloneWith(t, rules.Node{Key: "user", Limit: hour}, rules.Node{Key: "org", Limit: hour}, rules.Node{Key: "free"})
		for range 200 { // 20 seconds: org is refused 10 times a second, and user 20 times
			for i, key := range []string{"user", "org", "user"} {
				c := &node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(1, key, fmt.Sprint(i/3))}}
				if err := d.engine.CheckAt(d.engine.Now(), c); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(100 * time.Millisecond)
			if d.engine.Now().Mono%recentEvery < 100*time.Millisecond {
				d.recent.look()
			}
		}
		u := d.recent.mostDenied()
		if u == nil || u.Rule != "user" || *u.DeniedPerSecond < 19 || *u.DeniedPerSecond > 21 {
			t.Errorf("%+v", u)
		}
		for range 3 {
			time.Sleep(recentEvery)
			d.recent.look()
		}
		if u := d.recent.mostDenied(); u != nil {
			t.Errorf("nobody is refused any more: %+v", u)
		}
	})
}

// TestDegradations: a degradation is told with its begin and how many answers it
// touched, until none was for a while.
func TestDegradations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := aloneWith(t, rules.Node{Key: "user", Limit: &rules.Limit{Unit: rules.Hour, Multiplier: 1, Requests: 1_000}})
		e, err := NewEngine(EngineConfig{Node: node.Default(), MaxKeys: 100})
		if err != nil {
			t.Fatal(err)
		}
		e.SetRules(d.engine.Rules(), node.MatcherOptions{})
		d.engine, d.recent = e, newRecentState(e, time.Now)
		if all := d.recent.degradations(); len(all) > 0 {
			t.Errorf("at first: %+v", all)
		}
		begin := time.Now()
		full := d.engine.Stats().MaxKeys
		for i := range full + 50 {
			c := &node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(1, "user", fmt.Sprint(i))}}
			if err := d.engine.CheckAt(d.engine.Now(), c); err != nil {
				t.Fatal(err)
			}
		}
		touched := d.engine.Stats().Degraded[node.KeysFull]
		d.recent.look()
		time.Sleep(time.Second)
		all := d.recent.degradations()
		if len(all) != 1 || all[0].Reason != "keys_full" || all[0].Answers != touched || touched == 0 || !all[0].Since.Equal(begin) || all[0].Text == "" {
			t.Errorf("%+v, %d touched since %v", all, touched, begin)
		}
		time.Sleep(degradedQuiet)
		if all := d.recent.degradations(); len(all) > 0 {
			t.Errorf("at last: %+v", all)
		}
	})
}
