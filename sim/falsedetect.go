package sim

import "time"

// suspectAgain is the mean time between two draws of the daemons that a fault
// declares dead.
const suspectAgain = 400 * time.Millisecond

// suspect draws the peers that the daemons of a fault believe to be dead, or
// lets the processes of a zombie continue.
func (a *faults) suspect(w *World, i int) {
	f := &w.cfg.Faults[i]
	if !a.inForce(i) {
		return
	}
	if f.Kind == Zombie {
		a.rise(w, i)
		return
	}
	for _, d := range w.daemons {
		if !d.in(f.From) {
			continue
		}
		d.suspects = make([]bool, len(w.daemons))
		for o := range d.suspects {
			d.suspects[o] = w.daemons[o].in(f.To) && a.rng.IntN(2) == 0
		}
		if d.Up {
			w.membership.tell(w, d)
		}
	}
	w.events.push(w.now+a.between(suspectAgain/4, 2*suspectAgain), evSuspect, int32(i))
}

// rise lets the zombies of fault i go on, once.
func (a *faults) rise(w *World, i int) {
	if !a.risen[i] {
		a.risen[i] = true
		a.unpause(w, &w.cfg.Faults[i])
	}
}

// trust ends what suspect began.
func (a *faults) trust(w *World, f *Fault) {
	for _, d := range w.daemons {
		if d.in(f.From) {
			d.suspects = nil
			if d.Up {
				w.membership.tell(w, d)
			}
		}
	}
}

// inForce reports whether fault i is.
func (a *faults) inForce(i int) bool {
	for _, n := range a.active {
		if n == i {
			return true
		}
	}
	return false
}

// resyncAll sets the peers of every process anew.
func (p *membership) resyncAll(w *World) {
	for _, d := range w.daemons {
		if d.Up {
			p.tell(w, d)
		}
	}
}
