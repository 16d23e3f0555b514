package daemon

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/daemon/report"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// TestMostDenied: the status names the rule with the most recent denials and
// its rate, until denials end.
func TestMostDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hour := &rules.Limit{Unit: rules.Hour, Multiplier: 1, Requests: 1}
		d := aloneWith(t, rules.Node{Key: "user", Limit: hour}, rules.Node{Key: "org", Limit: hour}, rules.Node{Key: "free"})
		go d.report.Run(t.Context())
		for range 200 { // 20 seconds: 10 hits a second of org are denied, and 20 of user
			for i, key := range []string{"user", "org", "user"} {
				c := &node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(1, key, fmt.Sprint(i/3))}}
				if err := d.engine.CheckAt(d.engine.Now(), c); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		u := d.report.Status().Denied
		if u == nil || u.Rule != "user" || *u.DeniedPerSecond < 19 || *u.DeniedPerSecond > 21 {
			t.Errorf("%+v", u)
		}
		time.Sleep(6 * time.Second)
		if u := d.report.Status().Denied; u != nil {
			t.Errorf("without denials: %+v", u)
		}
	})
}

// TestDegradations: the status has the start of a degradation and the number of
// degraded answers, until there are none for a while.
func TestDegradations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := aloneWith(t, rules.Node{Key: "user", Limit: &rules.Limit{Unit: rules.Hour, Multiplier: 1, Requests: 1_000}})
		e, err := NewEngine(EngineConfig{Node: node.Default(), MaxKeys: 100})
		if err != nil {
			t.Fatal(err)
		}
		e.SetRules(d.engine.Rules(), node.MatcherOptions{})
		d.engine, d.report = e, newReport(e, report.Config{})
		if all := d.report.Status().Degraded; len(all) > 0 {
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
		affected := d.engine.Stats().Degraded[node.KeysFull]
		d.report.Status()
		time.Sleep(time.Second)
		all := d.report.Status().Degraded
		if len(all) != 1 || all[0].Reason != "keys_full" || all[0].Answers != affected || affected == 0 || !all[0].Since.Equal(begin) || all[0].Text == "" {
			t.Errorf("%+v, %d degraded since %v", all, affected, begin)
		}
		time.Sleep(10 * time.Second)
		if all := d.report.Status().Degraded; len(all) > 0 {
			t.Errorf("at last: %+v", all)
		}
	})
}
