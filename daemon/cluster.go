package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/daemon/regions"
	"github.com/georld/rld/daemon/report"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
	"github.com/georld/rld/gossip/swim"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/wire"
)

// cluster connects an engine to its peers: the membership of its region, the
// streams to all daemons of all regions, and the replicator. No decision waits
// for a peer here. It is safe for concurrent use.
type cluster struct {
	clusterConfig
	swim *swim.Swim
	host *link.Host

	mu    sync.Mutex // guards dir, open and since; ready and leaving change under it
	dir   *directory
	open  bool                           // the engine gets its peers
	since map[crdt.Incarnation]time.Time // when live daemons were first seen

	known *regions.Table
	news  chan struct{} // holds a token when dir or open changed
	peers []gossip.Peer // of the engine; belongs to settle
	alone bool          // likewise, see noteAlone

	configured []string // all regions of the settings
	ready      atomic.Bool
	leaving    atomic.Bool
	events     eventLog

	stop       context.CancelFunc
	background sync.WaitGroup
}

// clusterConfig is the configuration of a cluster.
type clusterConfig struct {
	engine *Engine
	agent  *rightsLoop // nil for a daemon without rights
	strict *strict     // likewise
	// witness reports that the daemon only votes.
	witness bool
	// control is nil only in tests of the rest.
	control  *controlLoop
	log      *slog.Logger
	self     gossip.Member
	lis      net.Listener // for streams; the cluster closes it
	contacts map[string][]string
	networks regions.Networks // where daemons of regions may be
	wait     time.Duration    // longest wait for the region at start
	// startCluster sets Self, Log, and Changed or Handler of these.
	membership swim.Config
	streams    link.Config
}

// startCluster starts to connect to peers. The daemon may decide meanwhile.
func startCluster(cc clusterConfig) (*cluster, error) {
	c := &cluster{
		clusterConfig: cc, dir: newDirectory(cc.self, cc.contacts), news: make(chan struct{}, 1),
		since: map[crdt.Incarnation]time.Time{},
	}
	c.events = eventLog{log: cc.log, name: c.name, leaving: c.leaving.Load}
	c.configured = slices.Sorted(maps.Keys(cc.contacts))
	if !slices.Contains(c.configured, c.self.Region) {
		c.configured = append(c.configured, c.self.Region)
	}
	c.meetRegions(&cc.streams)
	cc.streams.Self, cc.streams.Handler, cc.streams.Log = c.hello, c, cc.log
	if c.control != nil {
		cc.streams.Identity = func() control.Identity { return *c.control.identity.Load() }
		cc.streams.RegionOf, cc.streams.Revoked = c.control.regionOf, c.control.revoked
	}
	c.host = link.New(cc.streams)

	cc.membership.Self, cc.membership.Changed, cc.membership.Log = cc.self, c.changed, cc.log
	var err error
	if c.swim, err = swim.Start(cc.membership); err != nil {
		c.host.Close()
		return nil, fmt.Errorf("membership: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.background.Go(func() {
		if err := c.host.Serve(c.lis); err != nil {
			c.log.Error("the peer listener failed: peers cannot connect any more", "error", err)
		}
	})
	r := &replicator{engine: c.engine, send: c.host.Send, happened: c.events.add, log: c.log}
	c.background.Go(func() { r.run(ctx) })
	if c.agent != nil {
		c.background.Go(func() { c.agent.run(ctx, c.engine, c.host.Send) })
	}
	if c.strict != nil {
		send := c.host.SendNow
		nameOf := c.name
		c.strict.send.Store(&send)
		c.strict.nameOf.Store(&nameOf)
		c.background.Go(func() { c.strict.acceptor.run(ctx, c.strict) })
		c.background.Go(func() { c.strict.run(ctx) })
	}
	if c.control != nil {
		c.background.Go(func() { c.control.run(ctx, c.engine, c.host) })
	}
	c.background.Go(func() { c.begin(ctx) })
	c.background.Go(func() { c.settle(ctx) })
	c.update(func(*directory) {})
	return c, nil
}

