package agent

import (
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/quota/epoch"
)

// TestDroppedEpochOfEndedRegion: a log that a recovery dropped did not have
// the end of a region. All acknowledged an epoch of that log with the region,
// before the record had another one. A later one that retires the region again
// is settled.
func TestDroppedEpochOfEndedRegion(t *testing.T) {
	r := newRig(t, 1, 1, 1, 1)
	r.boot()
	a, b := r.find("a1"), r.find("b1")
	r.run(5 * time.Second)
	r.crash(r.find("c1"))
	if err := r.removeRegion(a, "c"); err != nil {
		t.Fatal(err)
	}
	r.until(15*time.Second, "a and b hold all", r.whole)
	r.run(5 * time.Second)
	e := r.newest().With(regionOf("c", 0), 100_000)
	e.ID, e.Pred = epoch.ID{Stamp: r.stamp(b), Proposer: uint64(b.self)}, r.newest().ID
	b.Regions(r.record.regions, append(slices.Clone(r.record.epochs), e))
	r.until(time.Second, "a and b acknowledge it", func() bool {
		top := newest(a.Agent.region)
		return top.Epoch.ID == e.ID && len(top.Acks) == 2
	})
	if err := r.change(a, r.newest().With(regionOf("a", 0), 600_000)); err != nil {
		t.Fatal(err)
	}
	r.until(15*time.Second, "a holds its share", func() bool { return r.base(a, 0) > 5900 && r.whole() })
	if ended := newest(a.Agent.region).Epoch.Retired; len(ended) != 1 || ended[0].ID != regionOf("c", 0) {
		t.Errorf("retired %+v, want region c", ended)
	}
	r.safe()
}
