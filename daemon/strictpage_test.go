package daemon

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
)

// layoutsRules are limits that can be pinned, and others.
func layoutsRules(t *testing.T) *rules.Set {
	login, pay := perMinute(5, rules.Deny), perMinute(5, rules.Deny)
	login.Name, pay.Home = "login", "us"
	return strictRules(t, rules.Node{Key: "login", Limit: login}, rules.Node{Key: "pay", Limit: pay},
		rules.Node{Key: "user", Limit: &rules.Limit{Unit: rules.Minute, Multiplier: 1, Requests: 5}})
}

// TestLayoutIsChanged changes pins and voters at one daemon, and waits until
// all daemons have the layout.
func TestLayoutIsChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStrictWorld(t, 4, layoutsRules(t), "us", "eu")
		defer w.closeDisks()
		d := w.operator(w.in("us")[0])
		w.within(30*time.Second, "all regions' replicas are known to vote", func() bool {
			s := d.report.StrictPage().Strict
			return s.Layout == 1 && len(s.Regions) == 2 && len(s.Regions[0].Voters) == 3 && s.Regions[0].Voters[0].Voting != nil
		})
		if s := d.report.StrictPage().Strict; len(s.Pins) != 1 || s.Pins[0].Rule != "pay" || s.Pins[0].Region != "us" || len(s.Warnings) > 0 ||
			s.Regions[0].Weight != 0.5 || s.MaxKeys == 0 {
			t.Errorf("at first: %+v", s)
		}
		w.refusals(d)
		a, err := d.report.Layout(api.PinRule, api.LayoutRequest{Rule: "login", Region: "eu", DryRun: true})
		if err != nil || a.Before != 1 || a.After != 2 || !a.DryRun || len(a.Changes) != 1 ||
			a.Changes[0] != "home region of edge: login: eu, was by the hash of each key" {
			t.Errorf("dry run: %+v, %v", a, err)
		}
		if s := d.report.StrictPage().Strict; s.Layout != 1 || s.Next != nil {
			t.Errorf("a dry run changed the layout: %+v", s)
		}
		for i, step := range []struct {
			command api.LayoutCommand
			q       api.LayoutRequest
			changes string
		}{
			{api.PinRule, api.LayoutRequest{Rule: "login", Region: "eu"}, "home region of edge: login: eu, was by the hash of each key"},
			{api.PinRule, api.LayoutRequest{Rule: "edge: pay", Region: "eu"}, "home region of edge: pay: eu, was us"},
			{api.UnpinRule, api.LayoutRequest{Rule: "login"}, "home region of edge: login: by the hash of each key, was eu"},
			{
				api.SetVoters,
				api.LayoutRequest{Voters: []string{"eu-3", "eu-1", "eu-0"}, Region: "eu"},
				"voters of eu: eu-0, eu-1, eu-3, were eu-0, eu-1, eu-2",
			},
			{api.SetVoters, api.LayoutRequest{Voters: []string{"us-0"}, Region: "us"}, "voters of us: us-0, were us-0, us-1, us-2"},
		} {
			number := uint64(i + 2)
			var a api.LayoutAnswer
			var err error
			w.within(20*time.Second, "the voters are known to vote", func() bool {
				a, err = w.operator(w.in("eu")[0]).report.Layout(step.command, step.q) // at the daemon that proposes layouts
				return err == nil || !strings.Contains(err.Error(), "known to vote")
			})
			if err != nil || a.Before != number-1 || a.After != number || strings.Join(a.Changes, "; ") != step.changes || a.Next == "" {
				t.Fatalf("layout %d: %+v, %v", number, a, err)
			}
			for _, r := range w.alive() {
				o := w.operator(r)
				w.within(20*time.Second, "the layout is in force at "+r.name, func() bool {
					s := o.report.StrictPage().Strict
					return s.Layout == number && s.Next == nil
				})
			}
		}
		s := d.report.StrictPage().Strict
		if len(s.Warnings) != 2 || !strings.HasPrefix(s.Warnings[0], "us has 1 voter: ") ||
			s.Warnings[1] != "the limits have the home region us for edge: pay, but it is pinned to eu: rld strict pin pay us changes it" {
			t.Errorf("warnings: %q", s.Warnings)
		}
		if x := w.operator(w.in("us")[1]).report.StrictPage().Strict; x.Acceptor != nil {
			t.Errorf("us-1 is not a voter any more: %+v", x.Acceptor)
		}
	})
}

