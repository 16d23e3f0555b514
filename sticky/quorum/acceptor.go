package quorum

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/eventlog"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// Acceptor is a daemon's part in the strict voters of its region: the ballots
// it promised, the watermarks it accepted, and the layout in force. Every
// daemon has one; it votes while the active layout names the daemon. An owner
// sends Accepts to its own acceptor like to others, through Receive.
//
// The driver appends Ready.Store to the log in order, syncs it, and then calls
// Stored or Failed. Messages that depend on the store come with a later Ready.
// An Acceptor is not safe for concurrent use; its Routing is.
type Acceptor struct {
	cfg     Config
	voter   uint64 // NameHash of the name
	self    crdt.Incarnation
	live    route.Peers // sorted, among them this daemon
	routing *route.Routing

	meta      Meta
	layout    route.Layout  // the one in force
	next      *route.Layout // the one that follows, while it is copied for
	records   map[crdt.Key]*keyState
	order     []crdt.Key // all keys, ascending, for snapshot chunks
	orderedAt time.Duration

	copying *copying
	witness witness
	// active identifies the layout that is active, by the log, and unknown is
	// that of Report. stored is the state on disk.
	active, stored onDisk
	unknown        *route.Layout

	// unconfirmed is that of Confirmed.
	unconfirmed bool

	at     time.Duration
	now    int64
	clocks clocks
	// started is the time of the first Peers.
	started time.Duration
	batch   batch // since the last store
	flight  *batch
	ready   []sticky.Message // to be sent now
	failed  error

	events eventlog.Log[EventKind]
	stats  Stats
}

// keyState is the state of one key. Its watermarks are never changed in place.
type keyState struct {
	sticky.Record
	dirty bool // it is in the batch
}

// batch is the entries of one store, and the messages that wait for it.
type batch struct {
	dirty    []crdt.Key
	entries  []Entry
	messages []sticky.Message
	state    onDisk // after this store
	// snapshot is the number of entries that are in the latest Snapshot.
	snapshot int
}

// Ready is the work of a driver, in any order.
type Ready struct {
	// Store is to be appended to the log and synced. No other Store comes
	// before Stored or Failed.
	Store []Entry
	// Messages are to be sent; the driver fills in their Stamp.
	Messages []sticky.Message
	Events   []Event
	// Wake is the latest time for the next Tick and Ready.
	Wake time.Duration
}

// NewAcceptor returns an acceptor with the state on disk. It owns the records
// of start from here on. The error describes the field of the configuration or
// of the stored state that is not valid, and the valid values.
func NewAcceptor(cfg Config, start Start) (*Acceptor, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("sticky: %w", err)
	}
	r := &Acceptor{cfg: cfg, voter: route.NameHash(cfg.Name), records: map[crdt.Key]*keyState{}}
	switch {
	case start.Failed != nil && start.Stored == nil:
	case start.Stored != nil:
		if err := r.load(start.Stored); err != nil {
			return nil, fmt.Errorf("sticky: %w", err)
		}
	default:
		r.meta.Generation, r.witness.over = start.Generation, true
		r.meta.Generations = route.Generations(nil).With(route.Generation{Voter: r.voter, Generation: start.Generation})
		r.putMeta()
	}
	if start.Failed != nil {
		r.Failed(start.Failed)
	}
	r.rebuild()
	return r, nil
}

// load restores the stored state.
func (r *Acceptor) load(s *Stored) error {
	if err := s.Validate(); err != nil {
		return err
	}
	r.meta, r.layout = s.Meta, s.Layout.Clone()
	if s.Next != nil {
		r.next = new(s.Next.Clone())
	}
	for _, rec := range s.Records {
		r.records[rec.Key] = &keyState{Record: rec}
	}
	r.stored = r.onDisk()
	return nil
}

// Routing returns the owners of keys by the layout and the live peers.
func (r *Acceptor) Routing() *route.Routing { return r.routing }

// newest returns the layout that daemons use, even while the acceptor still
// copies for it and cannot vote.
func (r *Acceptor) newest() *route.Layout {
	if r.next != nil {
		return r.next
	}
	return &r.layout
}

// isVoter reports whether l names this daemon a strict voter. A diskless daemon
// is none.
func (r *Acceptor) isVoter(l *route.Layout) bool {
	return !r.cfg.Diskless && slices.Contains(l.VotersOf(r.cfg.Region), r.cfg.Name)
}

