package report

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/daemon/overage"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
	"github.com/georld/rld/server/web"
)

// Explain answers /v1/explain: the decision that a call would get now, and why.
// It fails for an invalid query.
func (r *Report) Explain(ctx context.Context, q api.ExplainQuery) (api.ExplainAnswer, error) {
	c := callOf(&q)
	if err := c.CheckText(); err != nil {
		return api.ExplainAnswer{}, err
	}
	hits, set, err := r.Engine.Peek(ctx, c)
	if err != nil {
		return api.ExplainAnswer{}, err
	}
	x := r.newExplainer()
	out := api.ExplainAnswer{
		Self: r.self(), Domain: q.Domain, Hits: q.Hits, Shadow: r.Settings.Shadow, Allowed: c.Decision.Allowed,
	}
	for i := range c.Statuses {
		out.Descriptors = append(out.Descriptors, x.descriptor(c, hits, set, i))
	}
	if i := c.Decision.Refused; !c.Decision.Allowed && i >= 0 {
		out.RefusedBy = "override"
		if r := c.Statuses[i].Rule; r != nil {
			out.RefusedBy = r.Display()
		}
	}
	var fields []web.Field
	out.HTTPStatus, fields = web.Preview(c, &r.Settings, r.Wall())
	for _, f := range fields {
		out.Headers = append(out.Headers, api.Header{Name: f.Name, Value: f.Value})
	}
	return out, nil
}

// callOf returns the call of a query, which charges nothing.
func callOf(q *api.ExplainQuery) *node.Call {
	c := &node.Call{Domain: q.Domain, Peek: true}
	for _, asked := range q.Descriptors {
		d := rules.Descriptor{Hits: q.Hits}
		for _, e := range asked.Entries {
			d.Entries = append(d.Entries, rules.Entry{Key: e.Key, Value: e.Value})
		}
		c.Descriptors = append(c.Descriptors, d)
	}
	return c
}

// explainer explains the descriptors of one call.
type explainer struct {
	r       *Report
	names   map[crdt.Incarnation]api.DaemonRef // of live daemons
	regions []string                           // configured or known, sorted
	stamps  map[string]hlc.Timestamp           // the latest of each region, 0 if unknown
}

func (r *Report) newExplainer() *explainer {
	x := &explainer{r: r, names: map[crdt.Incarnation]api.DaemonRef{}, stamps: map[string]hlc.Timestamp{}}
	if r.Cluster == nil {
		return x
	}
	for _, m := range r.Cluster.Members() {
		x.names[m.ID] = api.DaemonRef{Region: m.Region, Name: m.Name, Incarnation: m.ID.String()}
	}
	x.names[r.Engine.Incarnation()] = r.self()
	for _, name := range r.Cluster.Regions() {
		x.stamps[name] = 0
	}
	stamps := r.Engine.Stamps()
	for id, m := range x.names {
		x.stamps[m.Region] = max(x.stamps[m.Region], stamps[id])
	}
	x.regions = slices.Sorted(maps.Keys(x.stamps))
	return x
}

// ref returns the name of an incarnation, if known.
func (x *explainer) ref(id crdt.Incarnation) api.DaemonRef {
	if r, ok := x.names[id]; ok {
		return r
	}
	return api.DaemonRef{Incarnation: id.String()}
}

// descriptor explains one descriptor of a call. It sets the status to that of a
// charged call.
func (x *explainer) descriptor(c *node.Call, hits []node.Hit, set *rules.Set, i int) api.Explained {
	st, h := &c.Statuses[i], &hits[i]
	out := api.Explained{Rule: ruleRef(st.Rule)}
	if st.Limit == nil {
		if st.Rule == nil {
			out.WhyNoRule, out.Closest = whyNoRule(set, c.Domain, c.Descriptors[i].Entries)
		} else {
			out.WhyNoLimit = whyNoLimit(st)
		}
		return out
	}
	out.Limit, out.Key = limitInForce(st), keyText(x.r.Engine.OriginalKey(h.Key))
	if next, two := x.r.Engine.NextKey(c, i); two {
		out.NextKey = keyText(next)
	}
	e, links, now := x.r.Engine.Explain(h)
	out.Counts = x.counts(st.Limit, &e, links, now)
	if e.Ledger == nil {
		out.Estimate = &api.EstimateGate{
			Counted: e.Used, Extrapolated: e.Elsewhere, Capacity: e.Capacity, Passes: !deniedBy(st, node.EstimateGate),
		}
	}
	out.Rights = x.r.rightsGate(e.Rights, st)
	out.StrictKey, out.Reserve = x.strictKey(e.Ledger, st, now, false), x.strictKey(e.Reserve, st, now, true)
	if c.Decision.Allowed {
		charge(st, hitsUpTo(hits, i), e.Window, now)
	}
	out.Verdict = verdictOf(st)
	return out
}

