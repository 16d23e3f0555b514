package sim

import (
	"slices"
	"time"
)

// suspectAgain is the mean time between two draws of the daemons that a fault
// declares dead.
const suspectAgain = 400 * time.Millisecond

// turn continues fault i: its daemons suspect others, or its zombies rise.
func (a *faults) turn(w *World, i int) {
	switch f := &w.faults.all[i]; {
	case !slices.Contains(a.active, i):
	case f.Kind == Zombie:
		a.rise(w, f, i)
	default:
		a.suspect(w, f, i)
	}
}

// suspect draws the peers that the daemons of a fault believe to be dead.
func (a *faults) suspect(w *World, f *Fault, i int) {
	ofEach(func(_ *faults, _ *World, _ *Fault, d *Daemon) {
		d.suspects = make([]bool, len(w.daemons))
		for o := range d.suspects {
			d.suspects[o] = w.daemons[o].in(f.To) && a.rng.IntN(2) == 0
		}
		if d.Up && d.leaving == nil {
			w.membership.tell(w, d)
		}
	})(a, w, f, i)
	w.events.push(w.now+a.between(suspectAgain/4, 2*suspectAgain), evSuspect, int32(i))
}

// trust ends what suspect began.
func (a *faults) trust(w *World, _ *Fault, d *Daemon) {
	d.suspects = nil
	if d.Up && d.leaving == nil {
		w.membership.tell(w, d)
	}
}

// bury stops the daemons of a fault, and all others take them for dead.
func (a *faults) bury(w *World, f *Fault, i int) {
	ofEach((*faults).pause)(a, w, f, i)
	a.risen[i] = false
	w.membership.resyncAll(w)
	if f.For > 0 {
		w.events.push(w.now+f.For/2, evSuspect, int32(i))
	}
}

// rise lets the zombies of fault i go on, once.
func (a *faults) rise(w *World, f *Fault, i int) {
	if !a.risen[i] {
		a.risen[i] = true
		ofEach((*faults).unpause)(a, w, f, i)
	}
}

// reveal ends what bury began.
func (a *faults) reveal(w *World, f *Fault, i int) {
	a.rise(w, f, i)
	w.membership.resyncAll(w)
}

// resyncAll sets the peers of every process anew.
func (p *membership) resyncAll(w *World) {
	for _, d := range w.daemons {
		if d.Up && d.leaving == nil {
			p.tell(w, d)
		}
	}
}
