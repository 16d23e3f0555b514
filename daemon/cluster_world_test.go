package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
	"github.com/georld/rld/gossip/swim"
	"github.com/georld/rld/internal/fakenet"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// worldShards is the number of shards of the daemons of a world.
const worldShards = 2

// oneWay is the delay between two regions of a world.
const oneWay = 80 * time.Millisecond

// world holds daemons of several regions, each an engine with its cluster, over
// networks in memory. Only the edges are missing. It belongs to one goroutine,
// in a synctest bubble.
type world struct {
	t      *testing.T
	fabric *fabric
	swims  *fakenet.Network
	rules  *rules.Set
	limit  uint64 // of each user, a minute
	gossip gossip.Config
	mend   func(*resident, *clusterConfig) // changes the configuration of a cluster; may be nil
	// engine changes the configuration of an engine, and then of its cluster;
	// may be nil.
	engine    func(*resident, *EngineConfig, *slog.Logger) func(*clusterConfig)
	residents []*resident
	turn      int              // index of the next daemon to call
	started   uint64           // incarnations
	admitted  map[int64]uint64 // of the audited user, by minute
}

// resident is a daemon of a world across its incarnations.
type resident struct {
	world        *world
	region, name string
	ip           string
	seeds        []string
	contacts     map[string][]string
	log          *lockedBuffer
	logged       int // bytes of the log that lines skips
	*cluster         // nil while it is down
}

// newWorld starts daemons in regions, and ends them with the test.
func newWorld(t *testing.T, limit uint32, daemons int, regions ...string) *world {
	t.Helper()
	w := emptyWorld(t, limit, daemons, regions...)
	w.start()
	return w
}

// start starts all daemons.
func (w *world) start() {
	w.t.Helper()
	for _, r := range w.residents {
		r.start()
	}
}

// emptyWorld returns a world of daemons that are not started. Each has the
// addresses of its region and of one daemon of each other region.
func emptyWorld(t *testing.T, limit uint32, daemons int, regions ...string) *world {
	t.Helper()
	w := &world{
		t: t, swims: fakenet.New(), rules: worldRules(t, limit), limit: uint64(limit),
		admitted: map[int64]uint64{},
	}
	w.fabric = newFabric(func(from, to string) time.Duration {
		if region(from) == region(to) {
			return time.Millisecond
		}
		return oneWay
	})
	for i, name := range regions {
		r := resident{world: w, region: name, contacts: map[string][]string{}}
		for j := range daemons {
			r.seeds = append(r.seeds, fmt.Sprintf("10.%d.0.%d:7946", i+1, j+1))
		}
		for j, other := range regions {
			if j != i {
				r.contacts[other] = []string{fmt.Sprintf("10.%d.0.1:7947", j+1)}
			}
		}
		for j := range daemons {
			one := r
			one.name, one.ip = fmt.Sprintf("%s-%d", name, j), fmt.Sprintf("10.%d.0.%d", i+1, j+1)
			one.log = &lockedBuffer{}
			w.residents = append(w.residents, &one)
		}
	}
	t.Cleanup(func() {
		for _, r := range w.residents {
			r.kill()
		}
	})
	return w
}

