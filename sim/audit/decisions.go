package audit

import (
	"strconv"
	"strings"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
)

// decisionAuditor compares decisions with a second reading of the text of the
// limits: each descriptor gets the rule that it matches, with the limit, the
// mode and the counter that are written there. Shadow mode never denies, quota
// mode does when all quotas of the call are over, and a limit that is
// unlimited, replaced or not written neither denies nor counts. It trusts the
// daemon whether a limit is over; other auditors check that.
type decisionAuditor struct {
	finding
	languages map[*rules.Set]*language
	calls     int
	counters  map[string]crdt.Key // by name
	names     map[crdt.Key]string // of counters
	matched   []*written          // scratch of called
}

// The first checkedCalls calls are checked, then one of checkedPart. At most
// maxCounters counters are remembered.
const (
	checkedCalls = 1 << 14
	checkedPart  = 16
	maxCounters  = 1 << 15
)

func decisions(a *sim.Auditor, t *truth) {
	x := &decisionAuditor{
		finding: finding{a, t}, languages: make(map[*rules.Set]*language),
		counters: make(map[string]crdt.Key), names: make(map[crdt.Key]string),
	}
	cfg := t.world.Config()
	x.languages[cfg.Rules] = readLanguage(cfg.Limits)
	for i := range cfg.Faults {
		if f := &cfg.Faults[i]; f.Rules != nil {
			x.languages[f.Rules] = readLanguage(f.Limits)
		}
	}
	a.Called = x.called
}

func (a *decisionAuditor) called(d *sim.Daemon, set int, c *node.Call) {
	a.calls++
	l := a.languages[a.world.Sets()[set]]
	if l == nil || a.calls > checkedCalls && a.calls%checkedPart != 0 {
		return
	}
	a.matched = a.matched[:0]
	own := make([]*written, len(c.Descriptors)) // without those that the call overrides
	for i := range c.Descriptors {
		w := l.match(c.Domain, c.Descriptors[i].Entries)
		a.matched = append(a.matched, w)
		if c.Descriptors[i].Override.Unit == rules.NoUnit && w != nil && w.limited {
			own[i] = w
		}
	}
	names := dropped(own)
	enforced, quotas, quotasOver := false, 0, 0
	for i := range c.Descriptors {
		st := &c.Statuses[i]
		want := a.matched[i]
		if own[i] != nil && own[i].isDropped(names) {
			want = nil
		}
		if !a.ok(a.limited(c, i, want)) {
			a.fail("%s gave %v the rule %s and the limit %+v (unlimited: %v); written is %+v, and replaced are %q",
				d.Name, c.Descriptors[i], pathOf(st.Rule), st.Limit, st.Unlimited, a.matched[i], names)
			return
		}
		if st.Limit == nil {
			continue
		}
		a.counter(d, c, i)
		shadow, quota := false, false
		if own[i] != nil {
			shadow, quota = own[i].shadow, own[i].quota
		}
		switch {
		case quota:
			quotas++
			if st.Over && !shadow {
				quotasOver++
			}
		case st.Over && !shadow:
			enforced = true
		}
	}
	denied := enforced || quotas > 0 && quotas == quotasOver
	if !a.ok(c.Decision.Allowed == !denied) {
		a.fail("%s decided %v (allowed: %v), with statuses %+v; of %d quotas %d are over, another limit: %v",
			d.Name, c.Descriptors, c.Decision.Allowed, c.Statuses, quotas, quotasOver, enforced)
	}
}

func pathOf(r *rules.Rule) string {
	if r == nil {
		return "none"
	}
	return r.Path
}

// limited reports whether a descriptor got the rule that it matches, and the
// limit that is left of it; want is nil where that was replaced.
func (a *decisionAuditor) limited(c *node.Call, i int, want *written) bool {
	st, o, w := &c.Statuses[i], c.Descriptors[i].Override, a.matched[i]
	if (w == nil) != (st.Rule == nil) || w != nil && st.Rule.Path != w.path {
		return false
	}
	l := st.Limit
	switch {
	case o.Unit != rules.NoUnit:
		return l != nil && !st.Unlimited && l.Requests == o.Requests && l.Unit == o.Unit && !l.Shadow && !l.Quota
	case want == nil || !want.limited:
		return l == nil && !st.Unlimited
	case want.unlimited:
		return l == nil && st.Unlimited
	}
	return l != nil && !st.Unlimited && l.Shadow == want.shadow && l.Quota == want.quota && l.Name == want.name &&
		strings.EqualFold(l.Unit.String(), want.unit) && isNumber(want.requests, l.Requests)
}

// isNumber reports whether a number is written as a decimal text, or is not.
func isNumber(text string, n uint32) bool {
	is, err := strconv.ParseUint(text, 10, 32)
	return err != nil || uint32(is) == n
}

// counter checks that descriptors have one counter if and only if they should.
func (a *decisionAuditor) counter(d *sim.Daemon, c *node.Call, i int) {
	k, l, w := c.Hits()[i].Key, c.Statuses[i].Limit, a.matched[i]
	if c.Descriptors[i].Override.Unit != rules.NoUnit {
		w = nil
	}
	kind := "window"
	switch {
	case quota.Of(l).Stamped():
		kind = "log"
	case quota.Of(l).Drains():
		kind = "bucket"
	case l.CarryDebt:
		kind = "debt"
	}
	name := counterName(c.Domain, c.Descriptors[i].Entries, w) + "\x00" + kind + strconv.FormatInt(l.Window(), 10)
	was, known := a.counters[name]
	other, taken := a.names[k]
	if !a.ok((!known || was == k) && (!taken || other == name)) {
		a.fail("%s counted %q under the counter of %q", d.Name, name, other)
	}
	if !known && len(a.counters) < maxCounters {
		a.counters[name], a.names[k] = k, name
	}
}
