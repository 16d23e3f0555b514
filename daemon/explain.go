package daemon

import (
	"context"
	"github.com/georld/rld/daemon/overage"
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
	"github.com/georld/rld/server/web"
)

// explain says what a call would get that came now, and why. See
// admin.Options.Explain.
func (d *daemon) explain(ctx context.Context, q api.ExplainQuery) (api.ExplainAnswer, error) {
	c := callOf(&q)
	if err := c.CheckText(); err != nil {
		return api.ExplainAnswer{}, err
	}
	t, err := d.engine.peek(ctx, c)
	if err != nil {
		return api.ExplainAnswer{}, err
	}
	x := d.newExplainer()
	out := api.ExplainAnswer{
		Self: d.self(), Domain: q.Domain, Hits: q.Hits, Shadow: d.cfg.Shadow, Allowed: c.Decision.Allowed,
	}
	for i := range c.Statuses {
		out.Descriptors = append(out.Descriptors, x.descriptor(t, i))
	}
	if i := c.Decision.Refused; !c.Decision.Allowed && i >= 0 {
		out.RefusedBy = "override"
		if r := c.Statuses[i].Rule; r != nil {
			out.RefusedBy = r.Display()
		}
	}
	s := d.settings()
	var fields []web.Field
	out.HTTPStatus, fields = web.Preview(c, &s, d.now())
	for _, f := range fields {
		out.Headers = append(out.Headers, api.Header{Name: f.Name, Value: f.Value})
	}
	return out, nil
}

// callOf makes a call that charges nothing of a question.
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

// peek decides a call that charges nothing, and counts nowhere. It asks homes as
// Check does; where ctx ends before they answer, it decides as if they did not.
func (e *Engine) peek(ctx context.Context, c *node.Call) (*attempt, error) {
	t := &attempt{front: e.front.Load(), call: c}
	if err := t.front.Resolve(c); err != nil {
		return nil, err
	}
	t.hits = c.Hits()
	for i := range t.hits {
		if t.hits[i].Limit != nil {
			t.touched |= 1 << node.ShardOf(t.hits[i].Key, len(e.shards))
		}
	}
	if e.try(e.Now(), t) {
		return t, nil
	}
	if err := e.strict.wait(ctx, *t); err != nil {
		for i := range t.hits {
			t.hits[i].Ticket, t.hits[i].Failed = 0, 0
		}
		e.strict.giveUp(e.Now(), t)
	}
	return t, nil
}

// explained is what the shard of a hit knows of its key, how old what it knows of
// peers is, and the label clock in Unix milliseconds.
func (e *Engine) explained(h *node.Hit) (node.Explained, []node.Link, int64) {
	s := e.shards[node.ShardOf(h.Key, len(e.shards))]
	at := e.Now()
	s.lock()
	defer s.mu.Unlock()
	return s.node.Explain(at, h), s.node.Links(at), s.node.Time(at).Millis()
}

// stamps returns the latest time of each peer's clock that came here, and that of
// this daemon.
func (e *Engine) stamps() map[crdt.Incarnation]hlc.Timestamp {
	out := map[crdt.Incarnation]hlc.Timestamp{e.Incarnation(): e.Time(e.Now())}
	for _, s := range e.shards {
		s.lock()
		for id, stamp := range s.node.Stamps() {
			out[id] = max(out[id], stamp)
		}
		s.mu.Unlock()
	}
	return out
}

// explainer explains the descriptors of one call.
type explainer struct {
	d       *daemon
	names   map[crdt.Incarnation]api.DaemonRef // of those that live
	regions []string                           // that are configured or heard of, sorted
	stamps  map[string]hlc.Timestamp           // the latest of each
}

func (d *daemon) newExplainer() *explainer {
	x := &explainer{d: d, names: map[crdt.Incarnation]api.DaemonRef{}, stamps: map[string]hlc.Timestamp{}}
	if d.cluster == nil {
		return x
	}
	for _, m := range d.cluster.all() {
		x.names[m.ID] = api.DaemonRef{Region: m.Region, Name: m.Name, Incarnation: m.ID.String()}
	}
	x.names[d.engine.Incarnation()] = d.self()
	known := map[string]bool{}
	for _, r := range d.cluster.regions {
		known[r] = true
	}
	stamps := d.engine.stamps()
	for id, m := range x.names {
		known[m.Region] = true
		x.stamps[m.Region] = max(x.stamps[m.Region], stamps[id])
	}
	x.regions = slices.Sorted(maps.Keys(known))
	return x
}

