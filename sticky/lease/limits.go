package lease

import (
	"math"
	"time"

	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// ruleLimits are the limits of a rule's entries.
type ruleLimits struct {
	of             *rules.Limit
	reserves       reserveCount
	owner, reserve rules.Limit
	// window and version are those of the region's allotment in owner, for a
	// rule whose rights stay in each region.
	window  int64
	version uint64
}

// limit returns the limit of a rule's entries, or of their regional reserves:
// nil if the rule is not in force or has none.
func (t *Table) limit(r *rules.Rule, reserve bool) *rules.Limit {
	if r.Limit == nil || !r.Limit.Homed() {
		return nil
	}
	all := t.set.Rules()
	if r.Index >= len(all) || all[r.Index] != r { // of a set before
		if r = t.set.Find(r.ID); r == nil || r.Limit == nil {
			return nil
		}
	}
	if reserve && r.Limit.OnFailure != rules.Share {
		return nil
	}
	if t.limits == nil {
		t.limits = make([]ruleLimits, len(all))
	}
	x, n := &t.limits[r.Index], reserves(t, r.Limit)
	if x.of != r.Limit || x.reserves != n {
		*x = ruleLimits{of: r.Limit, reserves: n, owner: r.Limit.OwnerLimit(n.now), reserve: r.Limit.ReserveLimit(n.now)}
		x.lower(r.Limit.OwnerLimit(n.before), r.Limit.ReserveLimit(n.before))
		if !n.here {
			x.reserve.Requests, x.reserve.Burst = 0, 0
		}
	}
	if reserve {
		return &x.reserve
	}
	if r.Limit.HasRights() && r.Limit.HomeInRegion() && r.Limit.Scope != rules.Region && t.env.Allotments != nil {
		x.refresh(r, t.at.Millis, t.env.Allotments)
	}
	return &x.owner
}

// reserveCount is how many regional reserves count: those of the window, and
// those of the time from which on hits still count. The smaller limits of both
// apply. here reports that the region of the daemon has one of both.
type reserveCount struct {
	now, before int
	here        bool
}

// reserves returns the regional reserves that count now.
func reserves(t *Table, l *rules.Limit) reserveCount {
	v := t.env.Owners.Routing()
	if v == nil {
		return reserveCount{1, 1, true}
	}
	start, since := t.at.Millis, countedSince(l, t.at.Millis)
	if quota.Of(l).Windowed() {
		start -= start % l.Window()
	}
	return reserveCount{v.Reserves(start), v.Reserves(since), v.Reserved(min(start, since))}
}

// countedSince returns the time from which on hits still count.
func countedSince(l *rules.Limit, now int64) int64 {
	switch f := quota.Of(l); {
	case f.Weighted():
		return now - now%l.Window() - l.Window()
	case f.Windowed():
		return now - now%l.Window()
	case f.Drains():
		return now - f.RefillTime()
	}
	return now - l.Window()
}

// leasedSince returns the time from which on leases were granted whose hits
// still count. Those of buckets and logs may be used after the owner is gone.
func leasedSince(l *rules.Limit, now int64) int64 {
	switch f := quota.Of(l); {
	case f.Stamped():
		now -= f.WatermarkStep() + maxWithin.Milliseconds()
	case f.Drains():
		now -= 2*f.Step() + maxWithin.Milliseconds()
	}
	return countedSince(l, now)
}

// lower lowers the limits to those of another number of reserves.
func (x *ruleLimits) lower(owner, reserve rules.Limit) {
	for _, to := range [...]struct{ is, most *rules.Limit }{{&x.owner, &owner}, {&x.reserve, &reserve}} {
		to.is.Requests, to.is.Burst = min(to.is.Requests, to.most.Requests), min(to.is.Burst, to.most.Burst)
	}
}

// refresh raises the limit of a rule whose rights stay in each region to the
// largest allotment that the region has had in this window.
func (x *ruleLimits) refresh(r *rules.Rule, now int64, a Allotments) {
	window, carry := quota.Of(r.Limit).RightsWindow(now)
	version := a.Version()
	if x.window == window && x.version == version {
		return
	}
	if x.window != window {
		x.owner.Requests, x.owner.Burst = 0, 0
	}
	x.window, x.version = window, version
	allotment := func(total uint64) uint32 {
		n, _ := a.RegionAllotment(r.Shared(), total, window, carry)
		return uint32(min(n, math.MaxUint32))
	}
	x.owner.Requests = max(x.owner.Requests, allotment(r.Limit.Total()))
	x.owner.Burst = max(x.owner.Burst, allotment(r.Limit.TotalBurst()))
}

// leastUsable is how long grants of logs and buckets stay usable at least, in
// milliseconds.
const leastUsable = 100

// leastUsableOf returns the same for the grants of a limit. While rights are
// usable, as many of a bucket are not granted as it refills in that time, which
// half of its refill time bounds to half of the bucket.
func leastUsableOf(l *rules.Limit) int64 {
	if f := quota.Of(l); f.Drains() && l.Requests > 0 {
		return min(leastUsable, f.RefillTime()/2)
	}
	return leastUsable
}

// usableFor returns how long a grant is asked to stay usable, by a daemon that
// waits that long for the owner and that got its former answers within a time.
// For a bucket that refills in less, it is what the answers take: see
// leastUsableOf.
func usableFor(l *rules.Limit, wait, answered time.Duration) time.Duration {
	wait = min(max(wait, 0), maxWithin)
	if f := quota.Of(l); f.Drains() && l.Requests > 0 {
		half := time.Duration(f.RefillTime()/2) * time.Millisecond
		return min(wait, max(half, answered))
	}
	return wait
}

// leaseEnd returns when rights granted now end, in Unix milliseconds, if they
// must stay usable for within milliseconds: with the window, or at the end of a
// step of a bucket or log.
func leaseEnd(l *rules.Limit, now, within int64) int64 {
	f := quota.Of(l)
	step := f.WatermarkStep()
	switch {
	case f.Windowed():
		return now - now%l.Window() + l.Window()
	case f.Drains():
		if step = f.Step(); l.Requests == 0 {
			step = leastUsable // the region has no rights now, and may soon
		}
	}
	at := now + max(within, leastUsableOf(l))
	return at - at%step + step
}

// mostGranted returns the most rights that owners can have granted a daemon of
// one window, of a bucket or log for some milliseconds from now on: the limit
// with its budget, and the refill of a bucket meanwhile.
func mostGranted(l *rules.Limit, within int64) uint64 {
	most := max(l.Total(), l.TotalBurst())
	if quota.Of(l).Drains() {
		most = sat.Add(most, sat.MulDivUp(l.Total(), uint64(max(within, 0)), uint64(l.Window())))
	}
	return most
}

// endsLate reports whether grants that end at until end later than any that an
// owner makes now: they were made under other limits. The owner may have a part
// of the limit, with a step that is up to twice as long since its rate is
// rounded down.
func endsLate(l *rules.Limit, now, until int64) bool {
	longest := l.Window()
	if f := quota.Of(l); f.Drains() {
		longest = 2 * f.Step()
	}
	return until-now > longest+4*maxWithin.Milliseconds()
}

// leaseWindow returns the window that names grants which end at until: of
// buckets and logs the end itself.
func leaseWindow(l *rules.Limit, now, until int64) int64 {
	if quota.Of(l).Windowed() {
		return now - now%l.Window()
	}
	return until
}

// spentAt returns the instant that hits count from which may be used until an
// instant.
func spentAt(l *rules.Limit, now, until int64) int64 {
	if quota.Of(l).Stamped() && until > now {
		return until - 1
	}
	return now
}
