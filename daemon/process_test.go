package daemon

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/daemon/regions"
	"github.com/georld/rld/disk"
	"github.com/georld/rld/disk/osdir"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
	"github.com/georld/rld/journal"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/replica/processtest"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/lease"
	"github.com/georld/rld/sticky/quorum"
)

var processOwner = journal.Owner{Cluster: 1, Name: "us/us-0"}

// TestProcess replays the scripts of replica/testdata/process.
func TestProcess(t *testing.T) { processtest.Run(t, playProcess) }

// playProcess calls play with the driver of the daemon.
func playProcess(t *testing.T, play func(func(*processtest.Script) processtest.Driver)) {
	folder := &faultyFolder{Folder: osdir.Dir(t.TempDir())}
	synctest.Test(t, func(t *testing.T) {
		play(func(x *processtest.Script) processtest.Driver {
			return &localProcess{script: x, folder: folder, begin: time.Now()}
		})
	})
}

// localProcess is an engine with the loops of a daemon, in a synctest bubble.
// Its frames go to a script instead of streams.
type localProcess struct {
	script *processtest.Script
	folder *faultyFolder
	begin  time.Time
	starts uint64

	cluster *cluster
	end     func()

	replaying bool          // what happened at an instant before,
	replayed  time.Duration // this one

	mu    sync.Mutex // guards the rest, which the loops use too
	shut  map[crdt.Incarnation]bool
	queue []localEvent // for the script
}

// faultyFolder is a folder on a disk whose writes may fail, and whose syncs may
// wait.
type faultyFolder struct {
	disk.Folder
	broken atomic.Bool
	held   atomic.Pointer[chan struct{}] // closed when syncs go on, nil if none waits
}

var errFaultyDisk = errors.New("input/output error")

func (f *faultyFolder) fault() error {
	if f.broken.Load() {
		return errFaultyDisk
	}
	return nil
}

// Create implements disk.Folder.
func (f *faultyFolder) Create(name string) (disk.File, error) {
	if err := f.fault(); err != nil {
		return nil, err
	}
	of, err := f.Folder.Create(name)
	return faultyFile{of, f}, err
}

type faultyFile struct {
	disk.File
	folder *faultyFolder
}

// Write implements disk.File.
func (f faultyFile) Write(b []byte) (int, error) {
	if err := f.folder.fault(); err != nil {
		return 0, err
	}
	return f.File.Write(b)
}

// Sync implements disk.File.
func (f faultyFile) Sync() error {
	if held := f.folder.held.Load(); held != nil {
		<-*held
	}
	return f.File.Sync()
}

// localEvent is something that happened in a loop.
type localEvent struct {
	at time.Duration
	do func()
}

// later has the goroutine of the script do something.
func (p *localProcess) later(do func()) { p.queue = append(p.queue, localEvent{p.clock(), do}) }

// clock is the time since the first start.
func (p *localProcess) clock() time.Duration { return time.Since(p.begin) }

// frames is a queue of frames to peers that a script reads.
func (p *localProcess) frames(to crdt.Incarnation, frame []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut[min(to, 1_004)] { // other daemons are on the machine of ap-0
		return false
	}
	p.later(func() { p.script.Sent(to, frame) })
	return true
}

func (p *localProcess) Start() {
	p.Stop()
	p.starts++
	p.mu.Lock()
	p.shut = map[crdt.Incarnation]bool{}
	p.mu.Unlock()
	log := slog.New(transitionLog{p})
	s := newStrict(replica.Config{
		Region: "us", ForwardTimeout: processtest.ForwardTimeout, ForwardMargin: processtest.ForwardMargin, Breaker: processtest.Breaker,
	}, newAcceptorLoop(log), log)
	storage := replica.Storage{Folder: p.folder, Owner: processOwner, Fence: p.Wall().UnixMilli()}
	loop := &rightsLoop{log: log, storage: storage, news: make(chan struct{}, 1)}
	record, found, err := storage.OpenRights()
	p.script.Must(errors.Join(err, found.Fault))
	loop.loop.Agent, err = agent.New(p.script.AgentConfig(), agent.Start{Record: record, Found: record == nil})
	p.script.Must(err)
	loop.loop.Agent.Confirm()
	nc := node.Default()
	nc.Region, nc.Name, nc.Owners, nc.Allotments = "us", "us-0", s, loop
	nc.Gossip.FrameCells = processtest.Cells
	nc.Strict = lease.Config{Headroom: 20}
	e, err := NewEngine(EngineConfig{
		Node: nc, Shards: processtest.Shards, MaxKeys: 100_000, Secrets: [][16]byte{processtest.Secret}, Seed: [2]uint64{7, p.starts},
		Wall: func() time.Time { return wallAt(p.clock()) }, strict: s,
	})
	p.script.Must(err)
	s.acceptor.layouts = func() layoutsView { return layoutsView{p.script.Layout(), nil, true} }
	s.acceptor.report = func(quorum.Report) {}
	p.script.Must(s.acceptor.open(quorum.Config{Region: "us", Name: "us-0"}, func() replica.Storage { return storage }))
	e.SetRules(processtest.Rules(), node.MatcherOptions{})
	loop.rules(processtest.Rules())
	p.cluster = &cluster{clusterConfig: clusterConfig{
		engine: e, agent: loop, strict: s, log: log,
		self: gossip.Member{Peer: gossip.Peer{ID: e.Incarnation(), Name: "us-0", Region: "us"}},
	}}
	p.cluster.known = regions.New(regions.Config{
		Own: "us", Settings: []string{"us", "eu", "ap"}, Record: func() []string { return nil }, Log: log,
	})
	send := p.frames
	s.send.Store(&send)
	p.turn()
	p.Peers(nil)
	p.Pass(0)
}

