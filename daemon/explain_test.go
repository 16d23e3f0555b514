package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/georld/rld/config"
	"github.com/georld/rld/daemon/overage"
	"github.com/georld/rld/daemon/report"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
	"github.com/georld/rld/server/web"
)

// aloneWith returns a daemon without a region and without edges.
func aloneWith(t *testing.T, all ...rules.Node) *daemon {
	t.Helper()
	e := newEngineOf(t, 4, all...)
	return &daemon{Options: Options{Config: config.Default()}, engine: e, report: newReport(e, report.Config{})}
}

// newReport returns the report of an engine, as a daemon without edges has it.
func newReport(e *Engine, c report.Config) *report.Report {
	c.Engine, c.Wall, c.LimitsFault = e, time.Now, func() string { return "" }
	if c.Ready == nil {
		c.Ready = func() error { return errors.New("starting") }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Keyring = func() *api.KeyringState { return nil }
	c.Settings = (&daemon{Options: Options{Config: config.Default()}}).settings()
	return report.New(c)
}

// asked returns a query of descriptors, each KEY=VALUE,KEY=VALUE.
func asked(hits uint64, descriptors ...string) api.ExplainQuery {
	q := api.ExplainQuery{Domain: "edge", Hits: hits}
	for _, text := range descriptors {
		var d api.ExplainDescriptor
		for entry := range strings.SplitSeq(text, ",") {
			key, value, _ := strings.Cut(entry, "=")
			d.Entries = append(d.Entries, api.ExplainEntry{Key: key, Value: value})
		}
		q.Descriptors = append(q.Descriptors, d)
	}
	return q
}

func (d *daemon) mustExplain(t *testing.T, q api.ExplainQuery) api.ExplainAnswer {
	t.Helper()
	a, err := d.report.Explain(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// answer is an answer over HTTP.
type answer struct {
	Status  int
	Headers []api.Header
}

// TestExplainPredicts explains a call twice and then makes it, with every
// algorithm, until calls are denied. The call gets the second explanation.
func TestExplainPredicts(t *testing.T) {
	limit := func(a rules.Algorithm, burst uint32) *rules.Limit {
		return &rules.Limit{Algorithm: a, Unit: rules.Minute, Multiplier: 1, Requests: 5, Burst: burst}
	}
	for name, l := range map[string]*rules.Limit{
		"fixed_window": limit(rules.FixedWindow, 0), "sliding_window": limit(rules.SlidingWindow, 0),
		"sliding_log": limit(rules.SlidingLog, 0), "token_bucket": limit(rules.TokenBucket, 8),
		"leaky_bucket": limit(rules.LeakyBucket, 3),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := aloneWith(t, rules.Node{Key: "user", Limit: l})
				denied := 0
				for i := range 12 {
					time.Sleep(700 * time.Millisecond)
					q := asked(uint64(1+i%2), "user=a")
					before, got := d.mustExplain(t, q), answer{}
					if again := d.mustExplain(t, q); cmp.Diff(again, before) != "" {
						t.Fatalf("hit %d: explained again: %s", i, cmp.Diff(again, before))
					}
					c := &node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(q.Hits, "user", "a")}}
					if err := d.engine.Check(context.Background(), c); err != nil {
						t.Fatal(err)
					}
					s := d.settings()
					var fields []web.Field
					got.Status, fields = web.Preview(c, &s, time.Now())
					for _, f := range fields {
						got.Headers = append(got.Headers, api.Header(f))
					}
					if diff := cmp.Diff(got, answer{before.HTTPStatus, before.Headers}); diff != "" {
						t.Errorf("hit %d (-answer +explanation):\n%s", i, diff)
					}
					v := before.Descriptors[0].Verdict
					if v.Allowed != c.Decision.Allowed || v.Remaining != c.Statuses[0].Remaining || before.Allowed != v.Allowed {
						t.Errorf("hit %d: explained %+v, got %+v", i, v, c.Statuses[0])
					}
					if !v.Allowed {
						denied++
						if before.RefusedBy != "user" || before.Descriptors[0].Estimate.Passes {
							t.Errorf("hit %d: denied by %q, %+v", i, before.RefusedBy, before.Descriptors[0].Estimate)
						}
					}
				}
				if denied == 0 {
					t.Error("no hit was denied")
				}
			})
		})
	}
}

