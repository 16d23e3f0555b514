package limits

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/georld/rld/rules"
)

// Describe returns the rules of a set as text, one line each, sorted by domain
// and path:
//
//	edge: tier=free > user_id: 10 per second, token_bucket, burst 20
//
// A limit is followed by the fields that differ from the defaults of the
// language. Equal rules give equal text, independent of their files.
func Describe(set *rules.Set) string {
	all := slices.Clone(set.Rules())
	slices.SortStableFunc(all, func(a, b *rules.Rule) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Path, b.Path), cmp.Compare(a.ID, b.ID))
	})
	var b strings.Builder
	for _, r := range all {
		b.WriteString(plainLine(r.Domain) + ": " + plainLine(r.Path) + ": ")
		b.WriteString(strings.Join(describeRule(r), ", ") + "\n")
	}
	return b.String()
}

// DescribeRule returns what Describe has of one rule, without its name.
func DescribeRule(r *rules.Rule) string { return strings.Join(describeRule(r), ", ") }

// describeRule returns the parts of a rule's line.
func describeRule(r *rules.Rule) []string {
	parts := []string{"no limit"}
	if r.Limit != nil {
		parts = describeLimit(r.Limit)
	}
	counts := r.Limit != nil && !r.Limit.Unlimited
	for i, pattern := range r.Patterns {
		if pattern != "" && counts {
			parts = append(parts, fmt.Sprintf("one counter for all %s in entry %d", plainLine(pattern), i+1))
		}
	}
	if len(r.Metadata) > 0 {
		parts = append(parts, "metadata "+describeValue(r.Metadata))
	}
	return parts
}

func describeLimit(l *rules.Limit) []string {
	var parts []string
	when := func(is bool, format string, args ...any) {
		if is {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	if l.Unlimited {
		parts = append(parts, "unlimited")
	} else {
		parts = append(parts, describeRate(l))
	}
	when(l.Algorithm != rules.FixedWindow, "%s", l.Algorithm)
	when(l.Algorithm.Bucket() && l.Burst != l.Requests, "burst %d", l.Burst)
	when(l.Scope != rules.Global, "scope %s", scopeNames[l.Scope])
	when(l.Consistency != rules.Eventual, "consistency %s", l.Consistency)
	when(l.Placement != rules.Auto, "placement %s", l.Placement)
	// The rights of a strict limit have one place, and no size matters.
	chosen := l.Placement == rules.Auto && l.Placed != rules.Auto
	when(chosen && l.Consistency == rules.Strict, "placement %s", l.Placed)
	when(chosen && l.Consistency != rules.Strict, "placement %s by size", l.Placed)
	when(l.Home != "", "home region %s", plainLine(l.Home))
	when(l.HasBudget, "overage_budget %s", l.Budget.String())
	when(l.Weights != nil, "weights %s", describeWeights(l.Weights))
	when(l.OnFailure == rules.Allow, "on_failure allow")
	when(l.OnFailure == rules.Share, "on_failure share %s", l.ReserveShare.String())
	when(l.CarryDebt, "carry_debt")
	when(l.ChargeDenied, "charge_denied")
	when(l.Shadow, "shadow_mode")
	when(l.Quota, "quota_mode")
	when(l.Name != "", "name %s", plainLine(l.Name))
	for _, name := range l.Replaces {
		when(true, "replaces %s", plainLine(name))
	}
	return parts
}

// describeRate returns "10 per second" or "50000 per 5 minutes".
func describeRate(l *rules.Limit) string {
	if l.Multiplier == 1 {
		return fmt.Sprintf("%d per %s", l.Requests, l.Unit)
	}
	return fmt.Sprintf("%d per %d %ss", l.Requests, l.Multiplier, l.Unit)
}

// describeWeights returns "{eu-west: 40%, us-east: 60%}".
func describeWeights(weights []rules.Weight) string {
	parts := make([]string, len(weights))
	for i, w := range weights {
		parts[i] = plainLine(w.Region) + ": " + w.Share.String()
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// describeValue renders metadata with its keys sorted.
func describeValue(v any) string {
	switch v := v.(type) {
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, plainLine(k)+": "+describeValue(v[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = describeValue(v[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		return strconv.Quote(v)
	case nil:
		return "null"
	}
	return fmt.Sprint(v)
}

// plainLine returns a text as it is when it fits on a line, else quoted.
func plainLine(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
