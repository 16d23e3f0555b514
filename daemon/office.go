package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/wire"
)

// rightsLoop is the daemon's part in the epochs: it keeps the state machine of
// package rights going, what it promised on disk, and answers the shards. It is
// safe for concurrent use. Shards ask it while they are locked, so it never
// waits for one, and is not held while anything is written.
type rightsLoop struct {
	log     *slog.Logger
	file    string
	cluster uint64 // fingerprint
	name    string

	lock    *os.File // held as long as the process may promise anything
	version atomic.Uint64
	news    chan struct{} // holds a token when there is something to do

	mu sync.Mutex
	o  *agent.Agent
}

// rightsFile is what a daemon promised to others, in its folder.
const rightsFile = "rights.rld"

// openAgent opens the office of a daemon, none for one that holds no agent.
func (d *daemon) openAgent() error {
	c := &d.cfg
	if c.Region == "" || c.Rights.Dir == "" {
		return nil
	}
	lock, err := lockFolder(c.Rights.Dir)
	if err != nil {
		return err
	}
	sum := d.derive("rights of a cluster")
	d.agent = &rightsLoop{
		log: d.log, file: filepath.Join(c.Rights.Dir, rightsFile), name: c.Region + "/" + c.Name,
		cluster: leading(sum[:]), news: make(chan struct{}, 1), lock: lock,
	}
	d.agent.o, err = d.newAgent()
	return err
}

// closeAgent lets other processes use the folder.
func (d *daemon) closeAgent() {
	if d.strict != nil {
		d.strict.acceptor.close()
	}
	if d.agent != nil {
		d.agent.lock.Close()
	}
}

// newAgent makes the state machine, which goes on from what is stored.
func (d *daemon) newAgent() (*agent.Agent, error) {
	c, f := &d.cfg, d.agent
	start, err := f.start(c.Rights.FirstStart, d.now().Add(2*c.Clock.MaxOffset))
	if err != nil {
		return nil, err
	}
	rc := agent.Config{
		Region: c.Region, Name: c.Name, Daemons: c.Rights.Daemons,
		DaemonHorizon: c.Rights.DaemonHorizon, Period: c.Rights.Period,
	}
	if rc.DaemonHorizon == 0 {
		rc.DaemonHorizon = -1
	}
	for _, name := range c.RegionNames() {
		r := agent.Region{Name: name}
		for _, known := range c.Regions {
			if known.Name == name {
				r.Weight, r.Added = uint64(known.Weight), known.Added
			}
		}
		rc.Regions = append(rc.Regions, r)
	}
	return agent.New(rc, start)
}

// start returns what the office goes on from.
func (f *rightsLoop) start(first bool, latest time.Time) (agent.Start, error) {
	data, err := os.ReadFile(f.file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && first:
		return agent.Start{First: true}, nil
	case errors.Is(err, fs.ErrNotExist):
		f.log.Warn("there is no file of what this daemon promised, and agent.first_start does not say that it is new: "+
			"it holds no rights until the others have let it in", "file", f.file)
		return agent.Start{Generation: uint64(latest.UnixMilli()), Fence: latest.UnixMilli()}, nil
	case err != nil:
		return agent.Start{}, fmt.Errorf("rights.dir: %w", err)
	}
	stored, err := wire.DecodeStored(data, f.cluster, f.name)
	if err != nil {
		return agent.Start{}, fmt.Errorf("%s: %w", f.file, err)
	}
	return agent.Start{Record: stored}, nil
}

// leading returns the first 8 bytes as a number.
func leading(sum []byte) uint64 {
	n := uint64(0)
	for _, b := range sum[:8] {
		n = n<<8 | uint64(b)
	}
	return n
}

func (f *rightsLoop) expedite() {
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// change changes the office, and tells the shards when an answer may have
// changed.
func (f *rightsLoop) change(by func(*agent.Agent)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	by(f.o)
	f.version.Store(f.o.Version())
}

// do is change for others than the office's own loop.
func (f *rightsLoop) do(by func(*agent.Agent)) {
	f.change(by)
	f.expedite()
}

// rightsEvery is the longest time between two turns of an office.
const rightsEvery = 100 * time.Millisecond

// run keeps the office going until ctx ends. send hands a frame to a peer's
// queue.
func (f *rightsLoop) run(ctx context.Context, e *Engine, send func(crdt.Incarnation, []byte) bool) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	counted := time.Duration(-time.Second)
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.news:
		case <-timer.C:
		}
		at := e.Now()
		if at.Mono-counted >= time.Second {
			counted = at.Mono
			f.count(e)
		}
		wake := f.turn(at, e, send)
		timer.Reset(min(rightsEvery, max(leastSleep, wake-e.Now().Mono)))
	}
}

// count tells the office how many hits rules were asked for.
func (f *rightsLoop) count(e *Engine) {
	offered := e.Offered()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range offered {
		f.o.Demand(o.Rule, o.Hits)
	}
}

