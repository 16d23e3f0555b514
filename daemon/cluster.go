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

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
	"github.com/georld/rld/gossip/swim"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/sticky"
)

// cluster makes an engine part of a cluster: membership in its region, streams
// to the daemons of all regions, and the replicator. It receives the messages
// of peers. No peer can make a decision wait.
type cluster struct {
	engine *Engine
	agent  *rightsLoop // nil for a daemon that holds no rights
	strict *strict     // likewise
	log    *slog.Logger
	self   gossip.Member
	wait   time.Duration // longest time to wait for the others at start

	swim *swim.Swim
	host *link.Host
	lis  net.Listener

	mu   sync.Mutex // guards dir and open, and that ready and leaving change together
	dir  *directory
	open bool // the engine knows its peers

	news  chan struct{} // holds a token when dir or open changed
	peers []gossip.Peer // of the engine, as settle last set them; of settle alone

	regions []string // that are configured, the own one included
	ready   atomic.Bool
	leaving atomic.Bool
	events  eventLog
	status  *status

	stop       context.CancelFunc
	background sync.WaitGroup
}

// clusterConfig configures a cluster.
type clusterConfig struct {
	engine   *Engine
	agent    *rightsLoop // or nil
	strict   *strict     // likewise
	log      *slog.Logger
	self     gossip.Member // Addr is filled in
	lis      net.Listener  // for streams; the cluster closes it
	contacts map[string][]string
	wait     time.Duration
	swim     swim.Config // Self, Changed and Log are filled in
	link     link.Config // Self, Handler and Log are filled in
}

// startCluster begins to look for the others. The daemon may decide meanwhile.
func startCluster(cc clusterConfig) (*cluster, error) {
	c := &cluster{
		engine: cc.engine, agent: cc.agent, strict: cc.strict, log: cc.log, self: cc.self, wait: cc.wait, lis: cc.lis,
		dir: newDirectory(cc.self, cc.contacts), news: make(chan struct{}, 1),
	}
	c.events = eventLog{log: cc.log, name: c.name, leaving: c.leaving.Load}
	c.status = newStatus(c)
	c.regions = slices.Sorted(maps.Keys(cc.contacts))
	if !slices.Contains(c.regions, c.self.Region) {
		c.regions = append(c.regions, c.self.Region)
	}
	cc.link.Self, cc.link.Handler, cc.link.Log = c.hello, c, cc.log
	c.host = link.New(cc.link)

	cc.swim.Self, cc.swim.Changed, cc.swim.Log = cc.self, c.changed, cc.log
	var err error
	if c.swim, err = swim.Start(cc.swim); err != nil {
		c.host.Close()
		return nil, fmt.Errorf("membership: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.background.Go(func() {
		if err := c.host.Serve(c.lis); err != nil {
			c.log.Error("peers cannot reach this daemon any more", "error", err)
		}
	})
	r := &replicator{engine: c.engine, send: c.host.Send, happened: c.events.take}
	c.background.Go(func() { r.run(ctx) })
	if c.agent != nil {
		c.background.Go(func() { c.agent.run(ctx, c.engine, c.host.Send) })
	}
	if c.strict != nil {
		send := c.host.SendNow
		c.strict.send.Store(&send)
		c.background.Go(func() { c.strict.acceptor.run(ctx, c.strict) })
		c.background.Go(func() { c.strict.run(ctx) })
	}
	c.background.Go(func() { c.begin(ctx) })
	c.background.Go(func() { c.settle(ctx) })
	c.background.Go(func() { c.status.watch(ctx.Done()) })
	c.update(func(*directory) {})
	return c, nil
}

// lookEvery is the time between two looks at whether something came about.
const lookEvery = 20 * time.Millisecond

// forever is longer than any process lives.
const forever = 100 * 365 * 24 * time.Hour

