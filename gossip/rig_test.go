package gossip

import (
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/internal/rendezvous"
)

// epoch is the start of the tests' window clock: a whole day.
const epoch = int64(1_767_225_600_000)

// A window of a minute, and one of an hour, which is part of digests.
var (
	minute = CellMeta{Rule: 1, WindowLength: 60_000, Carry: 1} // sums are never withheld
	hour   = CellMeta{Rule: 2, WindowLength: 3_600_000, Carry: 1}
)

// ample is a distance to a limit at which nothing is urgent.
const ample = uint64(1) << 40

// roomy is a key that has no hits.
var roomy = Room{Left: ample, Limit: ample}

// testKey returns the i-th key; keys differ in all of their bits.
func testKey(i int) crdt.Key {
	return crdt.Key(rendezvous.Mix(uint64(2*i+1)) ^ rendezvous.Mix(rendezvous.Mix(uint64(2*i+2))))
}

// rig holds engines and the messages under way. Time passes and messages move
// only as the test requests.
type rig struct {
	cfg     Config
	now     time.Duration // since the start
	members []*member     // also those that are down
	flight  []Message
	room    Room   // of all keys, for received changes
	limit   uint64 // if set, the room is what is left of it
	born    crdt.Incarnation

	// lost selects the messages that run loses.
	lost func(from, to *member) bool
	// sending and taking are the differences of a broken variant: they change a
	// message before it is sent, and before it is received.
	sending, taking func(m *member, msg *Message)
}

// member is a daemon of one shard.
type member struct {
	*Engine
	name, region string
	skew         int64         // the milliseconds by which its window clock is ahead
	ahead        time.Duration // by how much its monotonic clock is
	down         bool
	seen         []Event
}

// newRig starts a daemon for each region named, a1, a2, b1 and so on, and sets
// all as peers of all.
func newRig(cfg Config, regions ...string) *rig {
	r := &rig{cfg: cfg, now: time.Second, room: roomy}
	for _, region := range regions {
		r.join(region)
	}
	r.meet()
	return r
}

// join adds a daemon that is no peer yet.
func (r *rig) join(region string) *member {
	n := 1
	for _, m := range r.members {
		if m.region == region {
			n++
		}
	}
	m := &member{name: fmt.Sprint(region, n), region: region}
	r.members = append(r.members, m)
	r.born++
	r.start(m, r.born)
	return m
}

// start gives a daemon a new engine with an incarnation.
func (r *rig) start(m *member, incarnation crdt.Incarnation) {
	m.ahead = time.Duration(rendezvous.Mix(uint64(incarnation))%1_000) * time.Minute
	m.Engine, m.down = New(r.cfg, Peer{ID: incarnation, Name: m.name, Region: m.region}, 0, 1), false
}

// restart starts a daemon again with a new incarnation.
func (r *rig) restart(m *member) {
	r.born++
	r.start(m, r.born)
	r.meet()
}

// crash stops a daemon, and updates the peers of the others.
func (r *rig) crash(m *member) {
	m.down = true
	r.meet()
}

// meet sets the running daemons as peers of all.
func (r *rig) meet() {
	peers := r.peers()
	for m := range r.up {
		m.Peers(r.mono(m), peers)
	}
}

// peers returns the running daemons.
func (r *rig) peers() (peers []Peer) {
	for m := range r.up {
		peers = append(peers, m.self)
	}
	return peers
}

func (r *rig) up(yield func(*member) bool) {
	for _, m := range r.members {
		if !m.down && !yield(m) {
			return
		}
	}
}

// of returns the daemon of a name.
func (r *rig) of(name string) *member {
	return r.members[slices.IndexFunc(r.members, func(m *member) bool { return m.name == name })]
}

// holder returns the running daemon of an incarnation, nil for none.
func (r *rig) holder(incarnation crdt.Incarnation) *member {
	for m := range r.up {
		if m.self.ID == incarnation {
			return m
		}
	}
	return nil
}

// mono is a daemon's monotonic clock.
func (r *rig) mono(m *member) time.Duration { return r.now + m.ahead }

// link is a daemon's connection to its first peer.
func (r *rig) link(m *member) Link { return slices.Collect(m.Links(r.mono(m)))[0] }

// wall returns a daemon's window clock.
func (r *rig) wall(m *member) int64 { return epoch + r.now.Milliseconds() + m.skew }

// add counts n hits of a key's minute at a daemon.
func (r *rig) add(name string, k, n int) bool {
	return r.of(name).Add(r.mono(r.of(name)), testKey(k), epoch, minute, uint64(n), roomy)
}

// addNear is add for a key near its limit: the successor receives the hits,
// too.
func (r *rig) addNear(name string, k, n int) {
	m := r.of(name)
	m.Add(r.mono(m), testKey(k), epoch, minute, uint64(n), Room{Left: ample / 2, Limit: ample})
}

