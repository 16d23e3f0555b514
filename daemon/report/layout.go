package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/georld/rld/daemon/overage"
	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
)

// Layout executes a command about the layout.
func (r *Report) Layout(c api.LayoutCommand, q api.LayoutRequest) (api.LayoutAnswer, error) {
	out := api.LayoutAnswer{DryRun: q.DryRun}
	reachable := r.reachable()
	err := errors.New("this daemon has no layout yet")
	r.Strict.Acceptor(func(a *quorum.Acceptor) { err = r.change(a, c, &q, reachable, &out) })
	if err != nil {
		text := strings.TrimPrefix(err.Error(), "sticky: ")
		return api.LayoutAnswer{}, errors.New(strings.TrimPrefix(text, "next layout: "))
	}
	if q.DryRun {
		return out, nil
	}
	r.Strict.Expedite()
	out.Next = "The former voters of each region stop voting, and the next ones copy the state of a majority of them. " +
		"Until then strict keys have no owner, and on_failure applies."
	r.Log.Warn("an operator changed the layout of strict keys", "event", "strict", "command", string(c),
		"layout", out.After, "changes", strings.Join(out.Changes, "; "))
	return out, nil
}

// change proposes the next layout, unless the request is a dry run.
func (r *Report) change(
	a *quorum.Acceptor, c api.LayoutCommand, q *api.LayoutRequest, reachable map[daemonName]bool, out *api.LayoutAnswer,
) error {
	was := a.Layout()
	out.Before = was.Number
	next, err := r.next(was, c, q)
	if err != nil {
		return err
	}
	if out.Changes = r.differences(&was, &next); len(out.Changes) == 0 {
		return fmt.Errorf("layout %d is the same: there is nothing to change", was.Number)
	}
	if err := mayChange(&was, reachable); err != nil {
		return err
	}
	if !q.DryRun {
		if err := r.mayPropose(&was, reachable); err != nil {
			return err
		}
	}
	if next, err = a.Following(next); err != nil {
		return err
	}
	if out.After = next.Number; q.DryRun {
		return nil
	}
	return a.Propose(next)
}

// mayChange returns an error unless a majority of the voters of each region is
// reachable. The next layout waits for them, and strict keys have no owner
// meanwhile.
func mayChange(l *route.Layout, reachable map[daemonName]bool) error {
	for _, region := range l.Regions {
		n := voters{all: len(region.Replicas)}
		for _, name := range region.Replicas {
			if reachable[daemonName{region.Name, name}] {
				n.reachable++
			}
		}
		if n.all > 0 && n.reachable < n.majority() {
			return fmt.Errorf("%d of the %d voters of %s are reachable, want at least %d: strict keys would have no owner until then",
				n.reachable, n.all, region.Name, n.majority())
		}
	}
	return nil
}

// mayPropose returns an error unless this daemon proposes layouts: the first
// reachable voter of the first region does. Two concurrent proposals could each
// get some of the voters, and neither a majority.
func (r *Report) mayPropose(l *route.Layout, reachable map[daemonName]bool) error {
	for _, region := range l.Regions {
		for _, name := range region.Replicas {
			at := daemonName{region.Name, name}
			if !reachable[at] {
				continue
			}
			if at == (daemonName{r.Region, r.Name}) {
				return nil
			}
			return fmt.Errorf("one daemon proposes all layouts, so that no two proposals block each other: ask %s/%s", region.Name, name)
		}
	}
	return errors.New("no voter is reachable")
}

// next returns the layout after a command.
func (r *Report) next(was route.Layout, c api.LayoutCommand, q *api.LayoutRequest) (route.Layout, error) {
	if c == api.SetVoters {
		region := cmp.Or(q.Region, r.Region)
		if err := knownRegion(&was, region); err != nil {
			return was, err
		}
		for i, name := range q.Voters {
			if slices.Contains(q.Voters[:i], name) {
				return was, fmt.Errorf("%s is given twice", excerpt(name))
			}
		}
		return route.Change{Region: region, Replicas: q.Voters}.Of(was)
	}
	if c == api.PinRule {
		if err := knownRegion(&was, q.Region); err != nil {
			return was, err
		}
	}
	ids, err := r.pinnable(&was, c, q.Rule)
	if err != nil {
		return was, err
	}
	next := was.Clone()
	next.Pins = slices.DeleteFunc(next.Pins, func(p route.Pin) bool { return slices.Contains(ids, p.Rule) })
	if c == api.PinRule {
		for _, id := range ids {
			next.Pins = append(next.Pins, route.Pin{Rule: id, Region: q.Region})
		}
		slices.SortFunc(next.Pins, func(a, b route.Pin) int { return cmp.Compare(a.Rule, b.Rule) })
	}
	return next, nil
}

