package sim

import (
	"slices"
	"time"

	"github.com/georld/rld/gossip"
)

// teams follows who believes whom to share the work of each region. Counts
// cross regions through the aggregators of their keys, which daemons find by
// what they believe: while they believe different things a message may be
// complete and lack what somebody else was taken to tell.
type teams struct {
	regions, shards int
	minds           []mind   // by writer
	members         []member // by writer
	dirty           bool     // agreed has to be found out again
	// By route: whether all daemons of both regions believe the same, and
	// when last they were about to change that.
	agreed  []bool
	settled []time.Duration
}

// mind is what a process believes.
type mind struct {
	up       bool
	peers    []belief      // by writer
	phantoms int           // peers that never were
	since    time.Duration // its latest change
	ready    int           // shards that take their share
}

// belief is in how many shards a peer is there, and since when in any.
type belief struct {
	shards int
	since  time.Duration
}

// member is how many processes believe in an incarnation, and from when to
// when any did: again and again where some keep one that is gone, and take it
// for dead by turns.
type member struct {
	now   int
	stays []stay
}

// stay is an interval of time; with now in member above 0 the latest is not over.
type stay struct{ from, to time.Duration }

func newTeams(cfg *Config) teams {
	routes := len(cfg.Regions) * len(cfg.Regions) * cfg.Shards
	return teams{
		regions: len(cfg.Regions), shards: cfg.Shards, dirty: true,
		agreed: make([]bool, routes), settled: slices.Repeat([]time.Duration{unheard}, routes),
	}
}

// route is the place of what concerns a shard's counts of one region on their
// way to another.
func (t *teams) route(to, from, shard int) int { return (to*t.regions+from)*t.shards + shard }

// at returns what a process believes of a peer.
func (t *teams) at(who, of int) *belief {
	for len(t.minds) <= max(who, of) {
		t.minds = append(t.minds, mind{since: unheard})
		t.members = append(t.members, member{})
	}
	m := &t.minds[who]
	for len(m.peers) <= of {
		m.peers = append(m.peers, belief{})
	}
	return &m.peers[of]
}

// start lets a new process believe in itself.
func (t *teams) start(w *World, is *writer) {
	t.at(is.index, is.index)
	t.minds[is.index] = mind{up: true, since: w.Now()}
	t.join(is.index, is.index, w.Now())
}

func (t *teams) stop(is *writer, now time.Duration) {
	t.at(is.index, is.index)
	m := &t.minds[is.index]
	for of := range m.peers {
		if m.peers[of].shards > 0 {
			m.peers[of].shards = 1
			t.leave(is.index, of, now)
		}
	}
	m.up, m.phantoms, t.dirty = false, 0, true
}

func (t *teams) join(who, of int, now time.Duration) {
	b := t.at(who, of)
	if b.shards++; b.shards > 1 {
		return
	}
	b.since = now
	m := &t.members[of]
	if n := len(m.stays); m.now == 0 && (n == 0 || m.stays[n-1].to < now-rejoin) {
		m.stays = append(m.stays, stay{from: now, to: now})
	}
	m.now++
	t.dirty = true
}

// rejoin is how soon after nobody believed in an incarnation it may come back
// as if it had been there throughout.
const rejoin = time.Second

func (t *teams) leave(who, of int, now time.Duration) {
	b := t.at(who, of)
	if b.shards == 0 {
		return
	}
	if b.shards--; b.shards > 0 {
		return
	}
	m := &t.members[of]
	if m.now--; m.now == 0 {
		m.stays[len(m.stays)-1].to = now
	}
	t.dirty = true
}

