package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/disk/osdir"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/replica"
)

// participant is the id of a daemon, and a generation of its region: what an
// agent and its file are of. The zero value is none.
type participant struct {
	self       control.ID
	generation control.Version
}

// rightsView is what the control log has that a rights agent needs.
type rightsView struct {
	open    bool            // the log, else nothing is known
	record  *control.Record // nil before the cluster began
	self    control.ID
	holds   control.Holding // as stated on disk
	current bool            // the record is confirmed since the start
}

// rights returns the state of the log that a rights agent needs.
func (c *controlLoop) rights() (v rightsView) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.node != nil {
		v = rightsView{true, c.node.Record(), c.node.ID(), control.RightsOf(c.node).Holds(), !c.node.Starting()}
	}
	return v
}

// followEvery is the time between two looks at the record.
const followEvery = 200 * time.Millisecond

// follow makes the agent that the record wants, and gives it what is new. It
// returns when to look again.
func (f *rightsLoop) follow(at node.Instant) time.Duration {
	if f.control == nil {
		return at.Mono + time.Hour
	}
	v := f.control.rights()
	again := at.Mono + followEvery
	var g *control.Region
	if v.record != nil {
		g = v.record.Region(f.config.Region)
	}
	switch {
	case !v.open:
		f.end(epoch.ReasonWaiting, "") // report has why it is not open
	case v.record == nil:
		f.end(epoch.ReasonNoCluster, "") // control says that it waits for the cluster
	case g == nil:
		f.end(epoch.ReasonNoCluster, "the cluster has no region "+f.config.Region+": rld region add adds it")
	case len(g.Founders) == 0:
		f.end(epoch.ReasonNoCluster, "no daemon with a disk was there when region "+f.config.Region+
			" began: start one with state.dir, then remove the region and add it again (rld region)")
	case f.of != participant{v.self, g.Generation}:
		if at.Mono < f.retry {
			return again
		}
		f.end(epoch.ReasonWaiting, "")
		f.begin(at, &v, g)
	}
	f.settle(&v)
	return again
}

// end drops the agent: its id or its region ended.
func (f *rightsLoop) end(why epoch.Reason, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.loop.Agent != nil {
		f.log.Warn("this daemon gives up its rights: its id, or the generation of its region, has ended", "event", "rights")
	}
	if text != "" && text != f.waits {
		f.log.Warn("this daemon holds no rights: "+text, "event", "rights")
	}
	if f.loop.Agent != nil || f.why != why {
		f.version.Add(1)
	}
	f.loop.Agent, f.why, f.waits = nil, why, text
	f.of, f.followed, f.confirmed, f.stored, f.proposal = participant{}, control.Version{}, false, false, 0
}

// begin makes the agent of this daemon in a generation of its region. A file of
// another participant, and a damaged one, is moved aside. A daemon that held
// rights, and whose file is missing then, gets a new id: rights that it had
// used would be used again, and a former file is as bad as none. A diskless
// daemon has no file: it joins its region under the id of its process.
func (f *rightsLoop) begin(at node.Instant, v *rightsView, g *control.Region) {
	if f.lock == nil && !f.storage.Diskless {
		if err := f.lockLate(); err != nil {
			f.failed(at, err)
			return
		}
	}
	c := f.config
	c.Self, c.Generation, c.Cluster = v.self.Member(), g.ID(), uint64(v.record.Cluster.ID)
	c.Horizon, c.From = g.Horizon, g.From
	for _, id := range g.Founders {
		c.Founders = append(c.Founders, id.Member())
	}
	for _, r := range v.record.Genesis {
		id := control.RegionID(r.Name, v.record.FirstGeneration())
		c.Genesis = append(c.Genesis, agent.Region{Name: r.Name, ID: id, Weight: uint64(r.Weight)})
	}
	record, found, err := f.storage.OpenRights()
	if err == nil {
		err = found.Fault
	}
	if err != nil {
		f.failed(at, err)
		return
	}
	start, why := agent.Start{Record: record}, ""
	switch {
	case found.Damage != nil:
		why = found.Damage.Error()
	case record != nil && (record.Local.Owner != c.Self || record.Region.Owner != c.Generation):
		why = "it is of a former id of this daemon, or of a former generation of its region"
	case record != nil && v.holds.Generation == g.Generation && record.Number < v.holds.Number:
		why = fmt.Sprintf("it is a former record, %d of %d", record.Number, v.holds.Number)
	}
	if why != "" {
		if err := f.moveAside(why); err != nil {
			f.failed(at, err)
			return
		}
		start.Record = nil
	}
	if start.Record == nil {
		if v.holds.Generation == g.Generation {
			why = cmp.Or(why, cmp.Or(found.File, "that of a diskless daemon")+" is missing")
			f.control.Do(func(n *control.Node) { control.RightsOf(n).Renew("its record of rights is lost: " + why) })
			return
		}
		start.Found = slices.Contains(g.Founders, v.self)
	}
	start.Accounts = f.resumes(start.Record)
	a, err := agent.New(c, start)
	if err != nil {
		f.failed(at, err)
		return
	}
	how := "joins its region: the other daemons admit it"
	switch {
	case start.Record != nil:
		how = "goes on with its record of rights"
	case start.Found:
		how = "founds the rights of its region"
	}
	f.log.Info("this daemon "+how, "event", "rights", "region", f.config.Region, "generation", g.Generation.String())
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fault != "" {
		f.log.Info("the record of rights is read", "event", "rights_reopened")
	}
	f.of, f.retry, f.fault, f.loop = participant{v.self, g.Generation}, 0, "", replica.RightsLoop{Agent: a}
	f.version.Add(1)
	if f.set != nil {
		a.Rules(replica.RightsRules(f.set))
	}
	if f.self != 0 {
		a.Peers(at.Mono, f.self, f.live)
	}
}

