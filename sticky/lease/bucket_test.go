package lease

import (
	"testing"
	"time"

	"github.com/georld/rld/quota/epoch"
)

// TestSmallBucketIsServed asks for a bucket of few tokens with slow disks.
func TestSmallBucketIsServed(t *testing.T) {
	w := newUserWorld(t, "unit: second, requests_per_unit: 20, burst: 10, algorithm: token_bucket, consistency: strict", 3)
	w.fsync = 5 * time.Millisecond
	w.serves(30, w.daemons...)
}

// serves asks daemons by turns every 200 ms for a hit, and expects that all are
// allowed.
func (w *world) serves(n int, by ...*daemon) {
	w.t.Helper()
	for i := range n {
		w.ask(by[i%len(by)], descriptor("user", "bob", 1))
		w.pass(200 * time.Millisecond)
	}
	if w.failed > 0 || w.allowed < n {
		w.t.Errorf("%d of %d allowed, %d calls reached no owner", w.allowed, n, w.failed)
	}
}

// TestLargeBucketIsServed asks other daemons than the owner for a bucket that
// refills in many windows: its leases are longer than a window.
func TestLargeBucketIsServed(t *testing.T) {
	w := newUserWorld(t, "unit: second, requests_per_unit: 10, burst: 10000, algorithm: token_bucket, consistency: strict", 3)
	x, _, _ := w.roles(descriptor("user", "bob", 1))
	w.serves(30, x)
	w.check(1)
}

// TestBucketRightsUsedLate uses the rights of a bucket at the end of the lease,
// and all rights of the owner right after.
func TestBucketRightsUsedLate(t *testing.T) {
	w := newWorld(t, 1, `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: second, requests_per_unit: 1000, burst: 400, algorithm: token_bucket, consistency: strict}
  - key: none
    rate_limit: {unit: day, requests_per_unit: 1, consistency: strict}
`, 3)
	x, owner, h := w.roles(descriptor("user", "bob", 1))
	none := descriptor("none", "x", 1)
	w.ask(owner, descriptor("user", "bob", 1))
	for _, d := range w.daemons {
		if d != x { // which does not know that none is left
			w.ask(d, none)
		}
	}
	w.pass(time.Second)
	left := func() uint64 { return x.table.find(h.Key, h.Rule, false).lease.left(h.Rule.Limit, w.wall()) }
	for range 3 { // a call that another limit denies leaves its granted rights
		if w.ask(x, descriptor("user", "bob", 300), none); left() > 0 {
			break
		}
		w.pass(7 * time.Millisecond)
	}
	if left() == 0 {
		t.Fatal("no rights are held")
	}
	for w.wall() < x.table.find(h.Key, h.Rule, false).lease.until-1 {
		w.pass(time.Millisecond)
	}
	w.ask(x, descriptor("user", "bob", left()))
	for range 8 {
		w.ask(owner, descriptor("user", "bob", 50))
	}
	w.pass(100 * time.Millisecond)
	w.check(1)
}

// TestBucketReservedForLong sets rights of a bucket aside at the owner for 300
// ms, uses them, and crashes the owner.
func TestBucketReservedForLong(t *testing.T) {
	w := newUserWorld(t, "unit: second, requests_per_unit: 400, burst: 200, algorithm: token_bucket, consistency: strict", 3, 3)
	_, owner, h := w.roles(descriptor("user", "bob", 1))
	w.ask(owner, descriptor("user", "bob", 150))
	w.pass(1020 * time.Millisecond)
	w.hits[h.Key] = nil
	c := w.newCall(owner, descriptor("user", "bob", 150))
	c.ticket = 9999
	if !w.probe(c) {
		t.Fatalf("it does not wait: %v", c)
	}
	owner.table.Request(w.clocks(owner), &c.hits[0], &c.answers[0], c.ticket)
	w.drain(owner)
	w.pass(300 * time.Millisecond)
	if !w.probe(c) { // else the rights may not be used any more
		w.charge(c)
		w.cancel(c)
		w.account(c)
	}
	w.drain(owner)
	w.crash(owner)
	for range 8 {
		w.ask(w.othersOf(owner)[0], descriptor("user", "bob", 50))
		w.pass(7 * time.Millisecond)
	}
	w.check(1)
}

