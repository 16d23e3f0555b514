package control

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/georld/rld/quota/epoch"
)

// RecoverRequest is an operator's statement that the majority of the voters is
// lost for good.
type RecoverRequest struct {
	Author, Reason string
	// Behind allows a recovery although a live daemon has a later record.
	Behind bool
	// Stopped is the operator's statement that no other voter runs, also
	// of those that seem to be live.
	Stopped bool
	// Yield ends a split: the recovery of this daemon is given up. A daemon of
	// the other one begins the next recovery, which all follow.
	Yield bool
	// DryRun makes Recover check the request and change nothing.
	DryRun bool
}

// Recover begins the next recovery with the record of this daemon as its only
// voter. Entries that it lacks are dropped everywhere. It refuses where the
// majority of the voters is live, and where a daemon that can be reached has a
// later record: recover there. The recovery begins when it is stored.
func (n *Node) Recover(q RecoverRequest) error {
	if q.Yield {
		return q.yield(n)
	}
	if err := q.check(n); err != nil || q.DryRun {
		return err
	}
	from := n.record.Version
	r := n.record.at(Version{Recovery{from.Recovery.Number + 1, n.number()}, from.Index + 1}, true)
	if from.Recovery.Number > 0 {
		all := append(slices.Clone(r.Earlier), Beginning{from.Recovery, r.From})
		r.Earlier = all[max(0, len(all)-maxEarlier):]
	}
	r.From, r.First = from, r.Version.Index
	r.Voters = []Voter{{Raft: n.number(), Daemon: n.self.id(), Region: n.cfg.Region, Witness: n.cfg.Witness}}
	c := Command{
		Request: r.Version.Recovery.Random, Version: r.Version, At: n.wall, Author: cmp.Or(q.Author, "cluster recover"),
		Reason: q.Reason, Text: fmt.Sprintf("recovery %d began at version %v of %s", r.Version.Recovery.Number, r.From, n.cfg.Name),
	}
	r.remember(c)
	r.conclude(Outcome{Request: c.Request, Version: c.Version})
	r.Limits.Recovered = &RecoveredLimits{Version: r.Version}
	n.queue(stored{Base: r.Encode()})
	n.recovering = r
	n.afterStore(func() {
		n.recovering = nil
		if n.record.Version.Recovery != from.Recovery {
			return // another one was faster
		}
		n.dropTail(r, "")
		n.abstains, n.stopped = "", nil // the new voter has a new log
		n.adopt(r)
		n.events.Add(Recovered, "", c.Text)
	})
	return nil
}

// Yield is the request of an operator, at a daemon of one of two recoveries of
// one number, that the receiver begins the next one with its record.
type Yield struct {
	Author string `json:"author"`
	Reason string `json:"reason,omitempty"`
}

// split reports whether a peer has another recovery of the number here.
func split(n *Node, p *peer) bool {
	there := p.version.Recovery
	return n.record != nil && p.foreign == 0 && p.version.Index > 0 &&
		there.Number == n.record.Version.Recovery.Number && there != n.record.Version.Recovery
}

// yield asks the durable daemon of another recovery of this number that has the
// latest record. The message may be lost: then the operator repeats it.
func (q *RecoverRequest) yield(n *Node) error {
	if n.record == nil {
		return ErrNoCluster
	}
	if err := checkTexts(q.Author, q.Reason); err != nil {
		return fmt.Errorf("control: %w", err)
	}
	var best *peer
	for _, p := range n.peers {
		live := isLive(n, p)
		if live && split(n, p) && p.sender.Durable && (best == nil || p.version.Compare(best.version) > 0) {
			best = p
		}
	}
	if best == nil {
		return fmt.Errorf("control: no live daemon with a disk has another recovery of number %d: there is no split to end here",
			n.record.Version.Recovery.Number)
	}
	if !q.DryRun {
		n.send(best, Message{Yield: &Yield{Author: q.Author, Reason: q.Reason}})
	}
	return nil
}

// receiveYield begins the next recovery for a daemon of the other side of a
// split.
func receiveYield(n *Node, p *peer, y *Yield) {
	if y == nil || !split(n, p) {
		return
	}
	if err := n.Recover(RecoverRequest{Author: y.Author, Reason: y.Reason, Stopped: true}); err != nil {
		n.events.AddOnce(Rejected, p.Name, "yield", err.Error())
	}
}

// check returns why Recover refuses the request, nil if it does not.
func (q *RecoverRequest) check(n *Node) error {
	switch {
	case n.record == nil:
		return ErrNoCluster
	case n.recovering != nil:
		return errors.New("control: a recovery is being stored: wait for it")
	case n.diverged:
		return errors.New("control: the record here differs from that of the leader: recover at another daemon")
	case !n.cfg.Durable:
		return errors.New("control: a diskless daemon cannot vote: recover at a durable one")
	}
	live := n.liveVoters()
	if 2*live > n.record.Voting() && Elects(n) && !q.Stopped {
		return fmt.Errorf("control: %d of %d voters are live: a majority needs no recovery", live, n.record.Voting())
	}
	for _, p := range n.peers {
		if !q.Stopped && p.sender.Majority && isLive(n, p) && p.version.Recovery == n.record.Version.Recovery {
			return fmt.Errorf("control: %s hears a majority of the voters, and %s %d of %d: let %s reach them, by the network and the regions "+
				"in the settings of all daemons; if they are gone, wait until %s knows", p.Name, n.cfg.Name, live, n.record.Voting(), n.cfg.Name, p.Name)
		}
		if !q.Behind && p.heardAt >= 0 && !split(n, p) && p.version.Compare(n.record.Version) > 0 {
			return fmt.Errorf("control: %s has version %v, and this daemon %v: recover there", p.Name, p.version, n.record.Version)
		}
	}
	if err := checkTexts(q.Author, q.Reason); err != nil {
		return fmt.Errorf("control: %w", err)
	}
	return nil
}

