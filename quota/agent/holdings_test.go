package agent

import "time"

// held returns the sum of all allotments in the window that starts now, by the
// clock of the first daemon.
func (r *rig) held(rule int) uint64 {
	sum, now := uint64(0), r.now(r.daemons[0])
	for _, p := range r.daemons {
		if p.up {
			sum += r.baseAt(p, rule, now)
		}
	}
	return sum
}

func (r *rig) base(p *proc, rule int) uint64 { return r.baseAt(p, rule, r.now(p)) }

func (r *rig) baseAt(p *proc, rule int, window int64) uint64 {
	a := r.asked[rule]
	base, _ := p.Allotment(a.id, a.total, window, a.carry, false)
	return base
}

// until runs until a condition holds, at most d, and returns how long it took.
func (r *rig) until(d time.Duration, what string, ok func() bool) time.Duration {
	r.t.Helper()
	from := r.at
	for !ok() {
		if r.at-from >= d {
			r.dump()
			r.t.Fatalf("%v: %s: not within %v", r.at, what, d)
		}
		r.run(step)
	}
	return r.at - from
}

// whole reports whether the total of every rule is held, except for rounding.
func (r *rig) whole() bool {
	for i, a := range r.asked {
		if r.held(i)+uint64(2*len(r.cfg.Genesis)) < a.total {
			return false
		}
	}
	return true
}

// dump logs the state of the daemons.
func (r *rig) dump() {
	for _, p := range r.daemons {
		if !p.up {
			r.t.Logf("%s is down", p.name)
			continue
		}
		s := p.Status()
		r.t.Logf("%s ready %v leading %v holds %v (%v) failing %q\n regions %+v\n daemons %+v",
			p.name, p.ready, p.leading, s.Holds, s.Reason, s.Failing, s.Regions, s.Daemons)
		for _, e := range p.events[max(0, len(p.events)-8):] {
			r.t.Logf("   %v %v %s %s", e.At, e.Kind, e.Peer, e.Text)
		}
	}
}