// until waits until done holds, for at most a time. It returns false when that
// has passed or ctx ended.
func until(ctx context.Context, atMost time.Duration, done func() bool) bool {
	deadline := time.Now().Add(atMost)
	t := time.NewTicker(lookEvery)
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

// begin passes the peers to the engine once they are known. It makes the daemon
// ready when the engine has the counts of all daemons of the region. Before
// that the daemon has no share of the work. Both waits are bounded, and neither
// is for another region.
func (c *cluster) begin(ctx context.Context) {
	joined := func() bool { return c.swim.Joined() && c.nameHeldBy() == "" && c.abreast() }
	if !until(ctx, c.wait, joined) && ctx.Err() == nil {
		if c.nameHeldBy() != "" { // which is logged already
			until(ctx, forever, joined)
		} else {
			c.log.Warn("no other daemon of the region answers: going on alone until one does", "region", c.self.Region)
		}
	}
	c.update(func(*directory) { c.open = true })
	// The engine has a bound of its own for this wait.
	if !until(ctx, forever, c.engine.Synced) || !c.serve() {
		return
	}
	c.log.Info("ready: heard the daemons of the region", "region", c.self.Region, "daemons", len(c.swim.Members()))
}

// serve makes the daemon take its share, unless it is leaving.
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

// abreast reports whether the directory has the members of the region that
// membership knows. It gets them a little later. An engine that got its peers
// before would consider itself alone, and be ready at once.
func (c *cluster) abreast() bool {
	members := c.swim.Members()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Equal(members, c.dir.own)
}

// nameHeldBy returns the address of another live daemon with the name of this
// one, "" for none. Until that daemon is gone, no peer knows this one or the
// hits that it admits.
func (c *cluster) nameHeldBy() string { return c.swim.Stats().HeldBy }

// unready returns why the daemon takes no share, nil when it does.
func (c *cluster) unready() error {
	if addr := c.nameHeldBy(); addr != "" {
		return fmt.Errorf("another daemon is called %s too, at %s: give each a name of its own", c.self.Name, addr)
	}
	if !c.ready.Load() {
		return errors.New("waiting to hear the daemons of the region")
	}
	return nil
}

// hello returns how the daemon introduces itself to a peer.
func (c *cluster) hello() link.Hello {
	m := c.self
	m.Ready = c.unready() == nil
	return link.Hello{Member: m, Shards: c.engine.Shards(), Rules: c.engine.Rules().Hash()}
}

// changed takes over the live members of the region.
func (c *cluster) changed(own []gossip.Member) {
	c.update(func(d *directory) { d.own = own })
	c.host.SendMembers(own)
}

// update changes the directory.
func (c *cluster) update(change func(*directory)) {
	c.mu.Lock()
	change(c.dir)
	c.mu.Unlock()
	notify(c.news)
}

// refusedEvery is the time between two checks of which peers refuse a stream.
const refusedEvery = time.Second

// settle passes changes of the directory to streams and engine until ctx ends.
// It has a goroutine of its own, so membership and streams can report changes
// without waiting.
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
		if c.leaving.Load() && c.peers != nil { // the others forget this daemon one by one
			continue
		}
		c.mu.Lock()
		targets, members, open := c.dir.targets(), c.dir.members(), c.open
		c.mu.Unlock()
		c.host.Targets(targets)
		c.status.see(members)
		if open {
			c.tell(c.willing(members))
		}
	}
}

// willing drops the members that no stream can connect to because one of the
// two daemons refuses the other. No counts reach them, so they get no share of
// the work. The log and the metrics name them.
func (c *cluster) willing(members []gossip.Member) []gossip.Member {
	refused := map[string]bool{}
	for _, s := range c.host.Streams() {
		var no *link.Refused
		if !s.Incoming && s.State != link.StateUp && errors.As(s.Err, &no) {
			refused[s.Addr] = true
		}
	}
	return slices.DeleteFunc(members, func(m gossip.Member) bool { return refused[m.Addr] && m.ID != c.self.ID })
}

// tell sets the peers of the engine if they changed.
func (c *cluster) tell(members []gossip.Member) {
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
	c.engine.expedite(1<<c.engine.Shards() - 1) // 1<<64 is 0, and less 1 all of them
}