// dropTail collects the commands here that the record of a recovery lacks.
func (n *Node) dropTail(r *Record, peer string) {
	if here := n.record; !r.Contains(here.Version) {
		lost := here.droppedBy(r)
		n.events.Add(TailDropped, peer, fmt.Sprintf(
			"recovery %d begins before version %v, which has %d commands more", r.Version.Recovery.Number, here.Version, len(lost)))
		n.dropped.add(lost)
		n.limits.keep(&here.Limits)
	}
}

const (
	// maxDropped bounds the dropped commands of a record, and those that a
	// daemon has to report, maxDroppedBytes their JSON form.
	maxDropped      = 100
	maxDroppedBytes = 256 << 10
	// dropsAtOnce bounds those that a daemon reports at a time, and the
	// emergency overrides that it submits.
	dropsAtOnce = 4
)

// dropped are the commands that this daemon knows to be dropped by a recovery,
// and that the record does not name yet. They survive a restart.
type dropped struct {
	node *Node
	all  []Command
}

// droppedBy returns the commands of the record that a later one lacks, and does
// not name as dropped.
func (r *Record) droppedBy(next *Record) []Command {
	var all []Command
	for _, c := range slices.Concat(r.Dropped, r.History) {
		if c.Added != nil { // unless the region ended since
			if g := r.Region(c.Added.Name); g == nil || g.Generation != c.Version {
				c.Added = nil
			}
		}
		o := next.Outcome(c.Request)
		has := next.Contains(c.Version) || o != nil && o.Version == c.Version
		if !has && !slices.ContainsFunc(next.Dropped, func(o Command) bool { return o.Request == c.Request }) {
			all = append(all, c)
		}
	}
	return all
}

// add notes dropped commands.
func (x *dropped) add(commands []Command) {
	if len(commands) > 0 {
		x.all = latest(slices.Concat(x.all, commands), maxDropped, maxDroppedBytes)
		x.store()
	}
}

// store stores the commands that are left.
func (x *dropped) store() {
	x.node.queue(stored{Dropped: &x.all})
}

// turn asks the leader to name the commands in the record.
func (x *dropped) turn() {
	n := x.node
	if n.record == nil || len(x.all) == 0 {
		return
	}
	left := slices.DeleteFunc(slices.Clone(x.all), func(c Command) bool { return n.record.Outcome(c.report()) != nil })
	if len(left) < len(x.all) {
		x.all = left
		x.store()
	}
	for i := range left[:min(len(left), dropsAtOnce)] {
		c := &left[i]
		if id := c.report(); n.requests.index(id) < 0 {
			r := Request{ID: id, Author: "recovery", Change: Change{Dropped: c}}
			if c.Added != nil {
				r.Change = Change{Region: &RegionChange{Op: AddRegion, Name: c.Added.Name, Dropped: c}}
			}
			n.requests.own = append(n.requests.own, ownRequest{Request: r, due: n.at, silent: true})
		}
	}
}

// report returns the number of the command that reports this one as dropped, at
// every daemon the same.
func (c *Command) report() Number {
	data, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("control: a command has no JSON form: %v", err)) // all its types have one
	}
	sum := sha256.Sum256(data)
	return Number(binary.BigEndian.Uint64(sum[:]) | 1)
}

// drop names a command as dropped by a recovery.
func (r *Record) drop(c *Command) error {
	if slices.ContainsFunc(r.Dropped, func(o Command) bool { return o.Request == c.Request }) {
		return fmt.Errorf("command %v is named already", c.Request)
	}
	if r.Contains(c.Version) {
		return fmt.Errorf("command %v of version %v is in the record: want one that a recovery dropped", c.Request, c.Version)
	}
	if err := checkTexts(c.Author, c.Reason, c.Text); err != nil {
		return err
	}
	r.Dropped = latest(append(slices.Clone(r.Dropped), *c), maxDropped, maxDroppedBytes)
	return nil
}

// repeated completes a change that repeats the addition of a region, at the
// leader. Daemons may have acknowledged epochs with the generation. No epoch
// without it is settled after these, unless it acknowledges that or is retired.
// So it is added again as it was. A founder that founds it now may have done so
// before, and does not use windows of that time.
func (x *Rights) repeated(c *RegionChange) (*RegionChange, error) {
	if c.Dropped.Added == nil || c.Op != AddRegion || c.Name != c.Dropped.Added.Name {
		return nil, fmt.Errorf("command %v as the addition of region %q: want the one that was dropped", c.Dropped.Request, c.Name)
	}
	next := *c.Dropped.Added
	next.Dropped, next.Epoch, next.End = c.Dropped, c.Epoch, x.endOf(x.knownIn(c.Name)...)
	return &next, nil
}

// droppedRegions returns the retirement of each generation of a region whose
// addition a recovery dropped.
func (r *Record) droppedRegions(name string, from int64) []epoch.Retirement {
	var all []epoch.Retirement
	for i := range r.Dropped {
		if c := &r.Dropped[i]; c.Added != nil && c.Added.Name == name {
			all = append(all, epoch.Retirement{ID: RegionID(name, c.Version), From: from})
		}
	}
	return all
}