// TestExplainCountsNothing: explanations change no tally, no sketch and no
// count of unmatched descriptors.
func TestExplainCountsNothing(t *testing.T) {
	d := aloneWith(t, rules.Node{Key: "user", Limit: &rules.Limit{Unit: rules.Hour, Multiplier: 1, Requests: 5}})
	for range 10 {
		d.mustExplain(t, asked(7, "user=a", "nobody=b"))
	}
	if known, unknown := d.engine.Unmatched(); known+unknown > 0 {
		t.Errorf("%d and %d unmatched", known, unknown)
	}
	if s := d.engine.Stats(); s.LiveKeys > 0 {
		t.Errorf("%d keys live", s.LiveKeys)
	}
	if k := d.engine.Hottest(); len(k) > 0 {
		t.Errorf("hot: %v", k)
	}
	d.engine.Tallies(func(domain, rule string, got quota.Tally) {
		if got != (quota.Tally{}) {
			t.Errorf("%s: %+v", rule, got)
		}
	})
}

// TestExplainSeveral: descriptors of one counter add up, and a call that one of
// them denies changes none.
func TestExplainSeveral(t *testing.T) {
	hour := func(n uint32) *rules.Limit { return &rules.Limit{Unit: rules.Hour, Multiplier: 1, Requests: n} }
	d := aloneWith(t, rules.Node{Key: "user", Limit: hour(5)}, rules.Node{Key: "org", Limit: hour(1)},
		rules.Node{Key: "free", Limit: &rules.Limit{Unlimited: true}}, rules.Node{Key: "staff"})
	a := d.mustExplain(t, asked(2, "user=a", "user=a", "free=x", "nobody=b"))
	for i, want := range []uint64{3, 1} {
		if got := a.Descriptors[i].Verdict.Remaining; got != want {
			t.Errorf("descriptor %d: remaining %d, want %d", i, got, want)
		}
	}
	if x := a.Descriptors[2]; x.Limit != nil || x.WhyNoLimit != api.LimitUnlimited || x.Verdict != nil {
		t.Errorf("unlimited: %+v", x)
	}
	if x := a.Descriptors[3]; x.Rule != nil || x.WhyNoRule != `no rule begins with "nobody"` {
		t.Errorf("no rule: %+v", x)
	}
	a = d.mustExplain(t, asked(2, "user=a", "org=b"))
	if a.Allowed || a.RefusedBy != "org" || a.Descriptors[0].Verdict.Remaining != 5 || !a.Descriptors[1].Verdict.Never {
		t.Errorf("denied: %+v, %+v and %+v", a, a.Descriptors[0].Verdict, a.Descriptors[1].Verdict)
	}
	for _, q := range []api.ExplainQuery{{Hits: 1}, {Domain: "edge", Hits: 1}, asked(1, "user=\xff")} {
		if a, err := d.report.Explain(context.Background(), q); err == nil {
			t.Errorf("%+v is explained: %+v", q, a)
		}
	}
}

// operator returns the daemon of a resident, without edges.
func (w *strictWorld) operator(r *resident) *daemon {
	c := config.Default()
	c.Region, c.Name = r.region, r.name
	e := r.cluster.engine
	m := overage.New(overage.Config{Engine: e, Region: r.region, Regions: w.regions})
	return &daemon{Options: Options{Config: c}, engine: e, cluster: r.cluster, strict: w.stricts[r.name], report: newReport(e, report.Config{
		Cluster: clusterState{r.cluster}, Strict: w.stricts[r.name], WorstRule: m.WorstRule,
		Region: r.region, Name: r.name, MaxKeys: c.MaxKeys, Log: e.strict.log,
	})}
}