// name returns how logs call an incarnation.
func (c *cluster) name(id crdt.Incarnation) string {
	for _, m := range c.all() {
		if m.ID == id {
			return m.Region + "/" + m.Name
		}
	}
	return id.String()
}

// Connected adds the daemon that answers at an address. See link.Handler.
func (c *cluster) Connected(addr string, h link.Hello) {
	c.update(func(d *directory) { d.meet(addr, h) })
}

// Disconnected removes the daemon at an address. See link.Handler.
func (c *cluster) Disconnected(addr string, _ link.Hello, _ error) {
	c.update(func(d *directory) { d.lose(addr) })
}

// Members sets the members of another daemon's region. See link.Handler.
func (c *cluster) Members(from link.Hello, members []gossip.Member) {
	c.update(func(d *directory) { d.hear(from, members) })
}

// Frame handles a frame of a peer. See link.Handler.
func (c *cluster) Frame(from link.Hello, frame []byte) error {
	in, err := replica.Decode(from.Member.ID, frame)
	if bad := (*replica.FrameError)(nil); errors.As(err, &bad) {
		return &link.ProtocolError{Reason: bad.Reason, Err: bad.Err}
	}
	if err = in.Deliver(c); err != nil {
		c.introduce(from, err)
	}
	return err
}

// StepCounts is part of replica.Receiver.
func (c *cluster) StepCounts(m *gossip.Message) error { return c.engine.Step(c.engine.Now(), m) }

// StepRights is part of replica.Receiver. A daemon without rights ignores it.
func (c *cluster) StepRights(m *agent.Message) error {
	if c.agent == nil {
		return nil
	}
	at := c.engine.Now()
	return c.agent.receive(at, c.engine.Time(at).Millis(), m)
}

// StepStrict is part of replica.Receiver. A daemon without rights ignores it.
func (c *cluster) StepStrict(m *sticky.Message) error {
	if c.strict == nil {
		return nil
	}
	return c.strict.receive(m)
}

// introduce adds the sender of a rejected frame to the directory if it is an
// unknown daemon of another region. So regions connect when only one of them
// has the address of the other.
func (c *cluster) introduce(from link.Hello, err error) {
	var unknown *gossip.UnknownSenderError
	if !errors.As(err, &unknown) || from.Member.Region == c.self.Region {
		return
	}
	c.mu.Lock()
	news := c.dir.introduce(from.Member)
	c.mu.Unlock()
	if news {
		c.update(func(*directory) {})
	}
}

// all returns the live daemons of all regions, by ID.
func (c *cluster) all() []gossip.Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dir.members()
}

// leaveWait bounds each step of a departure: until the peers know of it, and
// until they have the last counts.
const leaveWait = 2 * time.Second

// retire announces that the daemon has no share of the work any more.
func (c *cluster) retire() {
	c.mu.Lock()
	c.ready.Store(false)
	c.leaving.Store(true)
	c.swim.SetReady(false)
	c.mu.Unlock()
	c.engine.Leave()
	c.update(func(*directory) { c.open = true }) // without peers it could send its counts to none
}

// leave sends the last counts to the own region and to the others, and ends. A
// peer that does not acknowledge them in time, because it is partitioned or
// leaves too, does not keep them.
func (c *cluster) leave() {
	all := c.engine.heads(c.engine.Now())
	flushed := func() bool { return c.engine.flushed(c.engine.Now(), all) }
	if !until(context.Background(), leaveWait, flushed) {
		c.log.Warn("not all peers have acknowledged the last counts: they may admit as much again", "waited", leaveWait)
	}
	if err := c.swim.Leave(leaveWait); err != nil {
		c.log.Info("nobody took note of the departure: the others will find out", "error", err)
	}
	c.close()
}

// close ends everything at once.
func (c *cluster) close() {
	c.stop()
	_ = c.swim.Close() // it has nothing to lose
	c.host.Close()
	c.lis.Close()
	c.background.Wait()
}

var (
	_ link.Handler     = (*cluster)(nil)
	_ replica.Receiver = (*cluster)(nil)
)