// lockLate locks the folder after the start, and removes the accounts of the
// former run: the nodes have admitted hits without them.
func (f *rightsLoop) lockLate() error {
	if err := f.lockFolder(); err != nil {
		return err
	}
	left, err := f.storage.TakeAccounts()
	if left != nil || err != nil {
		f.log.Warn("the accounts of the former run are not used, since the folder could not be locked at the start: "+
			"this daemon holds no rights in its windows", "event", "accounts", "error", err)
	}
	return nil
}

// failed notes that the file cannot be used now.
func (f *rightsLoop) failed(at node.Instant, err error) {
	f.retry = at.Mono + replica.RetryAfter
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fault == "" {
		f.log.Error("the record of rights cannot be used: this daemon holds no rights, and tries again every "+
			replica.RetryAfter.String()+"; repair the disk", "event", "rights_failed", "error", err)
	}
	f.fault = err.Error()
}

// moveAside moves the file to state.former.
func (f *rightsLoop) moveAside(why string) error {
	file := f.storage.Folder.Path(replica.RightsFile)
	into, err := osdir.Dir(filepath.Dir(file)).MoveAside(replica.RightsFile)
	if into != "" {
		f.log.Warn("the record of rights is moved aside: "+why, "event", "rights", "kept", into)
	}
	return err
}

// settle gives the agent what is new in the record, and the log what is
// settled.
func (f *rightsLoop) settle(v *rightsView) {
	if f.of == (participant{}) || v.record == nil {
		f.control.Do(func(n *control.Node) { n.Limits().Holders(nil) })
		return
	}
	if f.followed != v.record.Version {
		f.followed = v.record.Version
		regions := make([]agent.Region, len(v.record.Regions))
		for i := range v.record.Regions {
			g := &v.record.Regions[i]
			regions[i] = agent.Region{Name: g.Name, ID: g.ID()}
		}
		dead := make([]epoch.Retirement, len(v.record.Dead))
		for i, d := range v.record.Dead {
			dead[i] = epoch.Retirement{ID: d.ID.Member(), From: d.From}
		}
		f.with(func(l *replica.RightsLoop) {
			l.Agent.Dead(dead)
			l.Agent.Regions(regions, v.record.Epochs)
		})
	}
	if v.current && !f.confirmed {
		f.confirmed = true
		if f.resume != nil {
			f.resume()
			f.resume = nil
		}
		f.with(func(l *replica.RightsLoop) { l.Agent.Confirm() })
	}
	f.resolve(v.record)
	id, holders := read(f, (*agent.Agent).Settled), read(f, agent.Holders)
	f.control.mu.Lock()
	defer f.control.mu.Unlock()
	if f.control.node != nil {
		control.RightsOf(f.control.node).Settled(id)
		f.control.node.Limits().Holders(holders)
	}
}

// holds states that this daemon has the record of rights that it stored, and
// reports whether that is on disk. Before that a file of rights may be there,
// but the record is not in force: a founder whose file is lost afterwards must
// not found again, and a former file must not be used.
func (f *rightsLoop) holds() bool {
	if f.control == nil {
		return true
	}
	is := false
	f.control.Do(func(n *control.Node) {
		if !f.confirmed && control.RightsOf(n).Holds().Generation != f.of.generation {
			return // it holds nothing before its record is confirmed
		}
		is = n.ID() == f.of.self && control.RightsOf(n).Hold(control.Holding{Generation: f.of.generation, Number: f.number})
	})
	return is
}

// propose hands an epoch to the control log.
func (f *rightsLoop) propose(e *epoch.Epoch) {
	if f.control == nil { // in tests: all agents learn it from each other
		f.do(func(a *agent.Agent) {
			a.Regions(slices.Clone(f.config.Genesis), []epoch.Epoch{*e})
		})
		return
	}
	err := errors.New("the control log is not open")
	f.control.Do(func(n *control.Node) {
		if f.proposal != 0 {
			n.Forget(f.proposal)
		}
		f.proposal, err = n.Submit(control.Request{Author: control.Rebalancer, Change: control.Change{Epoch: e}})
	})
	if err != nil {
		f.done(err)
	}
}

// resolve looks for the outcome of a proposal.
func (f *rightsLoop) resolve(r *control.Record) {
	if f.proposal == 0 {
		return
	}
	o := r.Outcome(f.proposal)
	switch {
	case o == nil:
	case o.Refused != "":
		f.done(errors.New(o.Refused))
	default:
		f.done(nil)
	}
}

func (f *rightsLoop) done(err error) {
	f.proposal = 0
	f.with(func(l *replica.RightsLoop) { l.Agent.ProposalDone(err) })
}

// logRights is the level of an event of the agent.
func logRights(k agent.EventKind) slog.Level {
	switch k {
	case agent.Refused, agent.StoreFailed, agent.PinsUnfit:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}