// turn starts the loops of the process.
func (p *localProcess) turn() {
	e, s, loop, send := p.cluster.engine, p.cluster.strict, p.cluster.agent, p.frames
	ctx, cancel := context.WithCancel(context.Background())
	r := &replicator{engine: e, send: send, happened: func(int, []gossip.Event) {}}
	var loops sync.WaitGroup
	loops.Go(func() { r.run(ctx) })
	loops.Go(func() { loop.run(ctx, e, send) })
	loops.Go(func() { s.acceptor.run(ctx, s) })
	loops.Go(func() { s.run(ctx) })
	p.end = func() {
		cancel()
		loops.Wait()
	}
}

// pausing does something while the loops do not run.
func (p *localProcess) pausing(do func()) {
	p.end()
	do()
	p.turn()
}

func (p *localProcess) Stop() {
	if p.end != nil {
		p.end()
		p.end = nil
		p.cluster.strict.acceptor.close()
	}
}

func (p *localProcess) Self() crdt.Incarnation { return p.cluster.self.ID }

func (p *localProcess) Mono() time.Duration {
	if p.replaying {
		return p.replayed
	}
	return p.clock()
}

func (p *localProcess) Wall() time.Time { return wallAt(p.Mono()) }

// wallAt returns the wall clock at an instant.
func wallAt(at time.Duration) time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(at)
}

func (p *localProcess) Pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	p.mu.Lock()
	events := p.queue
	p.queue = nil
	p.mu.Unlock()
	p.replaying = true
	for _, e := range events {
		p.replayed = e.at
		e.do()
	}
	p.replaying = false
}

func (p *localProcess) Peers(live []gossip.Peer) {
	members := []gossip.Member{p.cluster.self}
	members[0].Ready = true
	for _, l := range live {
		members = append(members, gossip.Member{Peer: l})
	}
	p.cluster.setPeers(members)
}

func (p *localProcess) Receive(from gossip.Peer, frame []byte) error {
	err := p.cluster.Frame(link.Hello{Member: gossip.Member{Peer: from}}, frame)
	if bad := (*link.ProtocolError)(nil); errors.As(err, &bad) {
		return &replica.FrameError{Reason: bad.Reason, Err: bad.Err}
	}
	return err
}

func (p *localProcess) Call(c *node.Call, noWait bool, decided func()) (leave func()) {
	e := p.cluster.engine
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		var err error
		if noWait {
			err = e.CheckAt(e.Now(), c)
		} else {
			err = e.Check(ctx, c)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if !errors.Is(err, context.Canceled) {
			p.later(func() {
				p.script.Must(err)
				decided()
			})
		}
	}()
	synctest.Wait()
	return cancel
}

func (p *localProcess) Post(m sticky.Message) { replica.Route([]sticky.Message{m}, p.cluster.strict) }

func (p *localProcess) Room(to crdt.Incarnation, yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut[to] = !yes
}

func (p *localProcess) Disk(broken bool) { p.folder.broken.Store(broken) }

func (p *localProcess) Hold(held bool) {
	if was := p.folder.held.Swap(nil); was != nil {
		close(*was)
	}
	if held {
		gate := make(chan struct{})
		p.folder.held.Store(&gate)
	}
}

func (p *localProcess) Log(change func([][]byte) [][]byte) {
	p.Stop()
	j, kept, err := journal.Open(journal.Config{Folder: p.folder, Name: replica.JournalFile, Owner: processOwner})
	p.script.Must(err)
	if all := change(kept.Records); len(all) > 0 {
		p.script.Must(j.Rewrite(slices.Values(all)))
		p.script.Must(j.Close())
		return
	}
	p.script.Must(j.Close())
	p.script.Must(p.folder.Remove(replica.JournalFile))
}

func (p *localProcess) Compact() {
	p.pausing(func() {
		a := p.cluster.strict.acceptor
		p.script.Must(a.disk.Rewrite(a))
	})
}

func (p *localProcess) Process(do func(*replica.Process)) { p.cluster.strict.With(do) }

func (p *localProcess) Acceptor(do func(*quorum.Acceptor)) { p.cluster.strict.acceptor.do(do) }

func (p *localProcess) Agent(do func(*agent.Agent)) {
	p.cluster.agent.with(func(l *replica.RightsLoop) { do(l.Agent) })
}

// transitionLog hands the lines about circuit breakers to a script.
type transitionLog struct{ process *localProcess }

// Enabled implements slog.Handler.
func (transitionLog) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler.
func (l transitionLog) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler.
func (l transitionLog) WithGroup(string) slog.Handler { return l }

// Handle implements slog.Handler.
func (l transitionLog) Handle(_ context.Context, r slog.Record) error {
	attrs := map[string]string{}
	var calls, failed uint64
	r.Attrs(func(a slog.Attr) bool {
		attrs[a.Key] = a.Value.String()
		if a.Key == "calls" {
			calls = a.Value.Uint64()
		}
		if a.Key == "failed" {
			failed = a.Value.Uint64()
		}
		return true
	})
	states := map[string]string{
		"circuit_breaker_open": "open", "circuit_breaker_half_open": "half_open", "circuit_breaker_closed": "closed",
	}
	if to := states[attrs["event"]]; to != "" {
		l.process.mu.Lock()
		defer l.process.mu.Unlock()
		l.process.later(func() { l.process.script.Transition(attrs["owner"], to, attrs["was"], calls, failed) })
	}
	return nil
}
