package sim

import "time"

// suspectAgain is after how long on average a fault draws anew whom it takes
// for dead.
const suspectAgain = 400 * time.Millisecond

// suspect draws whom the daemons of a fault take for dead, or lets those of a
// zombie go on.
func (w *World) suspect(i int) {
	f := &w.cfg.Faults[i]
	if !w.inForce(i) {
		return
	}
	if f.Kind == Zombie {
		w.rise(i)
		return
	}
	for _, d := range w.daemons {
		if !d.in(f.From) {
			continue
		}
		d.suspects = make([]bool, len(w.daemons))
		for o := range d.suspects {
			d.suspects[o] = w.daemons[o].in(f.To) && w.chaos.IntN(2) == 0
		}
		if d.Up {
			w.tell(d)
		}
	}
	w.events.push(w.now+w.between(suspectAgain/4, 2*suspectAgain), evSuspect, int32(i))
}

// rise lets the zombies of fault i go on, once.
func (w *World) rise(i int) {
	if !w.risen[i] {
		w.risen[i] = true
		w.unpause(&w.cfg.Faults[i])
	}
}

// trust ends what suspect began.
func (w *World) trust(f *Fault) {
	for _, d := range w.daemons {
		if d.in(f.From) {
			d.suspects = nil
			if d.Up {
				w.tell(d)
			}
		}
	}
}

// inForce reports whether fault i is.
func (w *World) inForce(i int) bool {
	for _, a := range w.active {
		if a == i {
			return true
		}
	}
	return false
}

// resyncAll tells every process anew who is there.
func (w *World) resyncAll() {
	for _, d := range w.daemons {
		if d.Up {
			w.tell(d)
		}
	}
}