// TestShorterReach has a lessee reach the owner faster: an earlier request
// asked for rights of a longer time.
func TestShorterReach(t *testing.T) {
	w := newUserWorld(t, "unit: second, requests_per_unit: 1000, burst: 400, algorithm: token_bucket, consistency: strict", 3)
	x, owner, _ := w.roles(descriptor("user", "bob", 1))
	w.ask(owner, descriptor("user", "bob", 60))
	w.pass(time.Second)
	x.reach = 250 * time.Millisecond
	w.ask(x, descriptor("user", "bob", 1))
	w.pass(20 * time.Millisecond)
	x.reach = 150 * time.Millisecond
	w.allowed = 0
	for range 10 {
		w.ask(x, descriptor("user", "bob", 5))
		w.pass(5 * time.Millisecond)
	}
	w.pass(time.Second)
	if w.failed > 0 || w.allowed == 0 {
		t.Errorf("%d calls reached no owner, %d allowed", w.failed, w.allowed)
	}
}

// evenAllotment is an even part of the total, 0 for none.
type evenAllotment struct{ parts, version uint64 }

func (r *evenAllotment) Version() uint64 { return r.version }

func (r *evenAllotment) RegionAllotment(_, total uint64, _, _ int64) (uint64, epoch.Reason) {
	if r.parts == 0 {
		return 0, epoch.ReasonEpoch
	}
	return total / r.parts, epoch.ReasonEpoch
}

// TestBucketOfARegionWithoutRights has a region get its allotment late: daemons
// that asked before are not locked out of a bucket.
func TestBucketOfARegionWithoutRights(t *testing.T) {
	w := newUserWorld(t, "unit: hour, requests_per_unit: 36000, burst: 60, algorithm: token_bucket, consistency: partition, placement: region", 3, 3)
	region := &evenAllotment{}
	for _, d := range w.daemons {
		d.table.env.Allotments = region
	}
	x, _, _ := w.roles(descriptor("user", "bob", 1))
	w.ask(x, descriptor("user", "bob", 1))
	w.pass(300 * time.Millisecond)
	if w.allowed > 0 {
		t.Error("allowed without rights")
	}
	region.parts, region.version = 2, 1
	w.pass(5 * time.Second)
	for range 20 {
		w.ask(x, descriptor("user", "bob", 1))
		w.pass(500 * time.Millisecond)
	}
	if w.allowed < 20 {
		t.Errorf("%d of 20 allowed", w.allowed)
	}
}

// TestLogRightsUsedLate uses rights of a log at the very end of the lease, and
// all rights of the owner a window later.
func TestLogRightsUsedLate(t *testing.T) {
	w := newUserWorld(t, "unit: second, requests_per_unit: 8, algorithm: sliding_log, consistency: strict", 3)
	x, owner, h := w.roles(descriptor("user", "bob", 1))
	w.ask(owner, descriptor("user", "bob", 1))
	w.ask(x, descriptor("user", "bob", 1))
	w.pass(1500 * time.Millisecond)
	left := func() uint64 {
		return x.table.find(h.Key, h.Rule, false).lease.left(h.Rule.Limit, w.clocks(x).Millis)
	}
	w.lease(x, owner, h, 5)
	for i := 0; i < 30 && left() == 0; i++ {
		w.pass(time.Millisecond)
	}
	w.ask(x, descriptor("user", "bob", 1)) // the lease is in use, and not returned
	if left() == 0 {
		t.Fatal("no rights are held")
	}
	for w.wall() < x.table.find(h.Key, h.Rule, false).lease.until-1 {
		w.pass(time.Millisecond)
	}
	used := left()
	w.ask(x, descriptor("user", "bob", used))
	for range 200 {
		w.ask(owner, descriptor("user", "bob", 1))
		w.pass(6 * time.Millisecond)
	}
	w.check(1)
	if used < 4 || w.allowed < 12 {
		t.Errorf("%d used late, %d allowed: the test proves nothing", used, w.allowed)
	}
}

// TestBriefBucketIsServed asks for a bucket that refills sooner than a daemon
// waits for the owner.
func TestBriefBucketIsServed(t *testing.T) {
	w := newUserWorld(t, "unit: second, requests_per_unit: 1000, burst: 60, algorithm: token_bucket, consistency: strict", 3)
	x, _, _ := w.roles(descriptor("user", "bob", 1))
	x.reach = 250 * time.Millisecond
	w.serves(30, x)
	w.check(1)
}
