package audit

import "github.com/georld/rld/sim"

// liveness checks that the core serves its clients again after the last fault:
// it answers calls, admits new keys in every region and settles its epochs.
func liveness(a *sim.Auditor, t *truth) {
	f := finding{a, t}
	a.Ended = func(bool) {
		reason, served := t.world.Stuck()
		a.Pass(served)
		f.check(reason == "", "%v after the last fault, %s", t.world.Config().Liveness, reason)
	}
}