// turn does what is due, and returns when the next turn is.
func (f *rightsLoop) turn(at node.Instant, e *Engine, send func(crdt.Incarnation, []byte) bool) time.Duration {
	stamp := e.Time(at)
	var ready agent.Ready
	f.change(func(o *agent.Agent) {
		o.Tick(at.Mono, stamp)
		ready = o.Ready(at.Mono)
	})
	for f.post(&ready, send); ready.Store != nil; f.post(&ready, send) {
		// Not under the lock: shards must not wait for a disk.
		err := replaceFile(f.file, wire.EncodeStored(f.cluster, f.name, ready.Store))
		f.change(func(o *agent.Agent) {
			if err != nil {
				o.Failed(err)
			} else {
				o.Stored()
			}
			ready = o.Ready(at.Mono)
		})
	}
	return ready.Wake
}

// post sends what is to be sent, and logs what happened.
func (f *rightsLoop) post(ready *agent.Ready, send func(crdt.Incarnation, []byte) bool) {
	for i := range ready.Messages {
		m := &ready.Messages[i]
		frame, err := wire.EncodeRights(nil, m)
		if err != nil {
			f.log.Error("a message about rights cannot be sent", "error", err)
			continue
		}
		send(m.To, frame)
	}
	f.tell(ready.Events)
}

// tell logs what happened.
func (f *rightsLoop) tell(events []agent.Event) {
	for _, ev := range events {
		level := slog.LevelInfo
		switch ev.Kind {
		case agent.Refused, agent.StoreFailed, agent.PinsUnfit:
			level = slog.LevelWarn
		}
		attrs := []slog.Attr{slog.String("what", ev.Text)}
		if ev.Peer != "" {
			attrs = append(attrs, slog.String("peer", ev.Peer))
		}
		f.log.LogAttrs(context.Background(), level, "rights: "+ev.Kind.String(), attrs...)
	}
}

// lockFolder makes the folder when it is not there, and keeps other processes
// out of it until the file it returns is closed: two that went on from one
// record would use every right twice. What writes that were cut short left
// behind goes.
func lockFolder(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("rights.dir: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("rights.dir: %w", err)
	}
	if err := lockFile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("rights.dir: another process uses %s: give each daemon a folder of its own: %w", dir, err), f.Close())
	}
	left, err := filepath.Glob(filepath.Join(dir, rightsFile+".*"))
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("rights.dir: %w", err), f.Close())
	}
	return f, nil
}

// replaceFile replaces a file whole: whatever ends the process, what is there
// after is the former content or the new one, and once it returns the new one.
func replaceFile(path string, data []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	parent, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(parent.Sync(), parent.Close())
}

// frame takes in a frame of a peer.
func (f *rightsLoop) frame(at node.Instant, now int64, m *agent.Message) error {
	var err error
	f.do(func(o *agent.Agent) { err = o.Receive(at.Mono, now, m) })
	return err
}

func (f *rightsLoop) peers(at node.Instant, self crdt.Incarnation, peers []gossip.Peer) {
	f.do(func(o *agent.Agent) { o.Peers(at.Mono, self, peers) })
}

// rules takes over the rules that have agent.
func (f *rightsLoop) rules(set *rules.Set) {
	var all []agent.Rule
	for _, r := range set.Rules() {
		if r.Limit == nil || !r.Limit.HasRights() {
			continue
		}
		reach := time.Duration(2*r.Limit.Window())*time.Millisecond + time.Minute
		rule := agent.Rule{
			ID: node.SharedRule(r), Lookback: reach, Window: time.Duration(r.Limit.Window()) * time.Millisecond,
		}
		for _, w := range r.Limit.Weights {
			rule.Pins = append(rule.Pins, agent.Pin{Region: w.Region, Share: uint32(w.Share)})
		}
		all = append(all, rule)
	}
	f.do(func(o *agent.Agent) { o.Rules(all) })
}

// status describes the office for people.
func (f *rightsLoop) status() agent.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.o.Status()
}

// weights returns the parts of a rule's total that the regions have.
func (f *rightsLoop) weights(rule uint64) []agent.MemberStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.o.Weights(rule)
}

// Version is part of node.Allotments.
func (f *rightsLoop) Version() uint64 { return f.version.Load() }

// Allotment is part of node.Allotments.
func (f *rightsLoop) Allotment(rule, total uint64, x, carry int64, regional bool) (uint64, epoch.Reason) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.o.Allotment(rule, total, x, carry, regional)
}

// RegionAllotment is part of node.Allotments.
func (f *rightsLoop) RegionAllotment(rule, total uint64, x, carry int64) (uint64, epoch.Reason) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.o.RegionAllotment(rule, total, x, carry)
}

// PartOf is part of node.Allotments.
func (f *rightsLoop) PartOf(peer string, rule, total uint64, x, carry int64, regional bool) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.o.PartOf(peer, rule, total, x, carry, regional)
}

// RegionPart is part of node.Allotments.
func (f *rightsLoop) RegionPart(region string, rule, total uint64, x, carry int64) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.o.RegionPart(region, rule, total, x, carry)
}

var _ node.Allotments = (*rightsLoop)(nil)
