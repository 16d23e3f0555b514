package sim

import (
	"cmp"
	"slices"

	"github.com/georld/rld/sticky/route"
)

// changeLayout has a daemon propose another layout: other replicas of a region, other
// weights or another pin. Whether it takes effect is for the replicas to say.
func (a *faults) changeLayout(w *World, f *Fault) {
	var able []*Daemon
	for _, d := range w.daemons {
		if d.Up && !d.Paused && d.acceptor != nil && d.in(f.From) {
			able = append(able, d)
		}
	}
	if len(able) == 0 {
		return
	}
	d := able[a.rng.IntN(len(able))]
	next := d.acceptor.Acceptor.Layout()
	region := &next.Regions[a.rng.IntN(len(next.Regions))]
	switch a.rng.IntN(4) {
	case 0:
		region.Weight = uint32(a.rng.IntN(4))
	case 1:
		a.repin(w, &next, region.Name)
	default:
		region.Replicas = a.drawReplicas(w, region.Name)
	}
	_ = d.acceptor.Acceptor.Propose(next) // what is not possible now does not happen
	d.turnAcceptor(w)
}

// drawReplicas draws some of a region's daemons, an odd number of them where it
// has more than two.
func (a *faults) drawReplicas(w *World, region string) []string {
	var all []string
	for _, d := range w.daemons {
		if d.Region == region {
			all = append(all, d.Name)
		}
	}
	a.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	n := min(1+a.rng.IntN(len(all)), route.MaxReplicas)
	if n > 2 && n%2 == 0 {
		n--
	}
	all = all[:n]
	slices.Sort(all)
	return all
}

// repin pins a rule that homes count to a region.
func (a *faults) repin(w *World, l *route.Layout, region string) {
	for _, r := range w.Rules().Rules() {
		if r.Limit == nil || !r.Limit.Homed() {
			continue
		}
		id := uint64(r.ID)
		l.Pins = slices.DeleteFunc(slices.Clone(l.Pins), func(p route.Pin) bool { return p.Rule == id })
		l.Pins = append(l.Pins, route.Pin{Rule: id, Region: region})
		slices.SortFunc(l.Pins, func(a, b route.Pin) int { return cmp.Compare(a.Rule, b.Rule) })
		return
	}
}
