package daemon

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky/quorum"
)

// layoutsRules are limits with and without a home region, and others.
func layoutsRules(t *testing.T) *rules.Set {
	login, pay := perMinute(5, rules.Deny), perMinute(5, rules.Deny)
	login.Name, pay.Home = "login", "us"
	return strictRules(t, rules.Node{Key: "login", Limit: login}, rules.Node{Key: "pay", Limit: pay},
		rules.Node{Key: "user", Limit: &rules.Limit{Unit: rules.Minute, Multiplier: 1, Requests: 5}})
}

// TestStrictPage describes the active layout, and what the next one waits for.
func TestStrictPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStrictWorld(t, 4, layoutsRules(t), "us", "eu")
		defer w.closeDisks()
		d := w.operator(w.in("us")[0])
		s := d.report.StrictPage().Strict
		if s.Layout != 1 || s.Next != nil || len(s.Regions) != 2 || len(s.Regions[0].Voters) != 3 {
			t.Fatalf("at first: %+v", s)
		}
		if len(s.Pins) != 1 || s.Pins[0].Rule != "pay" || s.Pins[0].Region != "us" || len(s.Warnings) > 0 ||
			s.Regions[0].Weight != 0.5 || s.MaxKeys == 0 {
			t.Errorf("at first: %+v", s)
		}
		id := s.Pins[0].ID
		d.engine.SetRules(strictRules(t, rules.Node{Key: "login", Limit: perMinute(5, rules.Deny)}), node.MatcherOptions{})
		if p := d.report.StrictPage().Strict.Pins[0]; p.Rule != "" || p.ID != id {
			t.Errorf("pin of a removed rule: %+v", p)
		}
		w.layouts.change(func(report quorum.Reports) {
			next := w.layouts.log.Active.Clone()
			next.Regions[1].Replicas, next.Pins = []string{"us-0", "us-1", "us-3"}, nil
			if err := w.layouts.log.Announce(next, report); err != nil {
				t.Fatal(err)
			}
		})
		w.within(20*time.Second, "layout 2 is active", func() bool {
			s = d.report.StrictPage().Strict
			return s.Layout == 2 && s.Next == nil && len(s.Pins) == 0
		})
		if x := w.operator(w.in("us")[2]).report.StrictPage().Strict; x.Acceptor != nil {
			t.Errorf("us-2 is not a voter any more: %+v", x.Acceptor)
		}
		w.kill(w.in("us")[1])
		w.layouts.change(func(report quorum.Reports) {
			next := w.layouts.log.Active.Clone()
			next.Regions[1].Replicas = []string{"us-1", "us-2", "us-3"}
			if err := w.layouts.log.Announce(next, report); err != nil {
				t.Fatal(err)
			}
		})
		w.kill(w.in("us")[3])
		time.Sleep(5 * time.Second)
		s = d.report.StrictPage().Strict
		if s.Layout != 2 || s.Next == nil || s.Next.Number != 3 || len(s.Next.WaitsFor) == 0 || s.Next.WaitsFor[len(s.Next.WaitsFor)-1].Name != "us-3" {
			t.Errorf("without a majority: %+v, %+v", s, s.Next)
		}
		if len(s.Warnings) == 0 || !strings.HasPrefix(s.Warnings[0], "1 of the 3 voters of us are reachable") {
			t.Errorf("without a majority: %q", s.Warnings)
		}
	})
}
