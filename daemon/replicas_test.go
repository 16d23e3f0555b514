package daemon

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/wire"
)

// rig holds engines of several regions whose replicators exchange frames. Only
// the sockets are missing.
type rig struct {
	tb      testing.TB
	engines map[crdt.Incarnation]*Engine
	order   []*Engine
	frames  int
	mu      sync.Mutex // guards frames and cut
	cut     map[crdt.Incarnation]bool
}

// newRig starts an engine in each of the regions until ctx ends.
func newRig(ctx context.Context, tb testing.TB, wg *sync.WaitGroup, set *rules.Set, regions ...string) *rig {
	r := &rig{tb: tb, engines: map[crdt.Incarnation]*Engine{}, cut: map[crdt.Incarnation]bool{}}
	var peers []gossip.Peer
	for i, region := range regions {
		nc := node.Default()
		nc.Region, nc.Name = region, fmt.Sprintf("%s-%d", region, i)
		nc.Gossip.FrameCells = 512
		e, err := NewEngine(EngineConfig{Node: nc, Shards: 4, MaxKeys: 10_000, Seed: [2]uint64{1, uint64(i)}})
		if err != nil {
			tb.Fatal(err)
		}
		e.SetRules(set, node.MatcherOptions{})
		r.engines[e.Incarnation()] = e
		r.order = append(r.order, e)
		peers = append(peers, gossip.Peer{ID: e.Incarnation(), Name: nc.Name, Region: region, Ready: true})
	}
	for _, e := range r.order {
		e.Peers(e.Now(), peers)
		rep := &replicator{engine: e, send: func(to crdt.Incarnation, frame []byte) bool { return r.deliver(e.Incarnation(), to, frame) }, happened: func(int, []gossip.Event) {}}
		wg.Go(func() { rep.run(ctx) })
	}
	return r
}

// deliver passes a frame of an engine to its receiver at once.
func (r *rig) deliver(from, to crdt.Incarnation, frame []byte) bool {
	msgs, err := new(wire.Decoder).Decode(from, to, frame)
	if err != nil {
		r.tb.Error(err)
		return false
	}
	r.mu.Lock()
	r.frames++
	lost := r.cut[to] || r.cut[msgs[0].From]
	r.mu.Unlock()
	if lost {
		return false
	}
	e := r.engines[to]
	for i := range msgs {
		if err := e.Step(e.Now(), &msgs[i]); err != nil {
			r.tb.Error(err)
		}
	}
	return true
}

// ask charges one hit of a user and returns the remaining hits, -1 for a
// denial.
func ask(tb testing.TB, e *Engine, user string) int64 {
	c := node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(1, "user", user)}}
	if err := e.Check(context.Background(), &c); err != nil {
		tb.Fatal(err)
	}
	if !c.Decision.Allowed {
		return -1
	}
	return int64(c.Statuses[0].Remaining)
}

// userRule limits each user to n hits a minute, in sliding windows: these are
// sent to other regions with any hit.
func userRule(tb testing.TB, n uint32) *rules.Set {
	set, err := rules.NewSet([]rules.DomainNode{{Name: "edge", Children: []rules.Node{{
		Key: "user", Limit: &rules.Limit{Algorithm: rules.SlidingWindow, Unit: rules.Minute, Multiplier: 1, Requests: n},
	}}}})
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

// TestReplicatorsAgree: counts of every shard propagate within two intervals in
// the region and soon to the other one, and sooner near the limit.
func TestReplicatorsAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		r := newRig(ctx, t, &wg, userRule(t, 100), "eu", "eu", "us")
		time.Sleep(5 * time.Second)
		for i, e := range r.order {
			if !e.Synced() {
				t.Errorf("daemon %d is not ready", i)
			}
		}
		for i := range 40 {
			ask(t, r.order[0], fmt.Sprint(i))
		}
		time.Sleep(200 * time.Millisecond)
		for i := range 40 {
			if got := ask(t, r.order[1], fmt.Sprint(i)); got != 98 {
				t.Errorf("user %d in the region: %d remain, want 98", i, got)
			}
		}
		time.Sleep(time.Second)
		for i := range 40 {
			if got := ask(t, r.order[2], fmt.Sprint(i)); got != 97 {
				t.Errorf("user %d in the other region: %d remain, want 97", i, got)
			}
		}
		time.Sleep(time.Second) // until the count is in the first region
		for range 95 {
			ask(t, r.order[0], "0")
		}
		time.Sleep(30 * time.Millisecond)
		// Two hits remain; the slope of the key may deny them.
		if got := ask(t, r.order[1], "0"); got > 1 {
			t.Errorf("near the limit: %d remain after 30 ms", got)
		}
	})
}

// TestLeavingIsFlushed: a leaving daemon knows when the others have all counts.
func TestLeavingIsFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		r := newRig(ctx, t, &wg, userRule(t, 100), "eu", "eu")
		time.Sleep(5 * time.Second)
		a := r.order[0]
		r.mu.Lock()
		r.cut[r.order[1].Incarnation()] = true
		r.mu.Unlock()
		ask(t, a, "x")
		a.Leave()
		time.Sleep(150 * time.Millisecond)
		d := a.depart(nil)
		if over, _ := d.over(); over {
			t.Error("over while nothing gets through")
		}
		r.mu.Lock()
		clear(r.cut)
		r.mu.Unlock()
		time.Sleep(1900 * time.Millisecond)
		ask(t, a, "y") // not waited for
		if over, acknowledged := d.over(); !over || !acknowledged {
			t.Error("not acknowledged in two seconds")
		}
	})
}

// TestShardsMustAgree: a message of another number of shards is rejected.
func TestShardsMustAgree(t *testing.T) {
	e := newEngine(t, 10)
	for _, m := range []gossip.Message{{Shards: 2}, {Shards: e.Shards(), Shard: e.Shards()}, {Shards: e.Shards(), Shard: -1}} {
		if err := e.Step(e.Now(), &m); err == nil {
			t.Errorf("shard %d of %d was taken", m.Shard, m.Shards)
		}
	}
}