// deniedBy reports whether a gate, alone or together with the other one, denied
// hits.
func deniedBy(st *node.Status, g node.Gate) bool {
	return st.Gate == g || st.Gate == node.BothGates && g <= node.BothGates
}

// hitsUpTo returns the hits that descriptors 0 to i of a call request of the
// counter of descriptor i.
func hitsUpTo(h []node.Hit, i int) uint64 {
	sum := uint64(0)
	for j := range h[:i+1] {
		if h[j].Limit != nil && h[j].Key == h[i].Key {
			sum += min(h[j].N, 1<<62/node.MaxDescriptors)
		}
	}
	return sum
}

// charge sets the status of an admitted call to the one after a charge. window
// is the start of the current window, now the time in Unix milliseconds.
func charge(st *node.Status, hits uint64, window, now int64) {
	l := st.Limit
	if st.Over && !l.Shadow || st.Gate == node.FailureGate {
		return
	}
	st.Remaining -= min(st.Remaining, hits)
	switch {
	case quota.Of(l).Weighted():
		st.Reset = max(st.Reset, time.Duration(window+2*l.Window()-now)*time.Millisecond)
	case quota.Of(l).Stamped():
		st.Reset = time.Duration(l.Window()) * time.Millisecond
	case quota.Of(l).Drains() && l.Requests > 0:
		st.Reset = min(st.Reset+drains(l, hits), drains(l, quota.Of(l).Capacity()))
	}
}

// drains returns the time in which a bucket refills hits, at least 1 a window,
// rounded up to a millisecond.
func drains(l *rules.Limit, hits uint64) time.Duration {
	const longest = 1 << 42 // milliseconds, more than a century
	ms := sat.MulDivUp(min(hits, 1<<32), uint64(l.Window()), uint64(l.Requests))
	return time.Duration(min(ms, longest)) * time.Millisecond
}

// verdictOf returns the decision for one descriptor alone.
func verdictOf(st *node.Status) *api.Verdict {
	v := &api.Verdict{
		Allowed: !st.Over, Remaining: st.Remaining, ResetSeconds: st.Reset.Seconds(), Never: st.Over && st.Never,
		DelaySeconds: st.Delay.Seconds(), Degraded: st.Degraded.String(),
	}
	if st.Over && !st.Never {
		v.RetrySeconds = new(st.Retry.Seconds())
	}
	return v
}

// rightsGate describes the rights account of this daemon, nil for a limit
// without rights.
func (r *Report) rightsGate(e *node.ExplainedRights, st *node.Status) *api.RightsGate {
	if e == nil {
		return nil
	}
	out := &api.RightsGate{
		Window: overage.UnixMs(e.Window), Allotment: e.Allotment, Received: e.Received, Given: e.Given, Used: e.Used, Left: e.Left,
		Passes: !deniedBy(st, node.RightsGate),
	}
	switch {
	case e.Allotment > 0:
	case r.Rights != nil:
		out.WhyNot = r.Rights.WhyNot(e.Why)
	default:
		out.WhyNot = e.Why.String()
	}
	return out
}

// counts returns the known admitted hits of each region in the current window.
func (x *explainer) counts(l *rules.Limit, e *node.Explained, links []node.Link, now int64) []api.RegionCount {
	regions := x.regions
	switch {
	case x.r.Cluster == nil || l.Scope == rules.NodeLocal:
		return nil
	case l.Scope == rules.Region:
		regions = []string{x.r.Region}
	}
	out := make([]api.RegionCount, 0, len(regions))
	for _, name := range regions {
		r := api.RegionCount{Region: name}
		own := name == x.r.Region
		for i := range e.Cells {
			c := &e.Cells[i]
			of := c.Kind == gossip.Daemon && own || c.Kind == gossip.RegionSum && c.Incarnation == gossip.RegionIncarnation(name)
			if of && current(l, c, e.Window, now) {
				r.Hits += c.Value.Net()
			}
		}
		if age := oldestView(links, name, own); age >= 0 {
			r.StalenessSeconds = api.Seconds(age)
			if stamp := x.stamps[name]; stamp > 0 {
				r.Stamp = stamp.String()
			}
		}
		out = append(out, r)
	}
	return out
}

// current reports whether a cell is of the current window: for a log whether it
// still counts, for a bucket whether it is of the window that peers send now.
func current(l *rules.Limit, c *gossip.Cell, window, now int64) bool {
	switch {
	case quota.Of(l).Stamped():
		return c.Window > now-l.Window()
	case quota.Of(l).Drains():
		window, _, _ = quota.Of(l).Shared(&quota.Cell{}, now)
	}
	return c.Window == window
}

// oldestView returns the age of the oldest view of a daemon of a region,
// including unsent counts: -1 without any view, and at least 0 for the own
// region.
func oldestView(links []node.Link, region string, own bool) time.Duration {
	age := time.Duration(-1)
	if own {
		age = 0
	}
	for i := range links {
		if l := &links[i]; l.Peer.Region == region {
			age = max(age, l.Expected(l.Unsent))
		}
	}
	return age
}