// pollEvery is the interval of until.
const pollEvery = 20 * time.Millisecond

// forever is longer than any process runs.
const forever = 100 * 365 * 24 * time.Hour

// until polls every pollEvery until done returns true. It returns false after
// atMost, or when ctx ends.
func until(ctx context.Context, atMost time.Duration, done func() bool) bool {
	return poll(ctx, pollEvery, atMost, done)
}

// poll is until at another interval.
func poll(ctx context.Context, every, atMost time.Duration, done func() bool) bool {
	deadline := time.Now().Add(atMost)
	t := time.NewTicker(every)
	defer t.Stop()
	for !done() {
		if !time.Now().Before(deadline) {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-t.C:
		}
	}
	return true
}

// begin gives the engine its peers once they are known, and makes the daemon
// ready once the engine has synchronized with the region. Before that the
// daemon does no share of the work. Both waits are bounded, and other regions
// do not matter.
func (c *cluster) begin(ctx context.Context) {
	joined := func() bool { return c.swim.Joined() && c.nameHeldBy() == "" && c.caughtUp() }
	if !until(ctx, c.wait, joined) && ctx.Err() == nil {
		if c.nameHeldBy() != "" { // membership has logged it
			until(ctx, forever, joined)
		} else {
			c.log.Warn("no other daemon of the region answers: continuing alone until one does", "region", c.self.Region)
		}
	}
	c.update(func(*directory) { c.open = true })
	// The engine bounds this wait itself.
	if !until(ctx, forever, c.engine.Synced) || !c.serve() {
		return
	}
	c.log.Info("ready: synchronized with the daemons of the region", "region", c.self.Region, "daemons", len(c.swim.Members()))
}

// serve makes the daemon ready, unless it is leaving.
func (c *cluster) serve() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving.Load() {
		return false
	}
	c.ready.Store(true)
	c.swim.SetReady(true)
	return true
}

// caughtUp reports whether the directory has the members of the region. They
// arrive a little after they joined, and an engine without them would be ready
// at once.
func (c *cluster) caughtUp() bool {
	members := c.swim.Members()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Equal(members, c.dir.own)
}

// nameHeldBy returns the address of another live daemon with the name of this
// one, "" for none. Until that one stops, no peer knows this daemon or its
// counts.
func (c *cluster) nameHeldBy() string { return c.swim.Stats().HeldBy }

// unready returns why the daemon is not ready, nil if it is.
func (c *cluster) unready() error {
	if addr := c.nameHeldBy(); addr != "" {
		return fmt.Errorf("another daemon has the name %s too, at %s: give each daemon a name of its own", c.self.Name, addr)
	}
	if !c.ready.Load() {
		return errors.New("synchronizing with the daemons of the region")
	}
	if c.control != nil {
		return c.control.unready()
	}
	return nil
}

// hello returns the handshake of the daemon.
func (c *cluster) hello() link.Hello {
	m := c.self
	m.Ready = c.unready() == nil
	return link.Hello{Member: m, Shards: c.engine.Shards(), Rules: c.engine.Rules().Hash()}
}

// changed sets the live members of the region.
func (c *cluster) changed(own []gossip.Member) {
	c.update(func(d *directory) { d.own = own })
	c.host.SendMembers(own)
}

// update changes the directory and wakes settle.
func (c *cluster) update(change func(*directory)) {
	c.mu.Lock()
	change(c.dir)
	c.mu.Unlock()
	notify(c.news)
}

// refusedEvery is the interval at which settle looks for refused streams.
const refusedEvery = time.Second

// settle passes changes of the directory to streams and engine until ctx ends.
// It has a goroutine of its own, so that membership and streams never wait for
// it.
func (c *cluster) settle(ctx context.Context) {
	t := time.NewTicker(refusedEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.news:
		case <-t.C:
		}
		if c.leaving.Load() && c.peers != nil { // peers forget this daemon one by one
			continue
		}
		c.known.Update()
		c.mu.Lock()
		c.dir.tidy(time.Now())
		targets, members, open := c.dir.targets(), c.dir.members(), c.open
		reached := c.dir.reached(members)
		c.noteSince(members)
		c.mu.Unlock()
		c.host.Targets(targets)
		c.setControlPeers(reached, open)
		c.noteAlone()
		if open {
			c.setPeers(c.deciding(c.willing(c.dir.deciding(members))))
		}
	}
}