// happened follows a change of mind.
func (t *teams) happened(w *World, s *writers, is *writer, e gossip.Event) {
	of := s.byIncarnation[e.Peer]
	t.at(is.index, is.index)
	mind := &t.minds[is.index]
	switch {
	case e.Kind == gossip.BecameReady:
		mind.ready++
		t.dirty = true
	case of == nil && e.Kind == gossip.PeerJoined:
		mind.phantoms++
		t.dirty = true
	case of == nil:
		mind.phantoms--
		t.dirty = true
	case e.Kind == gossip.PeerJoined:
		t.join(is.index, of.index, w.Now())
	default:
		t.leave(is.index, of.index, w.Now())
	}
}

// change notes that a process is about to believe something else: what it
// told before stands, what it tells from now on may be about other keys.
func (t *teams) change(w *World, h *hearing, s *writers, is *writer) {
	t.agree(h, s)
	for r := range t.regions {
		for shard := range t.shards {
			for _, i := range [2]int{t.route(is.region, r, shard), t.route(r, is.region, shard)} {
				if t.agreed[i] && t.absorbed(h, s, i, w.Now()) {
					t.settled[i] = w.Now()
				}
			}
		}
	}
	t.at(is.index, is.index)
	t.minds[is.index].since = w.Now()
	t.dirty = true
}

// met returns since when a process believes in a peer, false when it does not.
func (t *teams) met(who, of int) (time.Duration, bool) {
	b := t.at(who, of)
	return b.since, b.shards > 0
}

// candidates returns the incarnations of a region that anybody believed in at
// a time: any of them may have been somebody's aggregator.
func (t *teams) candidates(s *writers, region int, at time.Duration) []int {
	var out []int
	for i := range t.members {
		if s.all[i].region == region && t.members[i].at(at) {
			out = append(out, i)
		}
	}
	return out
}

// at reports whether anybody believed in the incarnation just before a time.
func (m *member) at(t time.Duration) bool {
	for i := len(m.stays) - 1; i >= 0; i-- {
		if s := &m.stays[i]; s.from < t {
			return s.to >= t || m.now > 0 && i == len(m.stays)-1
		}
	}
	return false
}

// agree finds out for which routes the daemons at both ends believe the same.
func (t *teams) agree(h *hearing, s *writers) {
	if !t.dirty {
		return
	}
	t.dirty = false
	for to := range t.regions {
		for from := range t.regions {
			for shard := range t.shards {
				t.agreed[t.route(to, from, shard)] = to != from &&
					t.same(h, s, to, to, shard) && t.same(h, s, from, to, shard) && t.same(h, s, from, from, shard)
			}
		}
	}
}

// same reports whether all daemons of a region believe in the very candidates
// of another, and heard them say that they take their share.
func (t *teams) same(h *hearing, s *writers, who, of, shard int) bool {
	for i := range t.minds {
		m := &t.minds[i]
		if !m.up || s.all[i].region != who {
			continue
		}
		if m.phantoms > 0 || m.ready < t.shards {
			return false
		}
		for j := range t.members {
			if t.members[j].now == 0 || s.all[j].region != of || i == j {
				continue
			}
			if e := h.ears[earKey{i, j, shard}]; t.at(i, j).shards < t.shards || e == nil || !e.ready {
				return false
			}
		}
	}
	return true
}

// absorbed reports whether all that travelled on a route, as it arrived by now,
// was told by daemons of their present mind.
func (t *teams) absorbed(h *hearing, s *writers, route int, now time.Duration) bool {
	shard, from, to := route%t.shards, route/t.shards%t.regions, route/t.shards/t.regions
	senders, receivers := t.candidates(s, from, now), t.candidates(s, to, now)
	for _, i := range receivers {
		for _, q := range receivers {
			heard := now
			if i != q {
				c, ok := h.ears[earKey{i, q, shard}].before(now)
				if !ok || c.sent < t.minds[q].since {
					return false
				}
				heard = c.until
			}
			for _, p := range senders {
				if c, ok := h.ears[earKey{q, p, shard}].before(heard); !ok || c.sent < t.minds[p].since {
					return false
				}
			}
		}
	}
	return len(senders) > 0 && len(receivers) > 0
}
