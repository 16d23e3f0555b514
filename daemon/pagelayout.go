package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"github.com/georld/rld/daemon/overage"
	"slices"
	"strconv"
	"strings"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
)

// changeLayout does what an operator says about the layout. See
// admin.Options.Layout.
func (d *daemon) changeLayout(c api.LayoutCommand, q api.LayoutRequest) (api.LayoutAnswer, error) {
	out := api.LayoutAnswer{DryRun: q.DryRun}
	var next route.Layout
	heard := d.heard()
	err := errors.New("this daemon has no layout yet")
	d.strict.acceptor.do(func(r *quorum.Acceptor) {
		was := r.Layout()
		out.Before = was.Number
		if next, err = d.changed(was, c, &q); err != nil {
			return
		}
		if out.Changes = d.differences(&was, &next); len(out.Changes) == 0 {
			err = fmt.Errorf("layout %d says so already: there is nothing to change", was.Number)
			return
		}
		if err = mayChange(&was, heard); err != nil {
			return
		}
		if !q.DryRun {
			if err = d.mayPropose(&was, heard); err != nil {
				return
			}
		}
		if next, err = r.Following(next); err != nil || q.DryRun {
			return
		}
		err = r.Propose(next)
	})
	if err != nil {
		return api.LayoutAnswer{}, plainly(err)
	}
	if out.After = next.Number; q.DryRun {
		return out, nil
	}
	d.strict.acceptor.expedite()
	out.Next = "The former replicas of every region stop voting, and the next ones copy what a majority of them holds: " +
		"until then strict keys have no home, and on_failure answers."
	d.log.Warn("an operator changed who is home of strict keys", "event", "strict", "command", string(c),
		"layout", out.After, "changes", strings.Join(out.Changes, "; "))
	return out, nil
}

// mayChange returns an error unless a majority of the replicas of each region is
// heard: the next layout waits for that, and strict keys have no home meanwhile. What
// replicas said of themselves may be from before a cut.
func mayChange(l *route.Layout, heard map[[2]string]bool) error {
	for _, r := range l.Regions {
		n := seats{all: len(r.Replicas)}
		for _, name := range r.Replicas {
			if heard[[2]string{r.Name, name}] {
				n.heard++
			}
		}
		if n.all > 0 && n.heard < n.majority() {
			return fmt.Errorf("%d of the %d replicas of %s are heard, and it takes %d: until then no strict key would have a home",
				n.heard, n.all, r.Name, n.majority())
		}
	}
	return nil
}

// mayPropose returns an error unless this daemon is the one that puts layouts in: the
// first replica that is heard, of the first region. Two that were put in at once could
// each get a part of the replicas, and neither what it needs.
func (d *daemon) mayPropose(l *route.Layout, heard map[[2]string]bool) error {
	for _, r := range l.Regions {
		for _, name := range r.Replicas {
			if !heard[[2]string{r.Name, name}] {
				continue
			}
			if r.Name == d.cfg.Region && name == d.cfg.Name {
				return nil
			}
			return fmt.Errorf("layouts are put in at one daemon, so that two at once cannot block each other: ask %s/%s", r.Name, name)
		}
	}
	return errors.New("no replica is heard")
}

// plainly is an error as an operator is told it.
func plainly(err error) error {
	text := strings.TrimPrefix(err.Error(), "sticky: ")
	return errors.New(strings.TrimPrefix(text, "next layout: "))
}

