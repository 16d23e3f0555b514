package sim

import (
	"slices"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
)

// Auditor checks one promise of the cluster from outside, with knowledge that
// no replica has. Each hook may be nil. A hook must not change its arguments,
// nor draw on the randomness of the run: a run is the same without auditors.
type Auditor struct {
	// Found is the account so far. An auditor without a name reports none; it
	// keeps data that other auditors share.
	Found Audit
	// Called is called for each decided call, before Decided, with the number
	// of the rule set that decided it. The call is reused after that.
	Called func(d *Daemon, set int, c *node.Call)
	// Decided is called for each descriptor of each decision. The argument is
	// reused after the call.
	Decided func(*Decided)
	// Refunded is called when a daemon accepted a refund token, whose number is
	// that of a Decided, with the hits asked for and what became of them.
	Refunded func(d *Daemon, token, hits uint64, done node.Refunded)
	// Stepped is called after each input to a daemon: a message with the error
	// that Step returned, or nil for a tick or a change of members.
	Stepped func(d *Daemon, m *gossip.Message, err error)
	// Happened is called for each event of a replica.
	Happened func(d *Daemon, e gossip.Event)
	// Restarted is called when a daemon has new nodes, Down before the nodes
	// of a crashed daemon are dropped.
	Restarted, Down func(d *Daemon)
	// Left is called before Down for a process that leaves and whose counts
	// before a time are acknowledged.
	Left func(d *Daemon, since time.Duration)
	// Allotted is called for each answer of a rights agent.
	Allotted func(*Allotted)
	// Controlled is called after each step of the control log of a daemon, with
	// the work that it returned.
	Controlled func(d *Daemon, r *control.Ready)
	// Counted is called when a daemon received a message of the control log,
	// with the error of control.Node.Receive: the message counts if it is nil.
	Counted func(d *Daemon, m *control.Message, err error)
	// Sent is called for each message about strict keys before it is sent,
	// those of a daemon to itself included.
	Sent func(d *Daemon, m *sticky.Message)
	// Settled is called when the liveness phase has ended with agreement, and
	// before clients ask again.
	Settled func()
	// Ended is called once at the end of a run. settled reports whether the
	// liveness phase ended with agreement.
	Ended func(settled bool)
	// Sample is called with each new row of the series. The last Overage and
	// Bound of each rule are 0 and the hook's to set.
	Sample func(*Series)
	// Fill completes the result, before Found is read.
	Fill func(*Result)
}

// Pass counts n checks that found nothing.
func (a *Auditor) Pass(n uint64) { a.Found.Checks += n }

// Fail counts a violation found at a virtual time. Only the first is
// described.
func (a *Auditor) Fail(at time.Duration, format string, args ...any) {
	if a.Found.Violations == 0 {
		a.Found.FirstSeconds = at.Seconds()
	}
	a.Found.check(false, "at %v: "+format, append([]any{at}, args...)...)
}

// Decided is one descriptor of one decision.
type Decided struct {
	At      time.Duration // virtual
	Instant node.Instant  // as the daemon's clocks read
	// Clock is the clock that the daemon's windows are cut from, Unix ms.
	Clock   int64
	Daemon  *Daemon
	Key     crdt.Key
	Rule    *rules.Rule
	Limit   *rules.Limit
	Hits    uint64
	Peek    bool         // of the whole call: nothing was charged
	Allowed bool         // of the whole call: hits were admitted
	Status  *node.Status // of the descriptor
	Token   uint64       // number of its refund token, 0 for none
}

// Allotted is an answer of a rights agent: the rights a process starts a
// window with.
type Allotted struct {
	Daemon *Daemon
	// Holder is the holder of the rights: the Chain of a process, or a
	// generation of a region, see ByRegion.
	Holder uint64
	Rule   uint64
	Window int64 // start, Unix ms
	// Region is the region that the limit is of alone, -1 for the world.
	Region int
	// ByRegion is true for an answer about a region's whole allotment, which
	// all its daemons share.
	ByRegion bool
	// Total is the sum of all rights of the window, Amount the answer.
	Total, Amount uint64
}

// watchers are the auditors of a run, and their hooks that are called most.
type watchers struct {
	all       []*Auditor
	onCalled  []func(*Daemon, int, *node.Call)
	onDecided []func(*Decided)
	onStepped []func(*Daemon, *gossip.Message, error)
}

func watching(all []*Auditor) watchers {
	w := watchers{all: all}
	for _, a := range all {
		if a.Called != nil {
			w.onCalled = append(w.onCalled, a.Called)
		}
		if a.Decided != nil {
			w.onDecided = append(w.onDecided, a.Decided)
		}
		if a.Stepped != nil {
			w.onStepped = append(w.onStepped, a.Stepped)
		}
	}
	return w
}

// notify calls a hook of all auditors that have it.
func notify[T any](w *watchers, hook func(*Auditor) func(T), v T) {
	for _, a := range w.all {
		if f := hook(a); f != nil {
			f(v)
		}
	}
}