// refusals sends invalid commands and checks their errors.
func (w *strictWorld) refusals(d *daemon) {
	w.t.Helper()
	for _, tc := range []struct {
		command api.LayoutCommand
		q       api.LayoutRequest
		says    string
	}{
		{api.SetVoters, api.LayoutRequest{Voters: []string{"us-0", "us-1"}}, `2 voters of the 4 daemons of region "us": want an odd number`},
		{api.SetVoters, api.LayoutRequest{Voters: []string{"us-0", "us-1", "us-2", "us-3"}}, `region "us": 4 voters: want an odd number up to 9`},
		{api.SetVoters, api.LayoutRequest{Voters: []string{"us-0", "us-9", "us-2"}}, `voter "us-9" of region "us" is not known: start it first`},
		{api.SetVoters, api.LayoutRequest{Voters: []string{"us-0", "us-0", "us-2"}}, `"us-0" is given twice`},
		{api.SetVoters, api.LayoutRequest{Voters: []string{"us-2", "us-1", "us-0"}}, "layout 1 is the same: there is nothing to change"},
		{api.SetVoters, api.LayoutRequest{Voters: []string{"ap-0"}, Region: "ap"}, `there is no region "ap" in the layout: want one of eu, us`},
		{api.PinRule, api.LayoutRequest{Rule: "login", Region: "ue"}, `there is no region "ue" in the layout: want one of eu, us`},
		{api.PinRule, api.LayoutRequest{Rule: "lgoin", Region: "eu"}, `(did you mean "login"?)`},
		{api.PinRule, api.LayoutRequest{Rule: "user", Region: "eu"}, `"user" has no home region: only limits that are strict or of placement owner do`},
		{api.PinRule, api.LayoutRequest{Rule: "pay", Region: "us"}, "layout 1 is the same: there is nothing to change"},
		{api.UnpinRule, api.LayoutRequest{Rule: "login"}, "layout 1 is the same: there is nothing to change"},
		{api.UnpinRule, api.LayoutRequest{Rule: "00000000000000aa"}, `there is no rule "00000000000000aa"`},
	} {
		for _, dry := range []bool{true, false} {
			asked := d
			if tc.q.DryRun = dry; !dry { // at the daemon that proposes layouts
				if asked = w.operator(w.in("eu")[0]); tc.command == api.SetVoters && tc.q.Region == "" {
					tc.q.Region = "us"
				}
			}
			if a, err := asked.report.Layout(tc.command, tc.q); err == nil || !strings.Contains(err.Error(), tc.says) ||
				strings.Contains(err.Error(), "sticky") {
				w.t.Errorf("%s %+v: %+v, %v, want %s", tc.command, tc.q, a, err, tc.says)
			}
		}
	}
}

// TestLayoutWaits: a pending layout lists the missing voters, the pin of a
// removed rule can be removed, and a daemon that cannot reach a region changes
// nothing.
func TestLayoutWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStrictWorld(t, 3, layoutsRules(t), "us", "eu")
		defer w.closeDisks()
		d := w.operator(w.in("us")[0])
		w.within(30*time.Second, "layout 1 is in force", func() bool { return d.report.StrictPage().Strict.Layout == 1 })
		id := d.report.StrictPage().Strict.Pins[0].ID
		d.engine.SetRules(strictRules(t, rules.Node{Key: "login", Limit: perMinute(5, rules.Deny)}), node.MatcherOptions{})
		if p := d.report.StrictPage().Strict.Pins[0]; p.Rule != "" || p.ID != id {
			t.Errorf("pin of a removed rule: %+v", p)
		}
		w.kill(w.in("us")[1])
		w.kill(w.in("us")[2])
		time.Sleep(5 * time.Second)
		_, err := d.report.Layout(api.UnpinRule, api.LayoutRequest{Rule: id})
		if err == nil || !strings.Contains(err.Error(), "1 of the 3 voters of us are reachable, want at least 2") {
			t.Errorf("without a majority: %v", err)
		}
		s := d.report.StrictPage().Strict
		if s.Layout != 1 || s.Next != nil || len(s.Warnings) == 0 || !strings.HasPrefix(s.Warnings[0], "1 of the 3 voters of us are reachable") {
			t.Errorf("without a majority: %+v", s)
		}
		// A daemon that has just started has seen no layout in force.
		d = w.operator(w.in("us")[0])
		if s = d.report.StrictPage().Strict; s.Layout != 0 || s.Next == nil || s.Next.Number != 1 || len(s.Next.WaitsFor) != 2 || s.Next.WaitsFor[0].Name != "us-1" ||
			s.Next.WaitsFor[0].Why == "" {
			t.Errorf("just started: %+v, %+v", s, s.Next)
		}
		// A region may have been reachable a moment ago.
		w.in("us")[1].start()
		w.in("us")[2].start()
		w.within(60*time.Second, "whole again", func() bool {
			a, err := d.report.Layout(api.UnpinRule, api.LayoutRequest{Rule: id, DryRun: true})
			return err == nil && a.After == 2
		})
		w.isolate("eu")
		time.Sleep(3 * time.Second)
		_, err = d.report.Layout(api.UnpinRule, api.LayoutRequest{Rule: id})
		if err == nil || !strings.Contains(err.Error(), "0 of the 3 voters of eu are reachable, want at least 2") {
			t.Errorf("in a partition: %v", err)
		}
		w.heal()
		if _, err = d.report.Layout(api.UnpinRule, api.LayoutRequest{Rule: id}); err == nil {
			t.Error("any daemon proposes layouts")
		}
		first := w.operator(w.in("eu")[0])
		w.within(60*time.Second, "the pin can be removed", func() bool {
			_, err = first.report.Layout(api.UnpinRule, api.LayoutRequest{Rule: id})
			return err == nil
		})
		w.within(20*time.Second, "layout 2 is in force", func() bool {
			s = d.report.StrictPage().Strict
			return s.Layout == 2 && len(s.Pins) == 0
		})
	})
}
