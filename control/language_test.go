package control

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/georld/rld/rules"
)

// language is a small limits language for tests. The name of a file is a
// domain. A line is a rule: a path, requests, a unit, and any of shadow,
// budget=PPM, bucket, owner. A path is keys, or keys and values, with > between
// them.
func language() Language {
	return Language{
		Parse: func(files []RuleFile, _ []RegionSize) (*rules.Set, error) {
			var domains []rules.DomainNode
			for _, f := range files {
				d := rules.DomainNode{Name: f.Name}
				for i, line := range strings.Split(strings.TrimSpace(f.Text), "\n") {
					if err := addRule(&d.Children, strings.Fields(line)); err != nil {
						return nil, fmt.Errorf("%s:%d:1: %w", f.Name, i+1, err)
					}
				}
				domains = append(domains, d)
			}
			return rules.NewSet(domains)
		},
		Check: func(l *rules.Limit, _ []RegionSize) error {
			if l.Requests > 1_000_000 || l.Budget > 2*rules.Whole {
				return fmt.Errorf("%d requests with a budget of %v: want at most 1000000 and 200%%", l.Requests, l.Budget)
			}
			return nil
		},
	}
}

func addRule(nodes *[]rules.Node, fields []string) error {
	if len(fields) == 0 {
		return nil
	}
	if len(fields) < 3 {
		return fmt.Errorf("rule %q: want a path, requests and a unit", strings.Join(fields, " "))
	}
	requests, err := strconv.ParseUint(fields[1], 10, 32)
	unit := slices.Index(rules.Units(), fields[2])
	if err != nil || unit < 0 {
		return fmt.Errorf("%q: want requests and a unit", strings.Join(fields[1:3], " "))
	}
	l := &rules.Limit{Unit: rules.Unit(unit + 1), Multiplier: 1, Requests: uint32(requests)}
	for _, f := range fields[3:] {
		budget, is := strings.CutPrefix(f, "budget=")
		switch {
		case f == "shadow":
			l.Shadow = true
		case f == "bucket":
			l.Algorithm, l.Burst = rules.TokenBucket, l.Requests
		case f == "owner":
			l.Placement, l.Placed = rules.Owner, rules.Owner
		case is:
			n, err := strconv.ParseUint(budget, 10, 32)
			if err != nil {
				return err
			}
			l.HasBudget, l.Budget = true, rules.PPM(n)
		default:
			return fmt.Errorf("unknown word %q", f)
		}
	}
	path := strings.Split(fields[0], ">")
	for i, step := range path {
		key, value, _ := strings.Cut(step, "=")
		at := slices.IndexFunc(*nodes, func(n rules.Node) bool { return n.Key == key && n.Value == value })
		if at < 0 {
			at = len(*nodes)
			*nodes = append(*nodes, rules.Node{Key: key, Value: value})
		}
		n := &(*nodes)[at]
		if i == len(path)-1 {
			n.Limit = l
		}
		nodes = &n.Children
	}
	return nil
}

// describeSet prints rules in the order of their set.
func describeSet(set *rules.Set) string {
	out := ""
	for _, r := range set.Rules() {
		out += r.Domain + ": " + r.Path
		if l := r.Limit; l != nil {
			out += fmt.Sprintf(" %d per %v", l.Requests, l.Unit)
			if l.Algorithm.Bucket() {
				out += fmt.Sprintf(", burst %d", l.Burst)
			}
			if l.HasBudget {
				out += fmt.Sprintf(", budget %v", l.Budget)
			}
			if l.Shadow {
				out += ", shadow"
			}
			if l.Placed != rules.Auto {
				out += fmt.Sprintf(", placed %v", l.Placed)
			}
		}
		out += "\n"
	}
	return out
}
