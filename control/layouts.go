package control

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/georld/rld/sticky/route"
)

// Layouts are the layouts of strict keys. Layouts are immutable: they must not
// be modified.
type Layouts struct {
	// Active is the latest layout under which strict voters vote, nil before
	// the first one.
	Active *route.Layout `json:"active,omitempty"`
	// Announced is the layout that replaces it, nil for none. Its voters copy
	// the watermarks of the voters of its Formers, which vote no more.
	Announced *route.Layout `json:"announced,omitempty"`
}

// LayoutChange announces a layout, or makes the announced one active.
type LayoutChange struct {
	Announce *route.Layout `json:"announce,omitempty"`
	Activate *Activation   `json:"activate,omitempty"`
}

// Activation makes a layout active: a majority of its voters in each region
// has all watermarks.
type Activation struct {
	Number uint64 `json:"number"`
	// From is after all windows for which an owner may have accepted watermarks
	// under former layouts, in Unix milliseconds.
	From int64 `json:"from"`
}

// maxLayout bounds the numbers of layouts, so that there is always a greater
// one.
const maxLayout = 1 << 62

// log returns the recovery as the history of layouts.
func (r Recovery) log() route.Log {
	return route.Log{Number: uint64(r.Number), Random: uint64(r.Random)}
}

// Newest returns the latest layout, nil before the first one.
func (l *Layouts) Newest() *route.Layout { return cmp.Or(l.Announced, l.Active) }

// formers returns the layouts that the voters of the next one must copy from:
// the active one, or those of an announced one that was dropped with the log.
func (l *Layouts) formers() []route.Former {
	var all []route.Former
	if l.Active != nil {
		all = append(all, l.Active.Former())
	}
	if l.Announced != nil {
		all = mergeFormers(all, l.Announced.Formers)
	}
	return all
}

// mergeFormers adds former layouts that are not there yet, by number.
func mergeFormers(all, more []route.Former) []route.Former {
	for _, f := range more {
		if !slices.ContainsFunc(all, sameFormer(&f)) {
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b route.Former) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

func sameFormer(f *route.Former) func(route.Former) bool {
	return func(o route.Former) bool { return o.Number == f.Number && o.Log == f.Log }
}

// changeLayouts makes the change of an entry.
func (r *Record) changeLayouts(c *LayoutChange) error {
	l := &r.Layouts
	switch is := l.Newest(); {
	case (c.Announce == nil) == (c.Activate == nil):
		return errors.New("a change of layouts with none, or with several: want one")
	case c.Activate != nil && (l.Announced == nil || l.Announced.Number != c.Activate.Number):
		return fmt.Errorf("layout %d is not announced any more", c.Activate.Number)
	case c.Activate != nil && l.Announced.Log != r.Version.Recovery.log():
		return fmt.Errorf("layout %d was announced before the recovery", c.Activate.Number)
	case c.Activate != nil:
		next := l.Announced.Clone().WithReserves(c.Activate.From)
		l.Active, l.Announced = &next, nil
		return nil
	case is != nil && c.Announce.Number <= is.Number:
		return fmt.Errorf("layout %d after %d: want a greater number", c.Announce.Number, is.Number)
	}
	for _, f := range l.formers() {
		if !slices.ContainsFunc(c.Announce.Formers, sameFormer(&f)) {
			return fmt.Errorf("layout %d does not copy from layout %d", c.Announce.Number, f.Number)
		}
	}
	next := c.Announce.Clone()
	next.Log = r.Version.Recovery.log()
	l.Announced = &next
	return nil
}

// validate returns an error for layouts that break an invariant.
func (l *Layouts) validate() error {
	for _, is := range []*route.Layout{l.Active, l.Announced} {
		if is == nil {
			continue
		}
		if err := is.Validate(); err != nil {
			return err
		}
		if is.Number > maxLayout {
			return fmt.Errorf("layout %d: want at most %d", is.Number, uint64(maxLayout))
		}
	}
	if l.Active != nil && l.Announced != nil && l.Active.Number >= l.Announced.Number {
		return fmt.Errorf("layout %d is announced, and %d active: want a greater number", l.Announced.Number, l.Active.Number)
	}
	return nil
}

// describe returns the text of the change.
func (c *LayoutChange) describe() string {
	switch {
	case c.Activate != nil:
		return fmt.Sprintf("layout %d of strict keys is active", c.Activate.Number)
	case c.Announce != nil:
		text := fmt.Sprintf("layout %d of strict keys is announced", c.Announce.Number)
		for i := range c.Announce.Regions {
			g := &c.Announce.Regions[i]
			text += fmt.Sprintf("; %s: %v", g.Name, g.Replicas)
		}
		return shorten(text, maxText)
	}
	return ""
}
