package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/georld/rld/disk/osdir"
	"github.com/georld/rld/internal/breaker"
	"github.com/georld/rld/journal"
	"github.com/georld/rld/node"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky/lease"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
)

// strictWorld is a world whose daemons serve strict keys.
type strictWorld struct {
	*world
	disks   map[string]string // folders, by daemon
	stricts map[string]*strict
	regions []string
	// voters is the number of strict voters of each region.
	voters  int
	breaker breaker.Config
	engines engineSet
	layouts layoutLog
}

// layoutLog takes the place of the control log.
type layoutLog struct {
	mu      sync.Mutex
	log     quorum.Layouts
	first   route.Layout
	reports map[[2]string]quorum.Report
	news    map[string]chan struct{} // of the acceptors, by daemon
}

// of returns the layouts.
func (x *layoutLog) of() layoutsView {
	x.mu.Lock()
	defer x.mu.Unlock()
	return layoutsView{x.log.Active, x.log.Announced, true}
}

// join makes an acceptor learn of changes, and returns the function that takes
// its reports.
func (x *layoutLog) join(region, name string, news chan struct{}) func(quorum.Report) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.news[name] = news
	return func(r quorum.Report) {
		x.change(func(report quorum.Reports) {
			x.reports[[2]string{region, name}] = r
			if x.log.Active == nil && x.known() {
				x.log.Begin(x.first, report)
			}
		})
	}
}

// known reports whether the store numbers of all first voters are.
func (x *layoutLog) known() bool {
	for _, g := range x.first.Regions {
		for _, name := range g.Replicas {
			if _, ok := x.reports[[2]string{g.Name, name}]; !ok {
				return false
			}
		}
	}
	return true
}

// change calls do on the log, and informs all acceptors of a change.
func (x *layoutLog) change(do func(quorum.Reports)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	was := x.log
	report := func(region, name string) (quorum.Report, bool) {
		r, ok := x.reports[[2]string{region, name}]
		return r, ok
	}
	do(report)
	x.log.Turn(time.Now().Add(time.Second).UnixMilli(), report)
	if x.log != was {
		for _, news := range x.news {
			notify(news)
		}
	}
}

// leave forgets a daemon that is down.
func (x *layoutLog) leave(region, name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.reports, [2]string{region, name})
	delete(x.news, name)
}

// engineSet holds the engines that run, by daemon, for callers in other
// goroutines.
type engineSet struct {
	mu sync.Mutex
	by map[string]*Engine
}

// of returns the engine of a daemon, nil while it is down.
func (x *engineSet) of(name string) *Engine {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.by[name]
}

func (x *engineSet) set(name string, e *Engine) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.by == nil {
		x.by = map[string]*Engine{}
	}
	x.by[name] = e
}

