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
	// MaxFormers bounds the earlier layouts to copy from, MaxReserves the
	// changes of the number of reserves that a layout remembers.
	MaxFormers  = 16
	MaxReserves = 16
	// MaxLost bounds the losses that a layout remembers.
	MaxLost = 8
	// MaxName bounds the bytes of a region's or daemon's name.
	MaxName   = 255
	maxWeight = 1 << 30
)

// Layout names the home regions of strict keys and the strict voters of each
// region. A layout never changes; the next one has the next number.
type Layout struct {
	Number uint64 `json:"number"`
	// Log is the history that the layout was announced in. Of two layouts of
	// one history the later one overrules the earlier one.
	Log     Log      `json:"log,omitzero"`
	Regions []Region `json:"regions"`        // by name
	Pins    []Pin    `json:"pins,omitempty"` // by rule
	// Formers are the layouts whose voters may hold watermarks that the voters
	// of this one do not have yet, ascending by number. There are none for the
	// first layout.
	Formers []Former `json:"formers,omitempty"`
	// Reserves are the numbers of regional reserves, ascending by From.
	Reserves []Reserves `json:"reserves,omitempty"`
	// Lost are the regions that lost their watermarks, in order of From.
	Lost []Loss `json:"lost,omitempty"`
}

// Loss is a region whose strict voters are gone for good, with the watermarks
// that no other region had copied. Keys that drew the region have no owner
// while hits count that were admitted before From.
type Loss struct {
	// Region is the name of the region, empty if any key may have drawn it.
	Region string `json:"region,omitempty"`
	From   int64  `json:"from"` // in Unix milliseconds
	// Regions and Pins are those by which the keys drew the region, without
	// voters.
	Regions []Region `json:"regions,omitempty"`
	Pins    []Pin    `json:"pins,omitempty"`
}

// Log is a history of layouts: a recovery of the control log.
type Log struct {
	Number uint64 `json:"number,omitempty"`
	Random uint64 `json:"random,omitempty"`
}

// Former is the part of an earlier layout that its voters are copied by.
type Former struct {
	Number  uint64         `json:"number"`
	Log     Log            `json:"log,omitzero"`
	Regions []FormerRegion `json:"regions"` // by name, each with voters
}

// FormerRegion names the strict voters of a region in an earlier layout.
type FormerRegion struct {
	Name     string   `json:"name"`
	Replicas []string `json:"replicas"`
}

// Reserves is the number of regions with a reserve in the windows that start at
// From or later, in Unix milliseconds.
type Reserves struct {
	From    int64 `json:"from"`
	Regions int   `json:"regions"`
	// New are the regions that have none in windows before.
	New []string `json:"new,omitempty"`
}

// Region is a region that can be the owner of keys.
type Region struct {
	Name string `json:"name"`
	// Weight is proportional to the number of keys that have their owner here.
	Weight uint32 `json:"weight"`
	// Replicas are the names of the region's strict voters, sorted.
	Replicas []string `json:"replicas,omitempty"`
	// Generations are the store numbers of Replicas when the layout was made,
	// except those that were 0: a voter with a later one may have voted under
	// the layout and lost it.
	Generations Generations `json:"generations,omitempty"`
}

// Pin fixes the home region of a rule.
type Pin struct {
	Rule   uint64 `json:"rule"` // rules.ID
	Region string `json:"region"`
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
	return l.validateFormers()
}

// validateFormers checks the former layouts and the reserves.
func (l *Layout) validateFormers() error {
	if len(l.Formers) > MaxFormers || len(l.Reserves) > MaxReserves {
		return fmt.Errorf("%d former layouts and %d numbers of reserves: want at most %d and %d", len(l.Formers), len(l.Reserves), MaxFormers, MaxReserves)
	}
	for i := range l.Formers {
		f := &l.Formers[i]
		if f.Number == 0 || f.Number >= l.Number || i > 0 && l.Formers[i-1].Number > f.Number || len(f.Regions) > MaxRegions {
			return fmt.Errorf("former layout %d of %d regions: want them ascending and below %d", f.Number, len(f.Regions), l.Number)
		}
		for j := range f.Regions {
			r := &f.Regions[j]
			if r.Name == "" || len(r.Name) > MaxName || len(r.Replicas) == 0 || j > 0 && f.Regions[j-1].Name >= r.Name {
				return fmt.Errorf("region %q of former layout %d: want names in order, each with voters", r.Name, f.Number)
			}
			if err := validateSet(r.Replicas); err != nil {
				return fmt.Errorf("region %q of former layout %d: %w", r.Name, f.Number, err)
			}
		}
	}
	for i, v := range l.Reserves {
		if v.Regions < 1 || v.Regions > MaxRegions || i > 0 && l.Reserves[i-1].From >= v.From {
			return fmt.Errorf("reserves of %d regions from %d on: want 1 to %d, ascending", v.Regions, v.From, MaxRegions)
		}
		if len(v.New) > v.Regions || slices.ContainsFunc(v.New, func(name string) bool { return name == "" || len(name) > MaxName }) {
			return fmt.Errorf("%d new regions of %d with reserves: want names, at most as many", len(v.New), v.Regions)
		}
	}
	return l.validateLost()
}

// validateLost checks the losses of a layout.
func (l *Layout) validateLost() error {
	if len(l.Lost) > MaxLost {
		return fmt.Errorf("%d losses: want at most %d", len(l.Lost), MaxLost)
	}
	for i := range l.Lost {
		x := &l.Lost[i]
		if i > 0 && l.Lost[i-1].From > x.From {
			return fmt.Errorf("loss from %d on at place %d: want them in order", x.From, i)
		}
		of := Layout{Number: 1, Regions: x.Regions, Pins: x.Pins}
		switch {
		case x.Region == "" && len(x.Regions)+len(x.Pins) == 0:
		case of.Region(x.Region) == nil:
			return fmt.Errorf("loss of region %q: want one of its layout", x.Region)
		default:
			if err := of.Validate(); err != nil {
				return fmt.Errorf("loss of region %q: %w", x.Region, err)
			}
		}
	}
	return nil
}

