package quorum

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/georld/rld/sticky/route"
)

// Layout returns a copy of the layout that daemons use.
func (r *Acceptor) Layout() route.Layout { return r.newest().Clone() }

// Propose puts the next layout in force: the regions with their weights and
// voters, and the pins of l. The other fields are filled in. It fails if a
// majority of every region's voters is not known to vote under the layout in
// force, or if the voters of a region are not known. Only one change may be
// under way: two at once, at two daemons, leave regions without votes.
func (r *Acceptor) Propose(l route.Layout) error {
	next, err := r.Following(l)
	if err != nil {
		return err
	}
	r.adopt(&next)
	r.events.Add(Changed, "", fmt.Sprintf("layout %d", next.Number))
	return nil
}

// Following returns the layout that Propose would put in force, or its error.
// It changes nothing.
func (r *Acceptor) Following(l route.Layout) (route.Layout, error) {
	next, err := r.following(l)
	if err != nil {
		return l, fmt.Errorf("sticky: next layout: %w", err)
	}
	return next, nil
}

func (r *Acceptor) following(l route.Layout) (route.Layout, error) {
	cur := r.newest()
	switch {
	case r.failed != nil:
		return l, fmt.Errorf("the log failed: %w", r.failed)
	case r.next != nil && r.isVoter(r.next):
		return l, fmt.Errorf("layout %d is not in force here yet: wait until it is", r.next.Number)
	}
	next := l.Clone()
	next.Number = cur.Number + 1
	for i := range cur.Regions {
		if o := &cur.Regions[i]; next.Region(o.Name) == nil && !o.Retired() {
			next.Regions = append(next.Regions, route.Region{Name: o.Name})
			slices.SortFunc(next.Regions, func(a, b route.Region) int { return cmp.Compare(a.Name, b.Name) })
		}
	}
	next.Regions = slices.DeleteFunc(next.Regions, func(n route.Region) bool {
		o := cur.Region(n.Name)
		return n.Retired() && (o == nil || o.Retired())
	})
	var errs []error
	for i := range next.Regions {
		n := &next.Regions[i]
		if o := cur.Region(n.Name); o != nil && !o.Retired() {
			n.Former = o.Replicas
			errs = append(errs, r.checkFormer(o))
		} else {
			n.Former = nil
		}
		errs = append(errs, r.checkNext(n))
	}
	errs = append(errs, next.Validate())
	return next, errors.Join(errs...)
}

// checkFormer returns the reason why the voters of a region cannot hand over
// yet, nil if they can.
func (r *Acceptor) checkFormer(o *route.Region) error {
	if len(o.Replicas) == 0 {
		return fmt.Errorf("the voters of region %q are not known: one of its daemons must connect first", o.Name)
	}
	n := 0
	for _, name := range o.Replicas {
		if r.votes(o.Name, name) {
			n++
		}
	}
	if need := route.Majority(len(o.Replicas)); n < need {
		return fmt.Errorf("%d of the %d voters of region %q are known to vote: want at least %d", n, len(o.Replicas), o.Name, need)
	}
	return nil
}

// votes reports whether a voter recently reported that it votes under the
// newest layout.
func (r *Acceptor) votes(region, name string) bool {
	if region == r.cfg.Region && name == r.cfg.Name {
		ok, _ := r.voting()
		return ok
	}
	h, ok := r.reports[r.live.Find(region, name).ID]
	return ok && h.voting && h.number == r.newest().Number && r.at-h.at < fresh
}

// checkNext fills in the store numbers of a region's next voters. It returns an
// error if these cannot become voters.
func (r *Acceptor) checkNext(n *route.Region) error {
	if n.Retired() {
		return nil
	}
	if len(n.Replicas) == 0 {
		return fmt.Errorf("no voters for region %q: want some", n.Name)
	}
	if len(n.Replicas) == 2 && r.daemons(n.Name) > 2 {
		return fmt.Errorf("2 voters of the %d daemons of region %q: want an odd number", r.daemons(n.Name), n.Name)
	}
	n.Generations = nil
	for _, name := range n.Replicas {
		generation, err := r.storeNumber(n, name)
		if err != nil {
			return err
		}
		n.Generations = n.Generations.With(route.NameHash(name), generation)
	}
	return nil
}

// storeNumber returns the store number that a voter reported, or, for a dead
// one that has been a voter, the number it had then.
func (r *Acceptor) storeNumber(n *route.Region, name string) (uint64, error) {
	if n.Name == r.cfg.Region && name == r.cfg.Name {
		return r.meta.Generation, nil
	}
	if h, ok := r.reports[r.live.Find(n.Name, name).ID]; ok {
		return h.generation, nil
	}
	if slices.Contains(n.Former, name) {
		return r.newest().Generation(n.Name, name), nil
	}
	return 0, fmt.Errorf("voter %q of region %q is not known: start it first", name, n.Name)
}

// daemons counts the live daemons of a region by name.
func (r *Acceptor) daemons(region string) int {
	n := 0
	for i, p := range r.live {
		if p.Region == region && (i == 0 || r.live[i-1].Region != region || r.live[i-1].Name != p.Name) {
			n++
		}
	}
	return n
}
