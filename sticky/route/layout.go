package route

import (
	"cmp"
	"fmt"
	"slices"
)

// The bounds of a layout.
const (
	MaxRegions = 64
	MaxPins    = 1_024
	// MaxReplicas bounds the strict voters of a region.
	MaxReplicas = 9
	// MaxName bounds the bytes of a region's or daemon's name.
	MaxName   = 255
	maxWeight = 1 << 30
)

// Layout names the home regions of strict keys and the strict voters of each
// region. A layout never changes; the next one has the next number.
type Layout struct {
	Number  uint64
	Regions []Region // by name
	Pins    []Pin    // by rule
}

// Region is a region that can be the owner of keys.
type Region struct {
	Name string
	// Weight is proportional to the number of keys that have their owner here.
	Weight uint32
	// Replicas are the names of the region's strict voters, sorted. Those of
	// another region may be empty: not known yet.
	Replicas []string
	// Former are the voters of the layout before, empty in the first layout.
	Former []string
	// Generations are the store numbers of Replicas when the layout was made,
	// except those that were 0: a voter with a later one may have voted under
	// the layout and lost it.
	Generations Generations
}

// Pin fixes the home region of a rule.
type Pin struct {
	Rule   uint64 // rules.ID
	Region string
}

// Validate returns an error that names the first field of a layout that is not
// valid, and its valid values.
func (l *Layout) Validate() error {
	if l.Number == 0 {
		return fmt.Errorf("layout 0: want numbers from 1")
	}
	if n := len(l.Regions); n == 0 || n > MaxRegions {
		return fmt.Errorf("layout of %d regions: want 1 to %d", n, MaxRegions)
	}
	if len(l.Pins) > MaxPins {
		return fmt.Errorf("layout of %d pins: want at most %d", len(l.Pins), MaxPins)
	}
	weights := uint64(0)
	for i := range l.Regions {
		r := &l.Regions[i]
		if i > 0 && l.Regions[i-1].Name >= r.Name {
			return fmt.Errorf("region %q after %q: want each once, in the order of names", r.Name, l.Regions[i-1].Name)
		}
		if err := r.validate(); err != nil {
			return fmt.Errorf("region %q: %w", r.Name, err)
		}
		weights += uint64(r.Weight)
	}
	if weights == 0 {
		return fmt.Errorf("all regions of the layout have weight 0: want at least one above")
	}
	for i, p := range l.Pins {
		if i > 0 && l.Pins[i-1].Rule >= p.Rule {
			return fmt.Errorf("pins of rule %016x: want each rule once, ascending", p.Rule)
		}
		if r := l.Region(p.Region); r == nil || r.Retired() {
			return fmt.Errorf("pin of rule %016x to %q: want one of the layout's regions", p.Rule, p.Region)
		}
	}
	return nil
}

func (r *Region) validate() error {
	if r.Name == "" || len(r.Name) > MaxName {
		return fmt.Errorf("name of %d bytes: want 1 to %d", len(r.Name), MaxName)
	}
	if r.Weight > maxWeight {
		return fmt.Errorf("weight %d: want at most %d", r.Weight, maxWeight)
	}
	if err := validateSet(r.Replicas); err != nil {
		return err
	}
	if err := validateSet(r.Former); err != nil {
		return fmt.Errorf("of the layout before: %w", err)
	}
	return r.Generations.Validate()
}

// validateSet returns an error for a set of voters that is not valid. An empty
// set is one that is not known.
func validateSet(names []string) error {
	if n := len(names); n > MaxReplicas || n > 2 && n%2 == 0 {
		return fmt.Errorf("%d voters: want an odd number up to %d, or both daemons of a region of two", n, MaxReplicas)
	}
	hashes := make([]uint64, 0, MaxReplicas)
	for i, name := range names {
		if name == "" || len(name) > MaxName {
			return fmt.Errorf("voter name of %d bytes: want 1 to %d", len(name), MaxName)
		}
		if i > 0 && names[i-1] >= name {
			return fmt.Errorf("voter %q after %q: want each once, in the order of names", name, names[i-1])
		}
		h := NameHash(name)
		if slices.Contains(hashes, h) {
			return fmt.Errorf("voter %q has the hash of another one: rename it", name)
		}
		hashes = append(hashes, h)
	}
	return nil
}

// Retired reports whether no keys have their owner in the region any more.
func (r *Region) Retired() bool { return r.Weight == 0 && len(r.Replicas) == 0 }

// Region returns the region of a name, nil if there is none.
func (l *Layout) Region(name string) *Region {
	i, ok := slices.BinarySearchFunc(l.Regions, name, func(r Region, n string) int {
		return cmp.Compare(r.Name, n)
	})
	if !ok {
		return nil
	}
	return &l.Regions[i]
}

// VotersOf returns the names of a region's strict voters.
func (l *Layout) VotersOf(region string) []string {
	if r := l.Region(region); r != nil {
		return r.Replicas
	}
	return nil
}

// Clone returns a copy with regions and pins of its own. It shares the names
// and store numbers of regions, which are never changed in place.
func (l *Layout) Clone() Layout {
	return Layout{Number: l.Number, Regions: slices.Clone(l.Regions), Pins: slices.Clone(l.Pins)}
}

// Agrees reports whether two layouts of one number are the same, except for
// voters that one of them does not know.
func (l *Layout) Agrees(o *Layout) bool {
	return slices.Equal(l.Pins, o.Pins) && slices.EqualFunc(l.Regions, o.Regions, func(a, b Region) bool {
		same := slices.Equal(a.Replicas, b.Replicas)
		switch {
		case a.Name != b.Name, a.Weight != b.Weight:
			return false
		case l.Number > 1: // all voters are known
			return same && slices.Equal(a.Former, b.Former) && slices.Equal(a.Generations, b.Generations)
		}
		return same || len(a.Replicas) == 0 || len(b.Replicas) == 0
	})
}

// Generation returns the store number that a voter had when the layout was
// made.
func (l *Layout) Generation(region, name string) uint64 {
	if r := l.Region(region); r != nil {
		return r.Generations.Of(NameHash(name))
	}
	return 0
}

// Majority returns the least size of groups of n voters of which any two have a
// voter in common.
func Majority(n int) int { return n/2 + 1 }
