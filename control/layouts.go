package control

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	// Lost are the regions whose strict voters are gone for good, as they were
	// stated.
	Lost []LostVoters `json:"lost,omitempty"`
}

// LayoutChange announces a layout, makes the announced one active, or states
// that voters are lost.
type LayoutChange struct {
	Announce *route.Layout   `json:"announce,omitempty"`
	Activate *Activation     `json:"activate,omitempty"`
	Recover  *StrictRecovery `json:"recover,omitempty"`
}

// StrictRecovery is the statement of an operator that a majority of the strict
// voters of a region is gone for good.
type StrictRecovery struct {
	// Stopped are the names of voters that do not run, or that run without the
	// state that they had as voters.
	Stopped []string `json:"stopped"`
	// Stated is when that was stated, in Unix milliseconds.
	Stated int64 `json:"stated,omitempty"`
	// Dead are the ids of the voters, as far as the leader knows them.
	Dead []DeadID `json:"dead,omitempty"`
	LostVoters
}

// LostVoters are the strict voters of a region that are gone for good, with
// their watermarks: nobody copies from them.
type LostVoters struct {
	Region string `json:"region"`
	// Number is the greatest layout under which they may have voted.
	Number uint64 `json:"number,omitempty"`
	// From is when they had stopped, and Until when no window is left that is
	// older, in Unix milliseconds.
	From  int64 `json:"from,omitempty"`
	Until int64 `json:"until,omitempty"`
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
// the active one, or those of an announced one that was dropped with the log,
// and others. lost are the losses of voters that nobody can copy from: keys
// drew their regions as known layouts state it. The first layout loses what ran
// before the cluster.
func (r *Record) formers(others ...*route.Layout) (all []route.Former, lost []route.Loss) {
	l, known := &r.Layouts, others
	if l.Active == nil && r.Cluster.From > 0 {
		lost = append(lost, route.Loss{From: r.Cluster.From})
	}
	if l.Active != nil {
		known = append(slices.Clip(known), l.Active)
	}
	for _, o := range known {
		all = mergeFormers(all, []route.Former{o.Former()})
	}
	if l.Announced != nil {
		all = mergeFormers(all, l.Announced.Formers)
	}
	for i := range all {
		f := &all[i]
		left := slices.DeleteFunc(slices.Clone(f.Regions), func(g route.FormerRegion) bool {
			x := l.lostIn(g.Name, f.Number)
			if x == nil {
				return false
			}
			loss := route.Loss{From: x.From} // of any key
			if k := slices.IndexFunc(known, func(o *route.Layout) bool { return o.Number == f.Number && o.Log == f.Log }); k >= 0 {
				loss = known[k].LossOf(g.Name, x.From)
			}
			lost = append(lost, loss)
			return true
		})
		f.Regions = left
	}
	return all, lost
}

// lostIn returns the loss of the voters of a region under a layout, nil for
// none.
func (l *Layouts) lostIn(region string, number uint64) *LostVoters {
	for i := range l.Lost {
		if x := &l.Lost[i]; x.Region == region && number <= x.Number {
			return x
		}
	}
	return nil
}

// Replacing returns the regions whose lost voters still count: the next layout
// is not active yet.
func (l *Layouts) Replacing() (all []string) {
	for _, x := range l.Lost {
		if l.Active != nil && len(l.Active.VotersOf(x.Region)) > 0 && l.Active.Number <= x.Number {
			all = append(all, x.Region)
		}
	}
	return all
}

// lose adds a loss of voters.
func (l *Layouts) lose(x LostVoters) error {
	l.Lost = slices.DeleteFunc(slices.Clone(l.Lost), func(o LostVoters) bool { return o.Region == x.Region })
	if l.Lost = append(l.Lost, x); len(l.Lost) > MaxRegions {
		return fmt.Errorf("the strict voters of %d regions are lost: want at most %d", len(l.Lost), MaxRegions)
	}
	return nil
}

// dropLost drops the losses that no window of a time is older than, and under
// which no voter can be copied any more.
func (l *Layouts) dropLost(at int64) {
	over := func(x LostVoters) bool {
		return x.Until <= at && (l.Active == nil || l.Active.Number > x.Number)
	}
	if slices.ContainsFunc(l.Lost, over) {
		l.Lost = slices.DeleteFunc(slices.Clone(l.Lost), over)
	}
}

// lacks returns the first of some losses that a layout does not have, nil for
// none.
func lacks(l *route.Layout, lost []route.Loss) *route.Loss {
	for i := range lost {
		if x := &lost[i]; !slices.ContainsFunc(l.Lost, func(o route.Loss) bool {
			return o.From >= x.From && (o.Region == "" || o.Region == x.Region)
		}) {
			return x
		}
	}
	return nil
}

// reachesFormers reports whether a majority of the voters of each former layout
// answers in each region, with the watermarks that it had: otherwise nobody
// could copy, all would be sealed, and nobody would vote. It asks those that
// were not heard just now: a region that is gone counts as live for a while.
func (a *LayoutAgent) reachesFormers(l *route.Layout, all []strictDaemon) bool {
	n, reached := a.node, true
	for i := range l.Formers {
		f := &l.Formers[i]
		for _, g := range f.Regions {
			live := 0
			for _, name := range g.Replicas {
				d := findStrict(all, g.Name, name)
				if d == nil || !a.remembers(d, f) {
					continue
				}
				p := n.byID(d.id)
				if p == nil || n.at-p.heardAt <= max(2*n.cfg.election(), 2*n.cfg.Retry) { // it is this daemon, or was heard
					live++
				} else {
					n.send(p, Message{Nonce: &Nonce{n.number(), p.sender.ID, p.sender.Run}})
				}
			}
			reached = reached && live >= route.Majority(len(g.Replicas))
		}
	}
	return reached
}

// remembers reports whether a voter of a former layout has its watermarks: it
// did not lose its disk, or it copied them from all others. Nothing is known
// about a layout before the active one.
func (a *LayoutAgent) remembers(d *strictDaemon, f *route.Former) bool {
	is := a.node.record.Layouts.Active
	if is == nil || is.Number != f.Number || is.Log != f.Log {
		return true
	}
	return d.report.Store == is.Generation(d.region, d.name) || d.report.Copied && d.report.Number >= f.Number
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
	case c.count() != 1:
		return errors.New("a change of layouts with none, or with several: want one")
	case c.Recover != nil:
		return r.recoverStrict(c.Recover)
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
	formers, lost := r.formers()
	if x := lacks(c.Announce, lost); x != nil {
		return fmt.Errorf("layout %d lacks the loss of the voters of region %q, empty for all, from %d on", c.Announce.Number, x.Region, x.From)
	}
	for _, f := range formers {
		if !slices.ContainsFunc(c.Announce.Formers, sameFormer(&f)) {
			return fmt.Errorf("layout %d does not copy from layout %d", c.Announce.Number, f.Number)
		}
	}
	next := c.Announce.Clone()
	next.Log = r.Version.Recovery.log()
	l.Announced = &next
	return nil
}

// count returns how many fields are set.
func (c *LayoutChange) count() int {
	n := 0
	for _, set := range [...]bool{c.Announce != nil, c.Activate != nil, c.Recover != nil} {
		if set {
			n++
		}
	}
	return n
}

// validate returns an error for a recovery of others than the voters of a
// region in the active layout.
func (c *StrictRecovery) validate(l *route.Layout) error {
	if l == nil || len(l.VotersOf(c.Region)) == 0 {
		return fmt.Errorf("region %q has no strict voters", c.Region)
	}
	voters := l.VotersOf(c.Region)
	for _, name := range c.Stopped {
		if !slices.Contains(voters, name) {
			return fmt.Errorf("daemon %q is no strict voter of region %q: these are %s", name, c.Region, strings.Join(voters, ", "))
		}
	}
	return nil
}

// recoverStrict gives the lost voters of a region up.
func (r *Record) recoverStrict(c *StrictRecovery) error {
	if err := c.validate(r.Layouts.Active); err != nil {
		return err
	}
	for i := range c.Dead {
		if err := r.end(&c.Dead[i]); err != nil {
			return err
		}
	}
	return r.Layouts.lose(c.LostVoters)
}

// stampRecovery completes a strict recovery, at the leader. It refuses one of a
// region that has a majority of its voters, or may have it again.
func (a *LayoutAgent) stampRecovery(c StrictRecovery) (*StrictRecovery, error) {
	n, x := a.node, &a.node.rights
	l := n.record.Layouts.Active
	if c.validate(l) != nil {
		return &c, nil // the record refuses it
	}
	if err := x.fresh(c.Stated); err != nil {
		return nil, err
	}
	all, voters, left := a.daemons(), l.VotersOf(c.Region), 0
	c.Number, c.From, c.Dead = a.greatest(all), max(c.From, x.endOf(x.knownIn(c.Region)...)), nil
	c.Until = n.outlasted(c.From)
	for _, name := range voters {
		d, stopped := findStrict(all, c.Region, name), slices.Contains(c.Stopped, name)
		has := d != nil && d.report.Store == l.Generation(c.Region, name)
		if stopped && has {
			return nil, fmt.Errorf("daemon %s runs, with its state as a strict voter: stop it first", name)
		}
		if !stopped {
			if has || d == nil {
				left++
			}
			continue
		}
		for _, id := range slices.SortedFunc(maps.Keys(x.known), ID.Compare) {
			k := x.known[id]
			if k.name != name || k.region != c.Region || n.Dead(id) || d != nil && d.id == id {
				continue
			}
			dead := DeadID{ID: id, Name: name, Stopped: true, From: c.From, Until: c.Until, Stated: c.Stated}
			if err := x.runs(&dead); err != nil {
				return nil, err
			}
			c.Dead = append(c.Dead, dead)
		}
	}
	if left >= route.Majority(len(voters)) {
		return nil, fmt.Errorf("%d of the %d strict voters of region %q are not stated to be stopped, and may vote: name those that are gone, or wait",
			left, len(voters), c.Region)
	}
	slices.SortFunc(c.Dead, func(a, b DeadID) int { return a.ID.Compare(b.ID) })
	return &c, nil
}

// greatest returns the greatest number of a layout that any daemon is known to
// have.
func (a *LayoutAgent) greatest(all []strictDaemon) uint64 {
	most := uint64(0)
	if l := a.node.record.Layouts.Newest(); l != nil {
		most = l.Number
	}
	for _, d := range all {
		if most = max(most, min(d.report.Number, maxLayout)); d.report.Unknown != nil {
			most = max(most, min(d.report.Unknown.Number, maxLayout))
		}
	}
	return most
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
	for i, x := range l.Lost {
		if x.Region == "" || x.Until < x.From || x.Number > maxLayout || i >= MaxRegions {
			return fmt.Errorf("lost strict voters of region %q at place %d, from %d until %d: want a region, and an end after the beginning",
				x.Region, i, x.From, x.Until)
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
	case c.Recover != nil:
		return fmt.Sprintf("region %s: its strict voters %s are gone for good: its strict keys have owners again in windows that start after %s",
			c.Recover.Region, strings.Join(c.Recover.Stopped, ", "), stamped(c.Recover.From))
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