// roomAfter returns the room of a key with r.limit of which n hits are used.
func (r *rig) roomAfter(n uint64) Room { return Room{Left: r.limit - min(n, r.limit), Limit: r.limit} }

// call counts a hit of a key's minute at a daemon, if it fits r.limit by what
// that knows and expects. It reports whether it did.
func (r *rig) call(name string, k int) bool {
	m := r.of(name)
	n, left := Expected(m.Engine, 0, r.mono(m), time.Hour, testKey(k), epoch, epoch, r.limit, minute.WindowLength)
	used := m.Total(testKey(k), epoch)
	if used+n+left+1 > r.limit {
		return false
	}
	return m.Add(r.mono(m), testKey(k), epoch, CellMeta{Rule: 1, WindowLength: minute.WindowLength}, 1, r.roomAfter(used+1))
}

// total returns a daemon's count of a key's minute.
func (r *rig) total(name string, k int) uint64 { return r.of(name).Total(testKey(k), epoch) }

// tick runs a daemon's timers, and puts its messages under way.
func (r *rig) tick(m *member) {
	m.Tick(r.mono(m), r.wall(m))
	r.speak(m)
}

func (r *rig) speak(m *member) {
	if m.Due() <= r.mono(m) {
		for _, msg := range m.Messages(r.mono(m), hlc.New(r.wall(m), 0), 7) {
			if r.sending != nil {
				r.sending(m, &msg)
			}
			msg.Cells = slices.Clone(msg.Cells)
			r.flight = append(r.flight, msg)
		}
	}
	m.seen = append(m.seen, m.Events()...)
}

// deliver hands the i-th message on its way to its receiver.
func (r *rig) deliver(i int) error {
	msg := r.flight[i]
	r.flight = slices.Delete(r.flight, i, i+1)
	return r.hand(msg)
}

func (r *rig) hand(msg Message) error {
	to := r.holder(msg.To)
	if to == nil {
		return nil
	}
	if r.taking != nil {
		r.taking(to, &msg)
	}
	changes, err := to.Receive(r.mono(to), r.wall(to), 250, 7, &msg)
	for i := range changes {
		room := r.room
		if r.limit > 0 {
			room = r.roomAfter(to.TotalAfter(&changes[i]))
		}
		to.Forward(&changes[i], room)
	}
	r.speak(to)
	return err
}

// step is how finely run cuts time, and how long a message is on its way.
const step = 5 * time.Millisecond

// run lets time pass on a network that delivers in order, except for lost
// messages.
func (r *rig) run(d time.Duration) {
	for end := r.now + d; r.now < end; {
		r.now += step
		arrived := r.flight
		r.flight = nil
		for _, msg := range arrived {
			from, to := r.holder(msg.From), r.holder(msg.To)
			if from == nil || to == nil || r.lost != nil && r.lost(from, to) {
				continue
			}
			_ = r.hand(msg) // a refusal of unknown senders is part of the schedule
		}
		for m := range r.up {
			r.tick(m)
		}
	}
}

// count returns how many events of a kind a daemon has seen.
func (m *member) count(kind EventKind) int {
	m.seen = append(m.seen, m.Events()...)
	n := 0
	for _, e := range m.seen {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// keyOf returns the first key that a daemon is the aggregator of.
func (r *rig) keyOf(name string) int {
	m := r.of(name)
	for i := range 1_000 {
		if m.Aggregates(testKey(i)) {
			return i
		}
	}
	panic("no key of " + name)
}

// kept returns the first key of a pair.
func (r *rig) kept(aggregator, successor string) int {
	m := r.of(aggregator)
	want := pair{aggregator: m.self.ID, successor: r.of(successor).self.ID}
	for i := range 1_000 {
		if m.roles.regions[0].pair(testKey(i)) == want {
			return i
		}
	}
	panic("no key of " + aggregator + " and " + successor)
}

// keeps reports whether a daemon keeps the counts of a key that have no live
// writer.
func (r *rig) keeps(m *member, k int) bool {
	return Keeps(m.Engine, CellID{Key: testKey(k), Kind: Daemon})
}

// cells returns the cells of a daemon without the sums of its own region, which
// count nothing.
func (r *rig) cells(m *member) []Cell {
	return slices.DeleteFunc(m.Cells(r.wall(m), nil), func(c Cell) bool { return c.Incarnation == m.Engine.region })
}

// find returns the link of an incarnation, nil for none.
func (ls links) find(id crdt.Incarnation) *link {
	if i := slices.IndexFunc(ls, func(l *link) bool { return l.peer.ID == id }); i >= 0 {
		return ls[i]
	}
	return nil
}