// knownRegion returns an error that lists the regions of a layout unless name
// is one of them.
func knownRegion(l *route.Layout, name string) error {
	var all []string
	for _, r := range l.Regions {
		all = append(all, r.Name)
	}
	if slices.Contains(all, name) {
		return nil
	}
	err := fmt.Errorf("there is no region %s in the layout: want one of %s", excerpt(name), strings.Join(all, ", "))
	if meant := suggest.Closest(name, all); meant != "" {
		err = fmt.Errorf("%w (did you mean %q?)", err, meant)
	}
	return err
}

// pinnable returns the rules of a name, see overage.Names. A pin of a rule that
// is not in the limits any more is removed by its ID.
func (r *Report) pinnable(l *route.Layout, c api.LayoutCommand, text string) ([]uint64, error) {
	var ids []uint64
	var names []string
	found := false
	for _, rule := range r.Engine.Rules().Rules() {
		if rule.Limit == nil || rule.Limit.Unlimited {
			continue
		}
		own, homed := overage.Names(rule), canPin(rule)
		if slices.Contains(own, text) {
			if found = true; homed {
				ids = append(ids, uint64(rule.ID))
			}
		}
		if homed {
			names = append(names, own...)
		}
	}
	if id, err := strconv.ParseUint(text, 16, 64); c == api.UnpinRule && !found && err == nil && len(text) == 16 {
		if _, is := pinned(l)[id]; is {
			return []uint64{id}, nil
		}
	}
	switch {
	case len(ids) > 0:
		return ids, nil
	case found:
		return nil, fmt.Errorf("%s has no home region: only limits that are strict or of placement owner do", excerpt(text))
	}
	return nil, overage.UnknownRule(text, names)
}

// canPin reports whether one region of the cluster owns each key of a rule.
func canPin(r *rules.Rule) bool { return r.Limit.Homed() && !r.Limit.HomeInRegion() }

// differences describes the differences between two layouts.
func (r *Report) differences(was, next *route.Layout) []string {
	var out []string
	for _, n := range next.Regions {
		for _, o := range was.Regions {
			if o.Name == n.Name && !slices.Equal(o.Replicas, n.Replicas) {
				out = append(out, fmt.Sprintf("voters of %s: %s, were %s", n.Name,
					strings.Join(n.Replicas, ", "), strings.Join(o.Replicas, ", ")))
			}
		}
	}
	const byHash = "by the hash of each key"
	former, latter := pinned(was), pinned(next)
	for _, p := range next.Pins {
		if from := former[p.Rule]; from != p.Region {
			out = append(out, fmt.Sprintf("home region of %s: %s, was %s", r.pinName(p.Rule), p.Region, cmp.Or(from, byHash)))
		}
	}
	for _, p := range was.Pins {
		if latter[p.Rule] == "" {
			out = append(out, fmt.Sprintf("home region of %s: %s, was %s", r.pinName(p.Rule), byHash, p.Region))
		}
	}
	return out
}

// pinName returns the name of a pinned rule in sentences.
func (r *Report) pinName(id uint64) string {
	if rule := r.Engine.Rules().Find(rules.ID(id)); rule != nil {
		return overage.RuleName(rule)
	}
	return fmt.Sprintf("%016x, which is not in the limits of this daemon", id)
}

// WarnPins logs the rules of a set whose home region differs from the layout
// in force, which only commands change. It logs nothing before there is a
// layout: the first one has the home regions of the limits.
func (r *Report) WarnPins(set *rules.Set) {
	if r.Strict == nil {
		return
	}
	var pins map[uint64]string // nil before there is a layout
	r.Strict.Acceptor(func(a *quorum.Acceptor) { pins = pinned(new(a.Layout())) })
	for _, rule := range set.Rules() {
		if pins == nil || rule.Limit == nil || !canPin(rule) || rule.Limit.Home == pins[uint64(rule.ID)] {
			continue
		}
		is := cmp.Or(pins[uint64(rule.ID)], "none")
		do := fmt.Sprintf("rld strict pin %q %s", overage.RuleName(rule), rule.Limit.Home)
		if rule.Limit.Home == "" {
			do = fmt.Sprintf("rld strict unpin %q, or set the home region %s in the limits", overage.RuleName(rule), is)
		}
		r.Log.Warn("the home region of a rule differs from the layout in force, which only commands change",
			"event", "pin_differs", "domain", rule.Domain, "rule", rule.Path, "at", rule.Pos.String(),
			"limits", cmp.Or(rule.Limit.Home, "none"), "in_force", is, "hint", do)
	}
}
