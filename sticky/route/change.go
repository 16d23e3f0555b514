package route

import (
	"fmt"
	"slices"
)

// Change replaces the strict voters of one region.
type Change struct {
	Region   string
	Replicas []string // in any order
}

// Of returns l with the change, for Acceptor.Propose.
func (c Change) Of(l Layout) (Layout, error) {
	next := l.Clone()
	r := next.Region(c.Region)
	if r == nil {
		return l, fmt.Errorf("sticky: region %q: want one of the layout's", c.Region)
	}
	r.Replicas = slices.Clone(c.Replicas)
	slices.Sort(r.Replicas)
	if len(r.Replicas) == 0 {
		return l, fmt.Errorf("sticky: no voters for region %q: want at least one", c.Region)
	}
	if err := validateSet(r.Replicas); err != nil {
		return l, fmt.Errorf("sticky: region %q: %w", c.Region, err)
	}
	return next, nil
}