// lost reports whether the acceptor lost its disk since the newest layout was
// made.
func (r *Acceptor) lost() bool {
	return r.meta.Generation != r.newest().Generation(r.cfg.Region, r.cfg.Name)
}

// voting reports whether the acceptor votes, or the reason why not.
func (r *Acceptor) voting() (bool, string) {
	switch {
	case r.failed != nil:
		return false, "its log failed: " + r.failed.Error()
	case r.cfg.Diskless:
		return false, "it is diskless"
	case !r.isVoter(r.newest()):
		return false, "the layout does not name it"
	case r.lost() && len(r.newest().VotersOf(r.cfg.Region)) == 1:
		return false, "it lost its disk, and there is no other voter to copy from"
	case r.lost() && (r.next != nil || !r.meta.Voting):
		return false, "it lost its disk, and copies from all other voters"
	case r.next != nil:
		return false, "it copies from the voters of the layout before"
	case !r.witness.over:
		return false, "it asks the other voters whether its disk is older than it was"
	case r.active.Number != r.layout.Number || r.active.Log != r.layout.Log:
		return false, "the layout is not active yet"
	case r.unconfirmed:
		return false, "it started, and its record of the cluster is not confirmed yet"
	}
	return true, ""
}

// Confirmed sets whether the record of the cluster was confirmed since the
// daemon started, as it is without a control log. The acceptor does not vote
// before: its region may have been removed while no daemon of it ran, and then
// others own its keys.
func (r *Acceptor) Confirmed(is bool) { r.unconfirmed = !is }

// Peers sets the live daemons of all regions. Messages of others are rejected.
// The daemon itself, self, is ready unless peers lists it as not ready.
func (r *Acceptor) Peers(at time.Duration, self crdt.Incarnation, peers []route.Peer) {
	r.clock(at)
	if r.self == 0 {
		r.started = r.at
	}
	live := make(route.Peers, 0, len(peers)+1)
	me := route.Peer{ID: self, Name: r.cfg.Name, Region: r.cfg.Region, Ready: true}
	for _, p := range peers {
		switch {
		case p.ID == self:
			me.Ready = p.Ready
		case p.ID != 0:
			live = append(live, p)
		}
	}
	live = append(live, me)
	for i := range live {
		live[i].Off = slices.Contains(r.clocks.off, live[i].ID)
	}
	live.Sort()
	if self == r.self && slices.Equal(live, r.live) {
		return
	}
	r.self, r.live = self, live
	r.rebuild()
}

func (r *Acceptor) rebuild() {
	l := r.newest()
	r.routing = route.New(l, r.cfg.Region, r.cfg.Name, r.self, r.live)
	if r.active.Number != l.Number || r.active.Log != l.Log {
		r.routing = r.routing.Announced()
	}
}

// clock sets the time of the current call.
func (r *Acceptor) clock(at time.Duration) {
	r.at = max(r.at, at)
	r.events.At = r.at
}

// Tick advances time. now is the clock of windows, in Unix milliseconds.
func (r *Acceptor) Tick(at time.Duration, now int64) {
	r.clock(at)
	r.now = now
	r.prune()
	r.testify()
	r.copy()
	if r.order != nil && r.at-r.orderedAt > orderFor {
		r.order = nil
	}
}

// Ready returns the work since the last call.
func (r *Acceptor) Ready(at time.Duration) Ready {
	r.clock(at)
	r.testify()
	r.copy()
	var out Ready
	if r.flight == nil {
		b := r.closeBatch()
		if len(b.entries) == 0 {
			r.stored = b.state
			r.ready = append(r.ready, b.messages...)
		} else {
			r.flight, out.Store = b, b.entries
		}
	}
	out.Messages, r.ready = r.ready, nil
	out.Events = r.events.Take()
	out.Wake = r.wake()
	return out
}

