package agent

import "slices"

// Leave begins the end of the daemon: the next epoch of the region leaves it
// out, one epoch for all that leave. The daemon uses its rights until that is
// settled.
func (a *Agent) Leave() {
	a.leaving, a.ready = true, false
	a.changes++
}

// Left reports whether waiting for the others has an end: an epoch without this
// daemon is settled, or no daemon is left that may propose one.
func (a *Agent) Left() bool {
	top := newest(a.local)
	_, from := a.local.Settled()
	return top.Settled && !top.Epoch.Has(a.cfg.Self) && from <= a.now || !slices.ContainsFunc(a.links, func(l *link) bool {
		return l.local && l.ready && l.alive(a.at)
	})
}

// Stop ends the use of rights: the daemon uses no window that begins later, and
// stores that, so that its next run need not leave out windows that this one
// may have used. Call it after the last call was decided, when Left is true or
// after a while.
func (a *Agent) Stop() {
	if a.stopping || a.stamp == 0 {
		return
	}
	a.Leave()
	a.region.Stop(a.now)
	a.local.Stop(a.now)
	a.stopping, a.disk.dirty = true, true
	a.version++
}

// Stopped reports whether all windows are over for this daemon, on its disk,
// too.
func (a *Agent) Stopped() bool { return a.stopping && !a.disk.dirty && a.disk.flight == nil }
