package quorum

import (
	"fmt"
	"slices"

	"github.com/georld/rld/sticky/route"
)

// Layouts takes the place of the control log in simulations and tests without
// one: everybody knows it at once, and it is never lost. The zero value has no
// layout. Its layouts must not be changed.
type Layouts struct{ Active, Announced *route.Layout }

// Reports returns the latest report of a voter, false for one that is not
// reached.
type Reports func(region, name string) (Report, bool)

// Begin makes the first layout active, with the store numbers that its voters
// report.
func (l *Layouts) Begin(first route.Layout, reports Reports) {
	first = first.Clone().WithReserves(0)
	first.Number = 1
	for i := range first.Regions {
		g := &first.Regions[i]
		for _, name := range g.Replicas {
			if r, ok := reports(g.Name, name); ok {
				g.Generations = g.Generations.With(route.Generation{Voter: route.NameHash(name), Generation: r.Generation})
			}
		}
	}
	l.Active = &first
}

// Announce announces the next layout: the regions, pins and losses of next. The
// other fields are filled in. Nobody copies from the voters of regions that are
// lost. It fails if the former voters, or a majority of the new
// ones, are not reached.
func (l *Layouts) Announce(next route.Layout, reports Reports) error {
	next, is := next.Clone(), l.Active
	next.Formers, next.Reserves, next.Number = []route.Former{is.Former()}, is.Reserves, is.Number+1
	if l.Announced != nil {
		next.Number = l.Announced.Number + 1
	}
	f := &next.Formers[0]
	f.Regions = slices.DeleteFunc(f.Regions, func(g route.FormerRegion) bool {
		return slices.ContainsFunc(next.Lost[len(is.Lost):], func(x route.Loss) bool { return x.Region == g.Name })
	})
	for _, g := range f.Regions {
		if err := reached(g.Name, g.Replicas, reports); err != nil {
			return err
		}
	}
	for i := range next.Regions {
		g := &next.Regions[i]
		if err := reached(g.Name, g.Replicas, reports); err != nil {
			return err
		}
		g.Generations = nil
		for _, name := range g.Replicas {
			number := is.Generation(g.Name, name)
			if r, ok := reports(g.Name, name); ok {
				number = r.Generation
			}
			g.Generations = g.Generations.With(route.Generation{Voter: route.NameHash(name), Generation: number})
		}
	}
	if err := next.Validate(); err != nil {
		return fmt.Errorf("sticky: %w", err)
	}
	l.Announced = &next
	return nil
}

func reached(region string, names []string, reports Reports) error {
	n := 0
	for _, name := range names {
		if _, ok := reports(region, name); ok {
			n++
		}
	}
	if len(names) > 0 && n < route.Majority(len(names)) {
		return fmt.Errorf("sticky: %d of the %d voters of region %q are reached: want a majority", n, len(names), region)
	}
	return nil
}

// Turn makes the announced layout active once a majority of its voters has
// copied in each region, and reports whether it did. from is after all windows
// that owners may use, in Unix milliseconds.
func (l *Layouts) Turn(from int64, reports Reports) bool {
	is := l.Announced
	if is == nil {
		return false
	}
	for i := range is.Regions {
		g := &is.Regions[i]
		copied := func(region, name string) (Report, bool) {
			r, ok := reports(region, name)
			return r, ok && r.Copied && r.Number == is.Number && r.Log == is.Log
		}
		if reached(g.Name, g.Replicas, copied) != nil {
			return false
		}
	}
	next := is.Clone().WithReserves(from)
	l.Active, l.Announced = &next, nil
	return true
}