// TestExplainStrict explains a key of another owner before and during a
// partition of its region. Explanations charge nothing.
func TestExplainStrict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStrictWorld(t, 3, strictRules(t, rules.Node{Key: "login", Limit: perMinute(5, rules.Deny)}), "us", "eu")
		defer w.closeDisks()
		user := ""
		for i := 0; user == "" || w.ownerOf(w.in("us")[0], "login", user).region != "eu"; i++ {
			user = fmt.Sprint("g", i)
		}
		us := w.in("us")[0]
		owner := w.ownerOf(us, "login", user)
		d, q := w.operator(us), asked(1, "login="+user)
		untilInto(5 * time.Second)
		for left := uint64(5); left > 3; left-- {
			for range 3 {
				a := d.mustExplain(t, q)
				if v := a.Descriptors[0].Verdict; !a.Allowed || v.Remaining != left-1 || v.Degraded != "" {
					t.Fatalf("%d are left: %+v", left, v)
				}
			}
			if !us.check(descriptor(1, "login", user)).Decision.Allowed {
				t.Fatal("denied")
			}
		}
		time.Sleep(2300 * time.Millisecond)
		x := d.mustExplain(t, q).Descriptors[0]
		l := x.StrictKey
		if l == nil || l.Owner == nil || l.Owner.Name != owner.name || l.Region != "eu" || l.Self || !l.Reachable || l.Layout != 1 ||
			l.Source != api.SourceGrants || l.Ballot.Owner.Name != owner.name || l.Lease.Used != 2 || x.Estimate != nil {
			t.Fatalf("before: %+v", l)
		}
		if c := x.Counts; len(c) != 2 || c[1].Region != "us" || c[1].Hits != 2 || c[0].StalenessSeconds == nil || c[0].Stamp == "" {
			t.Errorf("counts: %+v", c)
		}
		at := w.operator(owner).mustExplain(t, q).Descriptors[0]
		if l := at.StrictKey; !l.Self || l.Source != api.SourceOwner || *l.Watermark.Consumed != 2 || *l.Watermark.Limit != 5 ||
			*l.Watermark.Watermark < 2 || l.Ballot.Round == 0 || len(l.Leases) != 1 ||
			l.Leases[0].Lessee.Name != us.name || l.Leases[0].Granted-l.Leases[0].Returned != 2 {
			t.Errorf("at the owner: %+v, %+v", l, l.Watermark)
		}
		if c := at.Counts; c[1].Hits != 2 || *c[1].StalenessSeconds <= 0 {
			t.Errorf("counts at the owner: %+v", c)
		}

		w.isolate("eu")
		time.Sleep(3 * time.Second)
		a := d.mustExplain(t, q)
		x = a.Descriptors[0]
		if a.Allowed || a.HTTPStatus != 503 || x.Verdict.Degraded != "owner_unreachable" || x.StrictKey.Reachable ||
			!strings.HasPrefix(x.StrictKey.WhyNot, "it has not answered within ") || x.Counts[0].StalenessSeconds == nil || *x.Counts[0].StalenessSeconds < 1 {
			t.Errorf("partitioned: %+v, %+v, %+v", a, x.StrictKey, x.Verdict)
		}
		// A canceled explanation is answered too.
		short, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		begin := time.Now()
		a, err := d.report.Explain(short, q)
		if cancel(); err != nil || a.Descriptors[0].Verdict.Degraded != "owner_unreachable" || time.Since(begin) > 10*time.Millisecond {
			t.Errorf("canceled: %+v after %v, %v", a.Descriptors, time.Since(begin), err)
		}
		for range 12 {
			us.check(descriptor(1, "login", user))
		}
		x = d.mustExplain(t, q).Descriptors[0]
		if x.Verdict.Degraded != "circuit_breaker_open" || x.StrictKey.WhyNot != "its circuit breaker is open" || x.StrictKey.Breaker.State != api.BreakerOpen {
			t.Errorf("open: %+v, %+v", x.StrictKey, x.Verdict)
		}
		time.Sleep(3 * time.Second) // all peers of eu are silent
		w.checkPartitionedStatus(d)
	})
}

// checkPartitionedStatus checks the status of us during a partition from eu.
func (w *strictWorld) checkPartitionedStatus(d *daemon) {
	w.t.Helper()
	s := d.report.Status()
	if len(s.Regions) != 2 || !s.Regions[0].Partitioned || s.Regions[0].PartitionedSince == nil || s.Regions[1].Partitioned || len(s.Regions[1].Members) != 3 {
		w.t.Errorf("regions: %+v", s.Regions)
	}
	if since := time.Since(*s.Regions[0].PartitionedSince); since < 2*time.Second || since > time.Minute {
		w.t.Errorf("partitioned since %v", since)
	}
	if len(s.Breakers) != 1 || s.Breakers[0].State != api.BreakerOpen || s.Breakers[0].Owner.Region != "eu" || s.Breakers[0].Since == nil {
		w.t.Errorf("circuit breakers: %+v", s.Breakers)
	}
	if s.Strict == nil || s.Strict.Layout != 1 || s.Strict.Next != nil || s.Strict.Acceptor == nil || !s.Strict.Acceptor.Voting {
		w.t.Errorf("strict: %+v", s.Strict)
	}
	reasons := map[string]uint64{}
	for _, r := range s.Degraded {
		reasons[r.Reason] = r.Answers
	}
	if reasons["owner_unreachable"] == 0 || reasons["circuit_breaker_open"] == 0 {
		w.t.Errorf("degraded: %+v", s.Degraded)
	}
}