// closeBatch returns the batch and starts another one. Records that changed
// come first, in their state now, since the other entries depend on them. The
// number of the write comes last, and goes with the votes.
func (r *Acceptor) closeBatch() *batch {
	b := r.batch
	b.state, r.batch = r.onDisk(), batch{}
	if r.failed != nil {
		b.entries, b.dirty, b.state = nil, nil, r.stored
	}
	entries := make([]Entry, 0, len(b.dirty)+len(b.entries))
	for _, key := range b.dirty {
		if l := r.records[key]; l != nil {
			l.dirty = false
			entries = append(entries, Entry{Record: new(l.Record)})
		}
	}
	if b.entries = append(entries, b.entries...); len(b.entries) > 0 {
		r.meta.Writes++
		b.entries = append(b.entries, Entry{Meta: new(r.meta)})
	}
	b.dirty = nil
	generations := r.meta.Generations
	if r.failed == nil { // else the write may not be on disk
		generations = generations.With(route.Generation{Voter: r.voter, Generation: r.meta.Generation, Writes: r.meta.Writes})
	}
	for i := range b.messages {
		for j := range b.messages[i].Accepted {
			b.messages[i].Accepted[j].Generations = generations
		}
	}
	return &b
}

// Stored reports that the entries of the last Ready.Store are on disk.
func (r *Acceptor) Stored() {
	if r.flight == nil {
		return
	}
	r.ready, r.stored = append(r.ready, r.flight.messages...), r.flight.state
	r.flight = nil
}

// Failing reports whether the log failed.
func (r *Acceptor) Failing() bool { return r.failed != nil }

// Failed reports that the entries are not on disk, or may not be. The acceptor
// does not vote again, since its log and its memory differ: the driver opens
// the log again and goes on with another one. An owner gets its majority from
// the other voters meanwhile.
func (r *Acceptor) Failed(err error) {
	if r.failed == nil {
		r.failed = err
		r.events.Add(StoreFailed, "", err.Error())
	}
	r.flight, r.batch, r.copying = nil, batch{}, nil
	for _, l := range r.records {
		l.dirty = false
	}
}

// put adds a key to the records to store.
func (r *Acceptor) put(l *keyState) {
	if !l.dirty {
		l.dirty = true
		r.batch.dirty = append(r.batch.dirty, l.Key)
	}
}

// putLayout stores the layout in force.
func (r *Acceptor) putLayout() {
	r.batch.entries = append(r.batch.entries, Entry{Layout: new(r.layout.Clone())})
}

// putMeta stores the state beside records and layouts.
func (r *Acceptor) putMeta() {
	r.batch.entries = append(r.batch.entries, Entry{Meta: new(r.meta)})
}

// to returns a message to a peer with room for one more item. It is sent once
// all that was received before it is stored.
func (r *Acceptor) to(id crdt.Incarnation) *sticky.Message {
	out := r.batch.messages
	for i := len(out) - 1; i >= 0; i-- {
		if m := &out[i]; m.To == id {
			if len(m.Accepted) < sticky.MaxItems && len(m.SnapshotRequests) < sticky.MaxItems && len(m.SnapshotChunks) < sticky.MaxSnapshotChunks {
				return m
			}
			break
		}
	}
	r.batch.messages = append(out, sticky.Message{From: r.self, To: id, Number: r.newest().Number})
	return &r.batch.messages[len(out)]
}

// wake returns when the next timer is due.
func (r *Acceptor) wake() time.Duration {
	at := r.at + pruneEvery
	if r.copying != nil {
		at = min(at, r.copying.wake(r.at))
	}
	if !r.witness.over {
		at = min(at, r.at+requestAgain)
	}
	return max(at, r.at+time.Millisecond)
}

// Snapshot yields entries that together restore the whole state, records by
// key, including changes since the last store. Rewritten must follow once the
// log holds them instead of its former entries.
func (r *Acceptor) Snapshot(yield func(Entry)) {
	r.batch.snapshot = len(r.batch.entries)
	for _, key := range r.keys() {
		yield(Entry{Record: new(r.records[key].Record)})
	}
	yield(Entry{Meta: new(r.meta)})
	if r.layout.Number > 0 {
		yield(Entry{Layout: new(r.layout.Clone())})
	}
	if r.next != nil {
		yield(Entry{Next: new(r.next.Clone())})
	}
}

// Rewritten reports that the log holds the latest Snapshot. Its layouts and its
// meta are not stored once more: after the newer ones of the snapshot they
// would restore a state that never was.
func (r *Acceptor) Rewritten() {
	b := &r.batch
	b.entries, b.snapshot = b.entries[b.snapshot:], 0
}

// keys returns all keys, ascending.
func (r *Acceptor) keys() []crdt.Key {
	return slices.SortedFunc(maps.Keys(r.records), crdt.Key.Compare)
}
