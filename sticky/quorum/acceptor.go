package quorum

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/crdt"
)

// Acceptor is a daemon's part in the sets of replicas: what it promised homes,
// and the layout it goes by. Every daemon has one; it holds marks while the
// layout names it. A home raises the marks of its own replica like those of
// others, through Receive.
//
// What Ready says is to be stored goes to the log in that order and is synced;
// then the driver calls Stored, or Failed. Messages that rest on it come with a
// later Ready. A Acceptor is not safe for concurrent use; its views are.
type Acceptor struct {
	cfg  Config
	self crdt.Incarnation
	live route.Peers // sorted, among them this daemon
	routing *route.Routing

	meta    Meta
	layout  route.Layout  // the one in force
	next    *route.Layout // the one that follows, while what it needs is copied
	records map[crdt.Key]*ledger
	order    []crdt.Key // all keys, ascending, for those who copy; see pages
	orderedAt   time.Duration

	copying *copying
	reports   map[crdt.Incarnation]report
	announced    map[crdt.Incarnation]announcement
	announceAll    bool // all are to be told anew

	at     time.Duration
	now    int64
	batch  batch // since the last store
	flight *batch
	ready  []sticky.Message // to be sent now
	failed error

	events []Event
	rejectedAt  map[uint64]time.Duration // of refusals, when told last
	stats  Stats
}

// ledger is what is held of one ledger. Its marks are never changed in place.
type ledger struct {
	ballot     sticky.Ballot
	watermarks sticky.Watermarks
	ended      int64
	dirty      bool // it is in the batch
}

// batch is what goes into one store, and the messages that wait for it.
type batch struct {
	dirty    []crdt.Key
	entries  []Entry
	messages []sticky.Message
}

// Ready is what a driver must do, in any order.
type Ready struct {
	// Store is to be appended to the log and synced. Until Stored or Failed is
	// called there is no other.
	Store []Entry
	// Messages are to be sent; their Stamp is the driver's to fill in.
	Messages []sticky.Message
	Events   []Event
	// Wake is when to call Tick and Ready again at the latest.
	Wake time.Duration
}

// NewAcceptor returns the replica that starts with what was stored. It takes the
// records of start over. The error says what is wrong with the configuration
// or with what was stored.
func NewAcceptor(cfg Config, start Start) (*Acceptor, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("sticky: %w", err)
	}
	r := &Acceptor{
		cfg: cfg, records: map[crdt.Key]*ledger{}, reports: map[crdt.Incarnation]report{},
		announced: map[crdt.Incarnation]announcement{}, rejectedAt: map[uint64]time.Duration{},
	}
	switch {
	case start.Stored != nil:
		if err := r.load(start.Stored); err != nil {
			return nil, fmt.Errorf("sticky: %w", err)
		}
	case start.First:
		r.layout, r.meta.Voting = cfg.Genesis.Clone(), true
		r.putMeta()
		r.putLayout()
	case start.Generation == 0:
		return nil, fmt.Errorf("sticky: life 0 after a loss of memory: want a number above those before")
	default:
		r.layout, r.meta.Generation = cfg.Genesis.Clone(), start.Generation
		r.meta.Generations = route.Generations(nil).With(route.NameHash(cfg.Name), start.Generation)
		r.putMeta() // first: without it the rest would pass for a first start
		r.putLayout()
		r.event(LostDisk, "", "copies what the other replicas hold before it votes")
	}
	r.rebuild()
	return r, nil
}

// load takes over what was stored.
func (r *Acceptor) load(s *Stored) error {
	if err := s.Validate(); err != nil {
		return err
	}
	r.meta, r.layout = s.Meta, s.Layout.Clone()
	if r.layout.Number == 0 {
		r.layout = r.cfg.Genesis.Clone()
	}
	if s.Next != nil {
		next := s.Next.Clone()
		r.next = &next
	}
	if g := &r.cfg.Genesis; r.layout.Number == 1 && !r.layout.Agrees(g) {
		r.event(Disagreed, "", "the first layout is stored and differs from the configured one: the stored one is in force")
	}
	for _, rec := range s.Records {
		r.records[rec.Key] = &ledger{ballot: rec.Ballot, watermarks: rec.Watermarks, ended: rec.Ended}
	}
	return nil
}

// Routing returns who is home now.
func (r *Acceptor) Routing() *route.Routing { return r.routing }

// newest returns the layout that daemons are to go by: also while the replica
// still copies for it, and cannot vote.
func (r *Acceptor) newest() *route.Layout {
	if r.next != nil {
		return r.next
	}
	return &r.layout
}

// isVoter reports whether l names this daemon a replica.
func (r *Acceptor) isVoter(l *route.Layout) bool {
	return slices.Contains(l.VotersOf(r.cfg.Region), r.cfg.Name)
}

// voting reports whether the replica votes, and else why not.
func (r *Acceptor) voting() (bool, string) {
	switch {
	case r.failed != nil:
		return false, "its log failed: " + r.failed.Error()
	case !r.isVoter(r.newest()):
		return false, "the layout does not name it"
	case r.next != nil:
		return false, "it copies from the replicas of the layout before"
	case !r.meta.Voting && len(r.layout.VotersOf(r.cfg.Region)) == 1:
		return false, "it lost its memory, and there is no other replica to copy from"
	case !r.meta.Voting:
		return false, "it lost its memory, and copies from all other replicas"
	}
	return true, ""
}

