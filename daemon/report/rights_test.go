package report

import (
	"cmp"
	"strings"
	"testing"

	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/server/admin/api"
	"github.com/georld/rld/sticky/lease"
	"github.com/georld/rld/sticky/route"
)

// plainRights is an agent of rights with a state and a remedy.
type plainRights struct {
	state  agent.Status
	remedy string
}

func (r plainRights) Status() agent.Status           { return r.state }
func (r plainRights) WhyNot(why epoch.Reason) string { return cmp.Or(r.remedy, why.String()) }

// TestNoRights: the line of /readyz?verbose, the text of a degradation and an
// explanation have the reason, and the remedy if the agent knows one.
func TestNoRights(t *testing.T) {
	holds := plainRights{state: agent.Status{Holds: true}}
	alone := plainRights{agent.Status{Reason: epoch.ReasonAlone}, "start the daemons with a disk"}
	before := plainRights{state: agent.Status{Reason: epoch.ReasonNoCluster}}
	if c := rightsCheck(holds); c.Name != "rights" || c.State != api.CheckOK {
		t.Errorf("a daemon with rights: %+v", c)
	}
	if c := rightsCheck(alone); c.State != api.CheckWaiting || !strings.Contains(c.Text, alone.remedy) {
		t.Errorf("a daemon without: %+v", c)
	}
	for _, c := range []struct {
		rights plainRights
		reason node.Degraded
		want   string
	}{
		{alone, node.NoRights, alone.remedy},
		{holds, node.NoRights, "rld budget gives the reason"}, // it had none a moment ago
		{plainRights{state: agent.Status{Holds: true, Since: 1_000}}, node.NoRights, "began before 1970-01-01T00:00:01Z"},
		{before, node.NoCluster, "rld cluster init"},
		{plainRights{before.state, "add the region again"}, node.NoCluster, "add the region again"},
		{alone, node.KeysFull, "raise --max-keys"},
	} {
		r := New(Config{Rights: c.rights, Engine: &statsEngine{}})
		if text := r.degradation(c.reason, node.Stats{}); !strings.Contains(text, c.want) {
			t.Errorf("%+v, %v: %q, want %q in it", c.rights, c.reason, text, c.want)
		}
	}
	e, st := &node.ExplainedRights{Why: epoch.ReasonAlone}, &node.Status{}
	if g := New(Config{Rights: alone}).rightsGate(e, st); g.WhyNot != alone.remedy {
		t.Errorf("explained: %q, want %q", g.WhyNot, alone.remedy)
	}
	if g := New(Config{}).rightsGate(e, st); g.WhyNot != epoch.ReasonAlone.String() {
		t.Errorf("explained without an agent: %q", g.WhyNot)
	}
}

// TestNoOwnerOfOldWindows: a key without an owner in windows that a former
// cluster may have used is explained by these, not by its voters.
func TestNoOwnerOfOldWindows(t *testing.T) {
	e := &lease.Explanation{Owner: route.Owner{Lost: 1_000}}
	if got := unreachable(e, nil, &node.Status{}, false); !strings.Contains(got, "began before 1970-01-01T00:00:01Z") {
		t.Errorf("%q", got)
	}
}