// strictRules are the limits of a strict world.
func strictRules(t *testing.T, all ...rules.Node) *rules.Set {
	t.Helper()
	set, err := rules.NewSet([]rules.DomainNode{{Name: "edge", Children: all}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// perMinute is a strict limit of n hits a minute.
func perMinute(n uint32, on rules.OnFailure) *rules.Limit {
	return &rules.Limit{
		Unit: rules.Minute, Multiplier: 1, Requests: n, Consistency: rules.Strict, Placed: rules.Owner, OnFailure: on,
	}
}

// newStrictWorld starts daemons in regions that serve strict keys under limits.
func newStrictWorld(t *testing.T, daemons int, set *rules.Set, regions ...string) *strictWorld {
	t.Helper()
	w := &strictWorld{
		world: emptyWorld(t, 1, daemons, regions...), disks: map[string]string{}, stricts: map[string]*strict{},
		regions: slices.Sorted(slices.Values(regions)), voters: min(daemons, 3),
	}
	w.rules = set
	w.engine = w.serveStrict
	w.layouts.reports, w.layouts.news = map[[2]string]quorum.Report{}, map[string]chan struct{}{}
	for _, name := range w.regions {
		region := route.Region{Name: name, Weight: 1}
		for i := range w.voters {
			region.Replicas = append(region.Replicas, fmt.Sprintf("%s-%d", name, i))
		}
		w.layouts.first.Regions = append(w.layouts.first.Regions, region)
	}
	w.layouts.first.Pins = replica.Pins(set)
	for _, r := range w.residents {
		w.disks[r.name] = t.TempDir()
	}
	w.start()
	w.within(10*time.Second, "all are ready and in contact", w.whole)
	w.within(10*time.Second, "all strict voters vote", w.voting)
	return w
}

// serveStrict makes the engine of a daemon one that serves strict keys.
func (w *strictWorld) serveStrict(r *resident, ec *EngineConfig, log *slog.Logger) func(*clusterConfig) {
	c := replica.Config{
		Region: r.region, ForwardTimeout: 50 * time.Millisecond, ForwardMargin: 100 * time.Millisecond, Breaker: w.breaker,
	}
	s := newStrict(c, newAcceptorLoop(log), log)
	ec.strict, ec.Node.Owners = s, s
	ec.Node.Strict = lease.Config{Headroom: 2, Prefetch: 16}
	return func(cc *clusterConfig) {
		w.t.Helper()
		s.acceptor.layouts, s.acceptor.report = w.layouts.of, w.layouts.join(r.region, r.name, s.acceptor.news)
		err := s.acceptor.open(quorum.Config{Region: r.region, Name: r.name}, func() replica.Storage {
			return replica.Storage{
				Folder: osdir.Dir(w.disks[r.name]), Owner: journal.Owner{Cluster: 1, Name: r.region + "/" + r.name},
				Fence: time.Now().UnixMilli(),
			}
		})
		if err != nil {
			w.t.Fatal(err)
		}
		w.stricts[r.name], cc.strict = s, s
		w.engines.set(r.name, cc.engine)
	}
}

// voting reports whether all strict voters that run vote.
func (w *strictWorld) voting() bool {
	for _, r := range w.alive() {
		if !w.status(r).Voting && w.stricts[r.name].Routing().IsVoter() {
			return false
		}
	}
	return true
}

// status describes a daemon's acceptor.
func (w *strictWorld) status(r *resident) quorum.Status {
	var s quorum.Status
	w.stricts[r.name].acceptor.do(func(x *quorum.Acceptor) { s = x.Status() })
	return s
}

// ownerOf returns the daemon that owns a user's key in the view of another one.
func (w *strictWorld) ownerOf(r *resident, key, user string) *resident {
	w.t.Helper()
	c := node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(1, key, user)}}
	var x attempt
	err := r.cluster.engine.open(&c, &x)
	if err != nil {
		w.t.Fatal(err)
	}
	h := w.stricts[r.name].Routing().Owner(x.hits[0].Key, uint64(x.hits[0].Rule.ID), x.hits[0].Limit.HomeInRegion(), 0)
	i := slices.IndexFunc(w.residents, func(o *resident) bool { return o.name == h.Name })
	if i < 0 {
		w.t.Fatalf("%s/%s is owned by %s at %s: %s", key, user, h.Name, r.name, w.describe())
	}
	return w.residents[i]
}

// check asks a daemon for a hit of each descriptor, and returns the call.
func (r *resident) check(d ...rules.Descriptor) *node.Call {
	r.world.t.Helper()
	c := &node.Call{Domain: "edge", Descriptors: d}
	if err := r.cluster.engine.Check(context.Background(), c); err != nil {
		r.world.t.Fatal(err)
	}
	return c
}

// kill ends a daemon as kill -9 would. Its disk stays.
func (w *strictWorld) kill(r *resident) {
	w.engines.set(r.name, nil)
	w.layouts.leave(r.region, r.name)
	r.kill()
	w.stricts[r.name].acceptor.close()
}

// journalOf returns the journal file of a daemon.
func (w *strictWorld) journalOf(r *resident) string {
	return filepath.Join(w.disks[r.name], replica.JournalFile)
}

// closeDisks closes all journals that are open.
func (w *strictWorld) closeDisks() {
	for _, r := range w.residents {
		w.kill(r)
	}
}