// setControlPeers sets the peers of the control log. It needs no engine, but a
// daemon that does not hold its name has no part in it: the two of one name
// would be one founder. Before the daemon has met its region it cannot know.
func (c *cluster) setControlPeers(members []gossip.Member, open bool) {
	if c.control == nil {
		return
	}
	if c.nameHeldBy() != "" || !open && !c.swim.Joined() {
		members = nil
	}
	c.control.peers(c.engine.Now(), c.self.ID, members)
}

// noteSince keeps when live daemons were first seen. The caller holds c.mu.
func (c *cluster) noteSince(live []gossip.Member) {
	was := c.since
	c.since = make(map[crdt.Incarnation]time.Time, len(live))
	for _, m := range live {
		if c.since[m.ID] = was[m.ID]; was[m.ID].IsZero() {
			c.since[m.ID] = time.Now().UTC()
		}
	}
}

// setPeers sets the peers of the engine and of its parts, if they changed.
func (c *cluster) setPeers(members []gossip.Member) {
	peers := make([]gossip.Peer, len(members))
	for i := range members {
		peers[i] = members[i].Peer
	}
	if slices.Equal(peers, c.peers) {
		return
	}
	c.peers = peers
	c.engine.Peers(c.engine.Now(), peers)
	if c.agent != nil {
		c.agent.peers(c.engine.Now(), c.self.ID, peers)
	}
	if c.strict != nil {
		c.strict.peers(c.engine.Now(), c.self.ID, peers)
	}
	c.engine.expedite(1<<c.engine.Shards() - 1) // all shards, since 1<<64 is 0
}

// name returns the name of an incarnation for logs.
func (c *cluster) name(id crdt.Incarnation) string {
	for _, m := range c.all() {
		if m.ID == id {
			return m.Region + "/" + m.Name
		}
	}
	return id.String()
}

// Connected is part of link.Handler.
func (c *cluster) Connected(addr string, h link.Hello) {
	c.update(func(d *directory) { d.connected(addr, h) })
}

// Disconnected is part of link.Handler.
func (c *cluster) Disconnected(addr string, _ link.Hello, _ error) {
	c.update(func(d *directory) { d.disconnected(addr) })
}

// Members is part of link.Handler.
func (c *cluster) Members(from link.Hello, members []gossip.Member) {
	c.update(func(d *directory) { d.setMembers(from, members) })
}

// decoders are those of frames, for the goroutines of all streams.
var decoders = sync.Pool{New: func() any { return new(wire.Decoder) }}

// Frame is part of link.Handler.
func (c *cluster) Frame(from link.Hello, frame []byte) error {
	decoder := decoders.Get().(*wire.Decoder)
	defer decoders.Put(decoder)
	in, err := replica.Decode(decoder, replica.Origin{
		Incarnation: from.Member.ID, Daemon: from.Daemon, Run: from.Run, To: c.self.ID,
	}, frame)
	if bad, ok := errors.AsType[*replica.FrameError](err); ok {
		return &link.ProtocolError{Reason: bad.Reason, Err: bad.Err}
	}
	if proven := from.Daemon != (control.ID{}); proven && in.Rights != nil && in.Rights.Member != from.Daemon.Member() {
		// A participant that no daemon is would be admitted to an epoch and
		// never acknowledge it.
		return &link.ProtocolError{Reason: "foreign_sender", Err: fmt.Errorf("message about rights as participant %016x: want that of its id, %016x",
			in.Rights.Member, from.Daemon.Member())}
	}
	if c.known.Listed(from.Member.Region) {
		if err = in.Deliver(c); err != nil {
			c.introduce(from, err)
		}
		return err
	}
	return c.candidateFrame(from, &in)
}