// LossOf returns the loss of a region whose voters are gone for good.
func (l *Layout) LossOf(region string, from int64) Loss {
	x := Loss{Region: region, From: from, Pins: l.Pins}
	for i := range l.Regions {
		x.Regions = append(x.Regions, Region{Name: l.Regions[i].Name, Weight: l.Regions[i].Weight})
	}
	return x
}

// WithLost returns the layout with more losses. Those beyond MaxLost are one:
// until the latest of them, no key has an owner.
func (l Layout) WithLost(more ...Loss) Layout {
	all := slices.Concat(l.Lost, more)
	slices.SortStableFunc(all, func(a, b Loss) int { return cmp.Compare(a.From, b.From) })
	if beyond := len(all) - MaxLost; beyond > 0 {
		all = all[beyond:]
		all[0] = Loss{From: all[0].From}
	}
	l.Lost = all
	return l
}

// Former returns the part of the layout that its voters are copied by.
func (l *Layout) Former() Former {
	f := Former{Number: l.Number, Log: l.Log}
	for i := range l.Regions {
		if r := &l.Regions[i]; len(r.Replicas) > 0 {
			f.Regions = append(f.Regions, FormerRegion{r.Name, r.Replicas})
		}
	}
	return f
}

// Covers reports whether voters of the layout need nothing of the layout o
// beyond their copies from Formers: o is one of them or was overruled before
// one became active. It has the numbers of reserves of o.
func (l *Layout) Covers(o *Layout) bool {
	former := o.Log == l.Log && o.Number <= l.Number || slices.ContainsFunc(l.Formers, func(f Former) bool {
		return f.Log == o.Log && f.Number >= o.Number || f.Log.Number > o.Log.Number
	})
	return o.Number == 0 || former && l.HasReserves(o)
}

// HasReserves reports whether the layout has the numbers of reserves of another
// one or larger ones, but for those that it is too full for. The same layout
// has one more when it becomes active.
func (l *Layout) HasReserves(o *Layout) bool {
	return !slices.ContainsFunc(o.Reserves, func(v Reserves) bool {
		dropped := len(l.Reserves) == MaxReserves && v.From < l.Reserves[0].From
		return !dropped && !slices.ContainsFunc(l.Reserves, func(is Reserves) bool { return is.From == v.From && is.Regions >= v.Regions })
	})
}

// OwnerRegions returns the number of regions that are not retired.
func (l *Layout) OwnerRegions() int {
	n := 0
	for i := range l.Regions {
		if !l.Regions[i].Retired() {
			n++
		}
	}
	return n
}

// WithReserves returns the layout with one reserve for each home region in the
// windows that start at from or later, in Unix milliseconds. The numbers of
// earlier windows stay: a region that one of the former layouts lacks has no
// reserve there, as others may have used it.
func (l Layout) WithReserves(from int64) Layout {
	if len(l.Reserves) == 0 {
		l.Reserves = []Reserves{{Regions: l.formerRegions()}}
		if len(l.Formers) == 0 {
			return l
		}
	}
	last := len(l.Reserves) - 1
	is := Reserves{From: max(from, l.Reserves[last].From+1), Regions: l.OwnerRegions()}
	for i := range l.Regions {
		if g := &l.Regions[i]; !g.Retired() && slices.ContainsFunc(l.Formers, func(f Former) bool { return !f.has(g.Name) }) {
			is.New = append(is.New, g.Name)
		}
	}
	if is.Regions != l.Reserves[last].Regions || len(is.New) > 0 {
		all := append(slices.Clone(l.Reserves), is)
		l.Reserves = all[max(0, len(all)-MaxReserves):]
	}
	return l
}

// formerRegions returns the number of reserves of a layout that none was active
// before, as far as is known: the largest of the layouts that may have been, as
// a recovery can drop that one became active.
func (l *Layout) formerRegions() int {
	n := 0
	for i := range l.Formers {
		n = max(n, len(l.Formers[i].Regions))
	}
	for i := range l.Lost {
		n = max(n, len(l.Lost[i].Regions))
	}
	if n == 0 {
		return l.OwnerRegions()
	}
	return n
}

// has reports whether the layout had voters in a region.
func (f *Former) has(region string) bool {
	return slices.ContainsFunc(f.Regions, func(g FormerRegion) bool { return g.Name == region })
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
	return r.Generations.Validate()
}

// validateSet returns an error for a set of voters that is not valid. A region
// may have none.
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
	next := *l
	next.Regions, next.Pins = slices.Clone(l.Regions), slices.Clone(l.Pins)
	return next
}

// Agrees reports whether two layouts are the same, also if one of them is not
// known to be active yet.
func (l *Layout) Agrees(o *Layout) bool {
	same := func(a, b Region) bool {
		return a.Name == b.Name && a.Weight == b.Weight && slices.Equal(a.Replicas, b.Replicas) && slices.Equal(a.Generations, b.Generations)
	}
	return l.Number == o.Number && l.Log == o.Log && slices.Equal(l.Pins, o.Pins) && slices.EqualFunc(l.Regions, o.Regions, same) &&
		slices.EqualFunc(l.Formers, o.Formers, func(a, b Former) bool { return a.Number == b.Number && a.Log == b.Log })
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
