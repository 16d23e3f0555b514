package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/daemon/overage"
	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
)

// keyText formats the hash of a key.
func keyText(k crdt.Key) string { return fmt.Sprintf("%016x", uint64(k)) }

// ruleRef returns the position of a rule, nil for none.
func ruleRef(r *rules.Rule) *api.RuleRef {
	if r == nil {
		return nil
	}
	out := &api.RuleRef{Path: r.Path, File: r.Pos.File, Line: r.Pos.Line}
	if r.Limit != nil {
		out.Name = r.Limit.Name
	}
	return out
}

// whyNoLimit returns why no limit applies to a rule that matched.
func whyNoLimit(st *node.Status) api.WhyNoLimit {
	switch {
	case st.Unlimited:
		return api.LimitUnlimited
	case st.Rule.Limit == nil:
		return api.LimitNone
	}
	return api.LimitReplaced
}

// limitInForce describes the limit of a status.
func limitInForce(st *node.Status) *api.LimitInForce {
	l := st.Limit
	out := &api.LimitInForce{
		Requests: uint64(l.Requests), WindowSeconds: float64(l.Window()) / 1000,
		Algorithm: l.Algorithm.String(), Consistency: l.Consistency.String(), Scope: overage.ScopeName(l.Scope),
		Quota: l.Quota, Shadow: l.Shadow, Blocked: st.Blocked,
		Override: !st.Blocked && (st.Rule == nil || l != st.Rule.Limit),
	}
	out.ResetAt = timeOf(st.ResetAt)
	if quota.Of(l).Drains() {
		out.Burst = uint64(l.Burst)
	}
	if l.Placed != rules.Auto {
		out.Placement = l.Placed.String()
	}
	if l.HasBudget {
		out.Budget = new(l.Budget.Ratio())
	}
	if l.Consistency == rules.Strict || l.HasRights() {
		out.OnFailure = onFailureText(l)
	}
	return out
}

// onFailureText returns on_failure as in the limits language.
func onFailureText(l *rules.Limit) string {
	switch l.OnFailure {
	case rules.Allow:
		return "allow"
	case rules.Share:
		return "share: " + l.ReserveShare.String()
	}
	return "deny"
}

// separator stands between the steps of a rule's path. A value that contains it
// is split too, which only makes hints worse.
const separator = " > "

// whyNoRule returns why no rule of a set matches a descriptor, and the most
// similar name, "" if none is similar.
func whyNoRule(set *rules.Set, domain string, entries []rules.Entry) (why, closest string) {
	d := set.Domain(domain)
	if d == nil {
		all := set.Domains()
		if len(all) == 0 {
			return "there are no rules", ""
		}
		return fmt.Sprintf("there is no domain %s", excerpt(domain)), suggest.Closest(domain, all)
	}
	if len(entries) == 0 {
		return "the descriptor has no entry", ""
	}
	for i, e := range entries {
		if d.Match(entries[:i+1]) == nil {
			return noStep(set, d, entries[:i], e)
		}
	}
	return "no rule ends" + after(entries), ""
}

// noStep returns why no rule that matches the entries before also matches e,
// and the most similar key or value, "" if none is similar.
func noStep(set *rules.Set, d *rules.Domain, before []rules.Entry, e rules.Entry) (why, closest string) {
	path := ""
	if len(before) > 0 {
		path = d.Match(before).Path + separator
	}
	var keys, values []string
	for _, r := range set.Rules() {
		step, below := strings.CutPrefix(r.Path, path)
		if r.Domain != d.Name || !below || strings.Contains(step, separator) {
			continue
		}
		key, value, _ := strings.Cut(step, "=")
		keys = append(keys, key)
		if key == e.Key {
			values = append(values, value)
		}
	}
	switch {
	case len(keys) == 0:
		return "no rule continues" + after(before), ""
	case len(values) == 0 && len(before) == 0:
		return "no rule begins with " + excerpt(e.Key), suggest.Closest(e.Key, keys)
	case len(values) == 0:
		return "no rule continues" + after(before) + " with " + excerpt(e.Key), suggest.Closest(e.Key, keys)
	}
	return fmt.Sprintf("no rule has %s with the value %s", excerpt(e.Key), excerpt(e.Value)),
		suggest.Closest(e.Value, values)
}

// after names the last of the entries before, for sentences.
func after(entries []rules.Entry) string {
	if len(entries) == 0 {
		return ""
	}
	last := entries[len(entries)-1]
	return " after " + excerpt(last.Key+"="+last.Value)
}

// excerpt quotes text of a query, shortened to 64 bytes.
func excerpt(s string) string {
	const most = 64
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}