// StepCounts is part of replica.Receiver. A witness keeps no counts.
func (c *cluster) StepCounts(m *gossip.Message) error {
	if c.witness {
		return nil
	}
	return c.engine.Step(c.engine.Now(), m)
}

// StepControl is part of replica.Receiver.
func (c *cluster) StepControl(m *control.Message) error {
	if c.control == nil {
		return nil
	}
	return c.control.receive(c.engine, m)
}

// StepRights is part of replica.Receiver. A daemon without rights ignores it.
func (c *cluster) StepRights(m *agent.Message) error {
	if c.agent == nil {
		return nil
	}
	at := c.engine.Now()
	return c.agent.receive(at, c.engine.Time(at).Millis(), m)
}

// Strict is part of replica.Receiver. A daemon without rights has none.
func (c *cluster) Strict() replica.Parts {
	if c.strict == nil {
		return nil
	}
	return c.strict
}

// all returns the live daemons of all regions, by ID.
func (c *cluster) all() []gossip.Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dir.members()
}

const (
	// leaveWait bounds the announcement of a departure.
	leaveWait = 2 * time.Second
	// handOverWait bounds the wait until another daemon has the vote of one
	// that leaves. A learner votes after ten seconds.
	handOverWait = 20 * time.Second
)

// retire makes the daemon unready and announces it.
func (c *cluster) retire() {
	c.mu.Lock()
	c.ready.Store(false)
	c.leaving.Store(true)
	c.swim.SetReady(false)
	c.mu.Unlock()
	c.engine.Leave()
	if c.control != nil {
		c.control.leave()
	}
	if c.agent != nil {
		c.agent.do((*agent.Agent).Leave)
	}
	c.update(func(*directory) { c.open = true }) // so that peers get the last counts
}

// leave sends the last counts to all peers, gives up its rights, stores their
// use for the next run, and leaves the membership.
// A peer that does not acknowledge them in time, because it is partitioned or
// leaves too, does not delay it further.
func (c *cluster) leave() {
	var rights replica.Rights
	if c.agent != nil {
		rights = c.agent
	}
	d, acknowledged := c.engine.depart(rights), false
	until(context.Background(), forever, func() (over bool) {
		over, acknowledged = d.over()
		return over
	})
	if !acknowledged {
		c.log.Warn("not all peers have acknowledged the last counts: they may admit as much again",
			"waited", c.engine.Now().Mono-d.began)
	}
	if c.agent != nil {
		c.agent.leave(c.engine)
	}
	if c.control != nil && !until(context.Background(), handOverWait, func() bool { return !c.control.handsOver() }) {
		c.log.Warn("no other daemon has taken the vote of this one in the control log: the next start goes on with it",
			"waited", handOverWait)
	}
	if err := c.swim.Leave(leaveWait); err != nil {
		c.log.Info("no member acknowledged the departure: they will detect it", "error", err)
	}
	c.close()
}

// close ends everything at once.
func (c *cluster) close() {
	c.stop()
	_ = c.swim.Close() // no state is lost
	c.host.Close()
	c.lis.Close()
	c.background.Wait()
}

// clusterState is the report.Cluster of a cluster.
type clusterState struct{ c *cluster }

func (s clusterState) Members() []gossip.Member { return s.c.all() }

func (s clusterState) Since(id crdt.Incarnation) time.Time {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	return s.c.since[id]
}

func (s clusterState) Regions() []string               { return s.c.configured }
func (s clusterState) Claims() map[string]uint64       { return s.c.known.Refused() }
func (s clusterState) Ready() bool                     { return s.c.unready() == nil }
func (s clusterState) Streams() []link.Stream          { return s.c.host.Streams() }
func (s clusterState) Stats() (link.Stats, swim.Stats) { return s.c.host.Stats(), s.c.swim.Stats() }
func (s clusterState) Events() map[string]uint64       { return s.c.events.counted() }

var (
	_ report.Cluster   = clusterState{}
	_ link.Handler     = (*cluster)(nil)
	_ replica.Receiver = (*cluster)(nil)
)