func (w *watchers) decided(d *Decided) {
	for _, f := range w.onDecided {
		f(d)
	}
}

func (w *watchers) restarted(d *Daemon) {
	notify(w, func(a *Auditor) func(*Daemon) { return a.Restarted }, d)
}

func (w *watchers) down(d *Daemon) { notify(w, func(a *Auditor) func(*Daemon) { return a.Down }, d) }

func (w *watchers) left(d *Daemon, since time.Duration) {
	for _, a := range w.all {
		if a.Left != nil {
			a.Left(d, since)
		}
	}
}

func (w *watchers) allotted(o *Allotted) {
	notify(w, func(a *Auditor) func(*Allotted) { return a.Allotted }, o)
}

func (w *watchers) settled() {
	for _, a := range w.all {
		if a.Settled != nil {
			a.Settled()
		}
	}
}

func (w *watchers) controlled(d *Daemon, r *control.Ready) {
	for _, a := range w.all {
		if a.Controlled != nil {
			a.Controlled(d, r)
		}
	}
}

func (w *watchers) counted(d *Daemon, m *control.Message, err error) {
	for _, a := range w.all {
		if a.Counted != nil {
			a.Counted(d, m, err)
		}
	}
}

func (w *watchers) ended(settled bool) {
	notify(w, func(a *Auditor) func(bool) { return a.Ended }, settled)
}

func (w *watchers) sample(s *Series) {
	notify(w, func(a *Auditor) func(*Series) { return a.Sample }, s)
}

func (w *watchers) stepped(d *Daemon, m *gossip.Message, err error) {
	for _, f := range w.onStepped {
		f(d, m, err)
	}
}

func (w *watchers) happened(d *Daemon, e gossip.Event) {
	for _, a := range w.all {
		if a.Happened != nil {
			a.Happened(d, e)
		}
	}
}

func (w *watchers) called(d *Daemon, set int, c *node.Call) {
	for _, f := range w.onCalled {
		f(d, set, c)
	}
}

func (w *watchers) refunded(d *Daemon, token, hits uint64, done node.Refunded) {
	for _, a := range w.all {
		if a.Refunded != nil {
			a.Refunded(d, token, hits, done)
		}
	}
}

func (w *watchers) sent(d *Daemon, m *sticky.Message) {
	for _, a := range w.all {
		if a.Sent != nil {
			a.Sent(d, m)
		}
	}
}

// report completes a result and returns the findings of the auditors.
func (w *watchers) report(r *Result) []Audit {
	notify(w, func(a *Auditor) func(*Result) { return a.Fill }, r)
	var out []Audit
	for _, a := range w.all {
		if a.Found.Name != "" {
			out = append(out, a.Found)
		}
	}
	return out
}

// fullKeys returns the keys that are full at one shard of some of the daemons.
// These refuse more cells of them until others end. When a list of refusals is
// full, too, its daemon now and then acknowledges nothing until a resync.
func fullKeys(shard int, of ...*Daemon) map[crdt.Key]bool {
	full := map[crdt.Key]bool{}
	for _, d := range of {
		for k := range node.FullKeys(d.Nodes[shard]) {
			full[k] = true
		}
	}
	return full
}

// cellHolders knows which daemons of a region must have a cell at a shard,
// since others count on that. Where one of its keys is full, a daemon receives
// resyncs of peers of which it refuses many cells, and may take them for silent
// meanwhile. It takes over their keys. The others receive from these peers, and
// so send it nothing of these keys.
type cellHolders struct {
	local []*Daemon
	shard int
	deaf  []bool // by local: it takes one of them for silent, and has a full key
}

func cellHoldersOf(w *World, local []*Daemon, shard int) cellHolders {
	h := cellHolders{local, shard, make([]bool, len(local))}
	for i, d := range local {
		if len(fullKeys(shard, d)) == 0 {
			continue
		}
		for l := range d.Nodes[shard].Links(d.Instant(w.now)) {
			h.deaf[i] = h.deaf[i] || l.Silent && slices.ContainsFunc(local, func(o *Daemon) bool { return o.incarnations[shard] == l.Peer.ID })
		}
	}
	return h
}

// keeps reports whether a daemon, by its place, must have a cell. The view of a
// deaf one does not suffice: its writer must take the daemon for one that keeps
// it, or some daemon that is not deaf if the cell has no live writer.
func (h *cellHolders) keeps(i int, c gossip.CellID) bool {
	d := h.local[i]
	if !node.Keeps(d.Nodes[h.shard], c) || !h.deaf[i] {
		return node.Keeps(d.Nodes[h.shard], c)
	}
	takes := func(o *Daemon) bool { return o == d || node.KeptBy(o.Nodes[h.shard], c, d.incarnations[h.shard]) }
	for _, o := range h.local {
		if o.incarnations[h.shard] == c.Incarnation {
			return takes(o)
		}
	}
	for j, o := range h.local {
		if !h.deaf[j] && takes(o) {
			return true
		}
	}
	return false
}