// changed returns the layout with a change made.
func (d *daemon) changed(was route.Layout, c api.LayoutCommand, q *api.LayoutRequest) (route.Layout, error) {
	next := was.Clone()
	if c == api.SetVoters {
		region := q.Region
		if region == "" {
			region = d.cfg.Region
		}
		if err := knownRegion(&was, region); err != nil {
			return was, err
		}
		for i, name := range q.Voters {
			if slices.Contains(q.Voters[:i], name) {
				return was, fmt.Errorf("%s is there twice", excerpt(name))
			}
		}
		return route.Change{Region: region, Replicas: q.Voters}.Of(was)
	}
	if c == api.SetHome {
		if err := knownRegion(&was, q.Region); err != nil {
			return was, err
		}
	}
	ids, err := d.pinnable(&was, c, q.Rule)
	if err != nil {
		return was, err
	}
	next.Pins = slices.DeleteFunc(next.Pins, func(p route.Pin) bool { return slices.Contains(ids, p.Rule) })
	if c == api.SetHome {
		for _, id := range ids {
			next.Pins = append(next.Pins, route.Pin{Rule: id, Region: q.Region})
		}
		slices.SortFunc(next.Pins, func(a, b route.Pin) int { return cmp.Compare(a.Rule, b.Rule) })
	}
	return next, nil
}

// knownRegion returns an error that lists the regions unless one of them is meant.
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

// pinnable returns the rules that a text names: by the name of a limit or by a path,
// or, to unpin one that is not in the limits any more, by its ID.
func (d *daemon) pinnable(l *route.Layout, c api.LayoutCommand, text string) ([]uint64, error) {
	var ids []uint64
	var names []string
	found := false
	for _, r := range d.engine.Rules().Rules() {
		if r.Limit == nil || r.Limit.Unlimited {
			continue
		}
		has := hasOwner(r)
		if own := overage.Names(r); slices.Contains(own, text) {
			if found = true; has {
				ids = append(ids, uint64(r.ID))
			}
		}
		if has {
			names = append(names, r.Path, overage.RuleName(r))
			if r.Limit.Name != "" {
				names = append(names, r.Limit.Name)
			}
		}
	}
	if id, err := strconv.ParseUint(text, 16, 64); c == api.UnsetHome && !found && err == nil && len(text) == 16 {
		if slices.ContainsFunc(l.Pins, func(p route.Pin) bool { return p.Rule == id }) {
			return []uint64{id}, nil
		}
	}
	slices.Sort(names)
	switch {
	case len(ids) > 0:
		return ids, nil
	case found:
		return nil, fmt.Errorf("%s has no home region: only limits that are strict or of placement owner do", excerpt(text))
	}
	return nil, &api.UnknownRuleError{Rule: text, Closest: suggest.Closest(text, slices.Compact(names))}
}

// hasOwner reports whether the keys of a rule are at home in one region of the world.
func hasOwner(r *rules.Rule) bool { return r.Limit.Homed() && !r.Limit.HomeInRegion() }

// differences says what is different in the next layout.
func (d *daemon) differences(was, next *route.Layout) []string {
	var out []string
	for _, n := range next.Regions {
		for _, o := range was.Regions {
			if o.Name == n.Name && !slices.Equal(o.Replicas, n.Replicas) {
				out = append(out, fmt.Sprintf("replicas of %s: %s, were %s", n.Name,
					strings.Join(n.Replicas, ", "), strings.Join(o.Replicas, ", ")))
			}
		}
	}
	owner := func(l *route.Layout, rule uint64) string {
		for _, p := range l.Pins {
			if p.Rule == rule {
				return p.Region
			}
		}
		return ""
	}
	for _, p := range next.Pins {
		switch from := owner(was, p.Rule); from {
		case p.Region:
		case "":
			out = append(out, fmt.Sprintf("home of %s: %s, was that of each key's hash", d.pinName(p.Rule), p.Region))
		default:
			out = append(out, fmt.Sprintf("home of %s: %s, was %s", d.pinName(p.Rule), p.Region, from))
		}
	}
	for _, p := range was.Pins {
		if owner(next, p.Rule) == "" {
			out = append(out, fmt.Sprintf("home of %s: that of each key's hash, was %s", d.pinName(p.Rule), p.Region))
		}
	}
	return out
}

// pinName is what sentences call a rule that is pinned.
func (d *daemon) pinName(id uint64) string {
	if r := d.engine.Rules().Find(rules.ID(id)); r != nil {
		return overage.RuleName(r)
	}
	return fmt.Sprintf("%016x, which is not in the limits here", id)
}