// self names this daemon; one without a region has no name.
func (d *daemon) self() api.DaemonRef {
	if d.cfg.Region == "" {
		return api.DaemonRef{}
	}
	return api.DaemonRef{Region: d.cfg.Region, Name: d.cfg.Name, Incarnation: d.engine.Incarnation().String()}
}

// ref names an incarnation.
func (x *explainer) ref(incarnation crdt.Incarnation) api.DaemonRef {
	if r, ok := x.names[incarnation]; ok {
		return r
	}
	return api.DaemonRef{Incarnation: incarnation.String()}
}

// descriptor explains one descriptor of a call, and makes its status what the call
// would be told if it were charged.
func (x *explainer) descriptor(t *attempt, i int) api.Explained {
	c := t.call
	st, h := &c.Statuses[i], &t.hits[i]
	out := api.Explained{Rule: ruleRef(st.Rule)}
	if st.Limit == nil {
		if st.Rule == nil {
			out.WhyNoRule, out.Closest = whyNoRule(t.front.Rules(), c.Domain, c.Descriptors[i].Entries)
		} else {
			out.WhyNoLimit = whyNoLimit(st)
		}
		return out
	}
	out.Limit, out.Key = limitInForce(st), keyText(h.Key)
	e, links, now := x.d.engine.explained(h)
	out.Counts = x.counts(st.Limit, &e, links, now)
	if e.Ledger == nil {
		out.Estimate = &api.EstimateGate{
			Counted: e.Used, Extrapolated: e.Elsewhere, Capacity: e.Capacity, Passes: !refusedBy(st, node.EstimateGate),
		}
	}
	out.Rights = rightsGate(e.Rights, st)
	out.StrictKey, out.Reserve = x.ledger(e.Ledger, st, now, false), x.ledger(e.Reserve, st, now, true)
	if c.Decision.Allowed {
		charged(st, hitsUpTo(t.hits, i), e.Window, now)
	}
	out.Verdict = verdictOf(st)
	return out
}

// refusedBy reports whether a gate, alone or with the other one, refused hits.
func refusedBy(st *node.Status, g node.Gate) bool {
	return st.Gate == g || st.Gate == node.BothGates && g <= node.BothGates
}

// hitsUpTo sums up what a call asks of the counter of hit i, as far as that one.
func hitsUpTo(h []node.Hit, i int) uint64 {
	sum := uint64(0)
	for j := range h[:i+1] {
		if h[j].Limit != nil && h[j].Key == h[i].Key {
			sum += min(h[j].N, 1<<62/node.MaxDescriptors)
		}
	}
	return sum
}

// charged makes the status of a call that passed, and was not charged, what it
// would be if it were. label is that which runs, now the label clock.
func charged(st *node.Status, hits uint64, window, now int64) {
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

// drains is how long it takes a bucket to mint so many hits, at least 1 a window,
// rounded up to the millisecond.
func drains(l *rules.Limit, hits uint64) time.Duration {
	const longest = 1 << 42 // milliseconds, a century and more
	hi, lo := bits.Mul64(min(hits, 1<<32), uint64(l.Window()))
	if hi >= uint64(l.Requests) {
		return longest * time.Millisecond
	}
	ms, rest := bits.Div64(hi, lo, uint64(l.Requests))
	if rest > 0 && ms < longest {
		ms++
	}
	return time.Duration(min(ms, longest)) * time.Millisecond
}

// verdictOf is what the hits of a descriptor get by themselves.
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

// rightsGate describes what this daemon holds, nil for a limit without rights.
func rightsGate(r *node.ExplainedRights, st *node.Status) *api.RightsGate {
	if r == nil {
		return nil
	}
	out := &api.RightsGate{
		Window: overage.UnixMs(r.Window), Allotment: r.Allotment, Received: r.Received, Given: r.Given, Used: r.Used, Left: r.Left,
		Passes: !refusedBy(st, node.RightsGate),
	}
	if r.Allotment == 0 {
		out.WhyNot = r.Why.String()
	}
	return out
}