// Peers says who lives, in all regions. Who is not among them is a stranger. The
// daemon itself, self, counts as ready unless it is among them and is not.
func (r *Acceptor) Peers(at time.Duration, self crdt.Incarnation, peers []route.Peer) {
	r.at = max(r.at, at)
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
	live.Sort()
	if self == r.self && slices.Equal(live, r.live) {
		return
	}
	r.self, r.live = self, live
	for id := range r.announced {
		if r.live.Get(id).ID == 0 {
			delete(r.announced, id)
		}
	}
	for id := range r.reports {
		if r.live.Get(id).ID == 0 {
			delete(r.reports, id)
		}
	}
	r.rebuild()
}

func (r *Acceptor) rebuild() {
	r.routing = route.New(r.newest(), r.cfg.Region, r.cfg.Name, r.self, r.live)
}

// Tick lets time pass. now is the label clock in Unix milliseconds.
func (r *Acceptor) Tick(at time.Duration, now int64) {
	r.at, r.now = max(r.at, at), now
	r.prune()
	r.copy()
	if r.order != nil && r.at-r.orderedAt > orderFor {
		r.order = nil
	}
}

// Ready returns what is to be done now.
func (r *Acceptor) Ready(at time.Duration) Ready {
	r.at = max(r.at, at)
	r.copy()
	r.gossip()
	var out Ready
	if r.flight == nil {
		b := r.closeBatch()
		if len(b.entries) == 0 {
			r.ready = append(r.ready, b.messages...)
		} else {
			r.flight, out.Store = b, b.entries
		}
	}
	out.Messages, r.ready = r.ready, nil
	out.Events, r.events = r.events, nil
	out.Wake = r.wake()
	return out
}

// closeBatch closes the batch: the records that changed, as they are now, and after
// them what rests on them.
func (r *Acceptor) closeBatch() *batch {
	b := r.batch
	r.batch = batch{}
	if r.failed != nil {
		b.entries, b.dirty = nil, nil
	}
	entries := make([]Entry, 0, len(b.dirty)+len(b.entries))
	for _, key := range b.dirty {
		if l := r.records[key]; l != nil {
			l.dirty = false
			entries = append(entries, Entry{Record: &sticky.Record{Key: key, Ballot: l.ballot, Watermarks: l.watermarks, Ended: l.ended}})
		}
	}
	b.entries = append(entries, b.entries...)
	b.dirty = nil
	return &b
}

// Stored says that what Ready asked to store is on disk.
func (r *Acceptor) Stored() {
	if r.flight == nil {
		return
	}
	r.ready = append(r.ready, r.flight.messages...)
	r.flight = nil
}

// Failed says that it is not, or that nobody knows. The replica does not vote
// again before a restart, as what its log holds is not what it has in memory;
// the home that was about to rest on it asks the others.
func (r *Acceptor) Failed(err error) {
	if r.failed == nil {
		r.failed = err
		r.event(StoreFailed, "", err.Error())
	}
	r.flight, r.batch, r.copying = nil, batch{}, nil
	for _, l := range r.records {
		l.dirty = false
	}
}

// put notes that a ledger is to be stored.
func (r *Acceptor) put(key crdt.Key, l *ledger) {
	if !l.dirty {
		l.dirty = true
		r.batch.dirty = append(r.batch.dirty, key)
	}
}

// putLayout stores the layout in force.
func (r *Acceptor) putLayout() {
	l := r.layout.Clone()
	r.batch.entries = append(r.batch.entries, Entry{Layout: &l})
}

// putNext stores the layout that follows.
func (r *Acceptor) putNext() {
	l := r.next.Clone()
	r.batch.entries = append(r.batch.entries, Entry{Next: &l})
}

func (r *Acceptor) putMeta() {
	m := r.meta
	r.batch.entries = append(r.batch.entries, Entry{Meta: &m})
}

// to returns a message to a peer with room for one more item, of those that
// wait for what was received so far to be stored.
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

// wake returns when something is due next.
func (r *Acceptor) wake() time.Duration {
	at := r.at + pruneEvery
	for _, p := range r.live {
		if p.ID != r.self {
			at = min(at, r.announced[p.ID].at+announceEvery)
		}
	}
	if r.copying != nil {
		at = min(at, r.copying.wake(r.at))
	}
	return max(at, r.at+time.Millisecond)
}

// Snapshot yields entries that together say all that is stored, records by key.
// What was received since the last store is among them.
func (r *Acceptor) Snapshot(yield func(Entry)) {
	for _, key := range r.keys() {
		l := r.records[key]
		yield(Entry{Record: &sticky.Record{Key: key, Ballot: l.ballot, Watermarks: l.watermarks, Ended: l.ended}})
	}
	layout, meta := r.layout.Clone(), r.meta
	yield(Entry{Meta: &meta})
	yield(Entry{Layout: &layout})
	if r.next != nil {
		next := r.next.Clone()
		yield(Entry{Next: &next})
	}
}

// keys returns the keys of all ledgers, ascending.
func (r *Acceptor) keys() []crdt.Key {
	keys := make([]crdt.Key, 0, len(r.records))
	for k := range r.records {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

func compareKeys(a, b crdt.Key) int {
	return cmp.Or(cmp.Compare(a.Hi, b.Hi), cmp.Compare(a.Lo, b.Lo))
}