// worldRules limits each user and visitor to n hits a minute, and each tenant
// to as many an hour. Sliding windows are sent to other regions with any hit.
func worldRules(t *testing.T, n uint32) *rules.Set {
	t.Helper()
	set, err := rules.NewSet([]rules.DomainNode{{Name: "edge", Children: []rules.Node{
		{Key: "user", Limit: &rules.Limit{Unit: rules.Minute, Multiplier: 1, Requests: n}},
		{Key: "visitor", Limit: &rules.Limit{Algorithm: rules.SlidingWindow, Unit: rules.Minute, Multiplier: 1, Requests: n}},
		{Key: "tenant", Limit: &rules.Limit{Algorithm: rules.SlidingWindow, Unit: rules.Hour, Multiplier: 1, Requests: n}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// region returns the common prefix of the addresses of a region.
func region(host string) string { return strings.Join(strings.Split(host, ".")[:2], ".") }

// Addresses of a resident.
func (r *resident) peerAddr() string { return r.ip + ":7947" }
func (r *resident) swimAddr() string { return r.ip + ":7946" }

// start starts another incarnation.
func (r *resident) start() {
	w := r.world
	w.t.Helper()
	w.started++
	nc := node.Default()
	nc.Region, nc.Name, nc.Gossip = r.region, r.name, w.gossip
	nc.Gossip.FrameCells = frameCells
	ec := EngineConfig{Node: nc, Shards: worldShards, MaxKeys: 10_000, Seed: [2]uint64{7, w.started}}
	log, join := slog.New(slog.NewTextHandler(r.log, nil)), func(*clusterConfig) {}
	if w.engine != nil {
		join = w.engine(r, &ec, log)
	}
	e, err := NewEngine(ec)
	if err != nil {
		w.t.Fatal(err)
	}
	e.SetRules(w.rules, node.MatcherOptions{})
	lis, err := w.fabric.listen(r.peerAddr())
	if err != nil {
		w.t.Fatal(err)
	}
	transport, err := w.swims.Transport(r.swimAddr())
	if err != nil {
		w.t.Fatal(err)
	}
	cc := clusterConfig{
		engine: e, log: log, lis: lis, contacts: r.contacts,
		self: gossip.Member{
			Peer: gossip.Peer{ID: e.Incarnation(), Name: r.name, Region: r.region}, Addr: r.peerAddr(), Build: "test",
		},
		wait:       gossip.DefaultReadyWithin,
		membership: swim.Config{Keys: [][]byte{swimKey}, Seeds: r.seeds, Transport: transport},
		streams:    link.Config{Dial: w.fabric.dialer(r.ip)},
	}
	join(&cc)
	if w.mend != nil {
		w.mend(r, &cc)
	}
	if r.cluster, err = startCluster(cc); err != nil {
		w.t.Fatal(err)
	}
}

var swimKey = []byte("0123456789abcdef")

// kill ends a daemon like kill -9. It does nothing if the daemon is down.
func (r *resident) kill() {
	if r.cluster != nil {
		r.close()
		r.cluster = nil
	}
}

// quit stops a daemon in order, while the others are called at an interval.
func (r *resident) quit(each time.Duration) {
	w := r.world
	w.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.retire()
		r.leave()
	}()
	w.underLoad(10*time.Second, each, r.name+" has left", func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
	for _, line := range r.lines("acknowledged the last counts") {
		w.t.Errorf("%s: %s", r.name, line)
	}
	r.cluster = nil
}

// alive returns the running residents.
func (w *world) alive() []*resident {
	return slices.DeleteFunc(slices.Clone(w.residents), func(r *resident) bool { return r.cluster == nil })
}

// in returns the residents of a region.
func (w *world) in(region string) []*resident {
	return slices.DeleteFunc(slices.Clone(w.residents), func(r *resident) bool { return r.region != region })
}

// cut partitions one daemon from another.
func (w *world) cut(a, b *resident) {
	w.fabric.cut(a.ip, b.ip)
	w.swims.Cut(a.swimAddr(), b.swimAddr())
}

// isolate partitions a region from all others.
func (w *world) isolate(region string) {
	for _, a := range w.residents {
		for _, b := range w.residents {
			if a.region == region && b.region != region {
				w.cut(a, b)
			}
		}
	}
}

// heal ends all partitions.
func (w *world) heal() {
	w.fabric.heal()
	w.swims.Heal()
}

// within waits until done returns true, and fails the test if that takes longer
// than a limit. It returns how long it took.
func (w *world) within(limit time.Duration, what string, holds func() bool) time.Duration {
	w.t.Helper()
	begin := time.Now()
	for !holds() {
		if time.Since(begin) > limit {
			w.t.Fatalf("not within %v: %s%s", limit, what, w.describe())
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(begin)
}

// describe returns the views of all daemons, for failures.
func (w *world) describe() string {
	var b strings.Builder
	for _, r := range w.alive() {
		fmt.Fprintf(&b, "\n%s: ready %v, knows", r.name, r.ready.Load())
		for _, m := range r.all() {
			fmt.Fprintf(&b, " %s", m.Name)
		}
		fmt.Fprint(&b, "; connected to")
		for _, l := range r.engine.Links(r.engine.Now()) {
			fmt.Fprintf(&b, " %s (%v, silent %v)", l.Peer.Name, l.Age, l.Silent)
		}
	}
	return b.String()
}

// whole reports whether all running daemons are ready and connected to exactly
// each other.
func (w *world) whole() bool {
	live := w.alive()
	for _, r := range live {
		if !r.ready.Load() || !connected(r, live) {
			return false
		}
	}
	return true
}

// connected reports whether a daemon is connected to exactly these ready
// daemons.
func connected(r *resident, all []*resident) bool {
	members := r.all()
	if len(members) != len(all) {
		return false
	}
	for _, m := range members {
		i := slices.IndexFunc(all, func(o *resident) bool { return o.self.ID == m.ID })
		if i < 0 || m.Name != all[i].name {
			return false
		}
	}
	links := r.engine.Links(r.engine.Now())
	if len(links) != len(all)-1 {
		return false
	}
	return !slices.ContainsFunc(links, func(l node.Link) bool { return !fresh(&l) })
}

// fresh reports whether a daemon hears a peer.
func fresh(l *node.Link) bool {
	return !l.Silent && l.Age >= 0 && l.Age <= gossip.Config{}.MaxHeartbeat(0)
}

// hits requests n hits of a user or tenant and reports whether they were
// admitted.
func (r *resident) hits(n uint64, key, who string) bool {
	r.world.t.Helper()
	c := node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(n, key, who)}}
	if err := r.engine.Check(context.Background(), &c); err != nil {
		r.world.t.Fatal(err)
	}
	return c.Decision.Allowed
}

// remaining returns the remaining hits of a user or tenant at a daemon. It
// charges nothing.
func (r *resident) remaining(key, who string) uint64 {
	r.world.t.Helper()
	c := node.Call{Domain: "edge", Peek: true, Descriptors: []rules.Descriptor{descriptor(0, key, who)}}
	if err := r.engine.Check(context.Background(), &c); err != nil {
		r.world.t.Fatal(err)
	}
	return c.Statuses[0].Remaining
}

// agree reports whether in each region a daemon, the aggregator of a key, has
// so many remaining hits, and no other daemon has less.
func (w *world) agree(key, who string, want uint64) bool {
	known := map[string]bool{}
	for _, r := range w.alive() {
		got := r.remaining(key, who)
		if got < want {
			return false
		}
		known[r.region] = known[r.region] || got == want
	}
	for _, ok := range known {
		if !ok {
			return false
		}
	}
	return true
}

// audited is the audited user.
const audited = "audited"

// load calls one ready daemon after the other with a hit of the audited user
// for a while, each at an interval.
func (w *world) load(length, each time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(length); time.Now().Before(end); {
		w.next(each)
	}
}

// underLoad calls daemons as load does until done returns true, at most for a
// limit.
func (w *world) underLoad(limit, each time.Duration, what string, holds func() bool) {
	w.t.Helper()
	w.within(limit, what, func() bool {
		w.next(each)
		return holds()
	})
}

// next calls the next daemon, counts an admitted hit, and waits for the turn of
// the one after it.
func (w *world) next(each time.Duration) {
	w.t.Helper()
	r := w.residents[w.turn%len(w.residents)]
	w.turn++
	if r.cluster != nil && r.ready.Load() && r.hits(1, "user", audited) {
		w.admitted[time.Now().Unix()/60]++
	}
	time.Sleep(each / time.Duration(len(w.residents)))
}

// audit compares the admitted hits of each minute of a range with a bound.
func (w *world) audit(what string, from, to time.Time, bound uint64) {
	w.t.Helper()
	for minute := from.Unix() / 60; minute <= to.Unix()/60; minute++ {
		n := w.admitted[minute]
		if n > bound {
			w.t.Errorf("%s: %d admitted in minute %d, bound %d, limit %d", what, n, minute, bound, w.limit)
		}
	}
}

// lines returns the lines of a log that contain all words.
func (r *resident) lines(words ...string) []string {
	var out []string
next:
	for line := range strings.Lines(r.log.String()[r.logged:]) {
		for _, word := range words {
			if !strings.Contains(line, word) {
				continue next
			}
		}
		out = append(out, line)
	}
	return out
}

// knows reports whether a daemon has another one in its list of live daemons.
func (r *resident) knows(name string) bool {
	return slices.ContainsFunc(r.all(), func(m gossip.Member) bool { return m.Name == name })
}
