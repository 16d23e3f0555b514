package gossip

import (
	"slices"
	"strings"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/rendezvous"
	"github.com/georld/rld/internal/sat"
)

// Peer is one live incarnation according to membership.
type Peer struct {
	// ID is the incarnation it counts under. A restart has another one.
	ID crdt.Incarnation
	// Name is the daemon's name, the same across restarts.
	Name string
	// Region is the name of its region.
	Region string
	// Ready reports whether it takes its share of the region's work, according
	// to membership. Its messages are more recent.
	Ready bool
}

// Member is a live incarnation with its address.
type Member struct {
	Peer
	// Addr is the address for streams of other daemons, host:port.
	Addr string
	// Build is its version, for status pages.
	Build string
}

// members are the daemons of a region that share its work.
type members struct {
	region      string
	incarnation crdt.Incarnation
	ids         []crdt.Incarnation // ascending
	names       []naming           // parallel to ids
	ranks       []uint64           // hashes that rank them, likewise: see rank
	sorted      []uint64           // the ranks, ascending
	numbered    bool               // ordinals rank them
	// twin is the daemon with the same rank as this one in a region whose
	// daemons have the same ranks, 0 for none.
	twin   crdt.Incarnation
	silent []crdt.Incarnation // those of ids that are silent
}

// grow makes room for a number of daemons.
func (m *members) grow(n int) {
	m.ids, m.names = slices.Grow(m.ids, n), slices.Grow(m.names, n)
}

// add adds a daemon.
func (m *members) add(id crdt.Incarnation, name naming) {
	i, _ := slices.BinarySearch(m.ids, id)
	m.ids = slices.Insert(m.ids, i, id)
	m.names = slices.Insert(m.names, i, name)
}

// naming is the hash of a daemon's name, and that of the number at its end, 0
// without one.
type naming struct{ name, ordinal uint64 }

// namingOf returns the naming of a name.
func namingOf(name string) naming {
	n := naming{name: rendezvous.Hash(name)}
	if text := strings.TrimLeft(name[len(strings.TrimRight(name, "0123456789")):], "0"); text != "" || strings.HasSuffix(name, "0") {
		n.ordinal = max(1, rendezvous.Hash("ordinal", text))
	}
	return n
}

// rank ranks the daemons by the numbers at the ends of their names, so that
// eu-7 and us-7 aggregate the same keys: a daemon then sends sums to few
// daemons of other regions. If one has no number or two have the same, their
// names rank all of them.
func (m *members) rank() {
	m.rankBy(func(n naming) uint64 { return n.ordinal })
	m.numbered = len(m.sorted) == 0 || m.sorted[0] != 0
	for i := 1; i < len(m.sorted) && m.numbered; i++ {
		if rank := m.sorted[i]; rank == m.sorted[i-1] { // of two daemons, or of two incarnations of one
			first := m.names[slices.Index(m.ranks, rank)].name
			m.numbered = !slices.ContainsFunc(m.names, func(n naming) bool { return n.ordinal == rank && n.name != first })
		}
	}
	if !m.numbered {
		m.rankBy(func(n naming) uint64 { return n.name })
	}
}

// rankBy ranks the daemons by a part of their names.
func (m *members) rankBy(part func(naming) uint64) {
	m.ranks = slices.Grow(m.ranks[:0], len(m.names))
	for _, n := range m.names {
		m.ranks = append(m.ranks, part(n))
	}
	m.sorted = append(m.sorted[:0], m.ranks...)
	slices.Sort(m.sorted)
}

// sameRanks reports whether the daemons of two regions have the same numbers:
// then each one sends sums to the one with its own number alone.
func (m *members) sameRanks(o *members) bool {
	return m.numbered && o.numbered && slices.Equal(m.sorted, o.sorted)
}

// pair is the daemons of a region that keep the counts of a key: the aggregator
// and the successor, which becomes the aggregator after it. 0 stands for none.
// While the aggregator is silent and the successor is not, they change places.
type pair struct {
	aggregator, successor crdt.Incarnation
	changed               bool // places
}

// has reports whether a daemon is one of them.
func (p pair) has(id crdt.Incarnation) bool { return id == p.aggregator || id == p.successor }

// pair returns the daemons with the greatest hashes of rank and key
// (rendezvous hashing, Thaler and Ravishankar, 1998): the loss of one moves
// only its keys.
func (m *members) pair(k crdt.Key) pair {
	var best, second uint64
	var out pair
	for i, rank := range m.ranks {
		switch h := rendezvous.Mix(rank ^ uint64(k)); {
		case h > best || out.aggregator == 0:
			second, out.successor = best, out.aggregator
			best, out.aggregator = h, m.ids[i]
		case h > second || out.successor == 0:
			second, out.successor = h, m.ids[i]
		}
	}
	if len(m.silent) > 0 && out.successor != 0 &&
		slices.Contains(m.silent, out.aggregator) && !slices.Contains(m.silent, out.successor) {
		out = pair{out.successor, out.aggregator, true}
	}
	return out
}

// aggregator returns the daemon that sums a key for the region, 0 without
// members.
func (m *members) aggregator(k crdt.Key) crdt.Incarnation { return m.pair(k).aggregator }

// leastOfTwoHops is the least number of daemons of a region that counts in two
// hops: of two, each keeps all counts anyway.
const leastOfTwoHops = 3

// roles assigns the keys of each region to aggregators.
type roles struct {
	self    Peer
	regions []members // the own region first
	version uint64    // changes with every assignment
	active  int       // daemons that share the work, of all regions
	shares  bool      // this daemon is one of them
	two     bool      // the own region counts in two hops
	before  uint64    // regions with lower incarnations
}

// assign assigns the work anew. ready reports whether this daemon takes part.
// With last it takes part if no other daemon of the region does, and those that
// may be gone do not: a daemon that leaves cannot wait until they return.
func (r *roles) assign(ls links, ready, last bool) {
	r.version++
	usual := 1 + len(ls)/max(1, len(r.regions))
	r.regions = []members{{region: r.self.Region, incarnation: RegionIncarnation(r.self.Region)}}
	r.regions[0].grow(usual)
	if ready {
		r.regions[0].add(r.self.ID, namingOf(r.self.Name))
	}
	r.active, r.shares = 1, ready
	for _, l := range ls {
		if l.region >= len(r.regions) || r.regions[l.region].region != l.peer.Region {
			l.region = r.place(l.peer.Region)
		}
		if l.ready && !(last && l.local && l.mayBeGone()) {
			m := &r.regions[l.region]
			if m.ids == nil {
				m.grow(usual)
			}
			m.add(l.peer.ID, l.naming)
			if l.silent && l.local {
				m.silent = append(m.silent, l.peer.ID)
			}
			r.active++
		}
	}
	if last && len(r.regions[0].ids) == 0 {
		r.regions[0].add(r.self.ID, namingOf(r.self.Name))
	}
	for i := range r.regions {
		m, own := &r.regions[i], &r.regions[0]
		m.rank()
		if at := slices.Index(own.ids, r.self.ID); i > 0 && at >= 0 && own.sameRanks(m) {
			m.twin = m.ids[slices.Index(m.ranks, own.ranks[at])]
		}
	}
	r.two = len(r.regions[0].ids) >= leastOfTwoHops
	r.before = 0
	for i := range r.regions[1:] {
		if r.regions[1+i].incarnation < r.regions[0].incarnation {
			r.before++
		}
	}
}

// heard notes whether a regional peer is silent. Others take its part
// meanwhile.
func (r *roles) heard(l *link) {
	if !l.local {
		return
	}
	m := &r.regions[l.region]
	m.silent = slices.DeleteFunc(m.silent, func(id crdt.Incarnation) bool { return id == l.peer.ID })
	if l.silent && slices.Contains(m.ids, l.peer.ID) {
		m.silent = append(m.silent, l.peer.ID)
	}
	r.version++
}

// place returns the index of a region and adds the region if it is new.
func (r *roles) place(region string) int {
	i := slices.IndexFunc(r.regions, func(m members) bool { return m.region == region })
	if i < 0 {
		i = len(r.regions)
		r.regions = append(r.regions, members{region: region, incarnation: RegionIncarnation(region)})
	}
	return i
}

// own returns the aggregator of a key in the own region, 0 for none.
func (r *roles) own(k crdt.Key) crdt.Incarnation { return r.regions[0].aggregator(k) }

// pair returns the pair in the own region of a key with cells.
func (r *roles) pair(k *keyEntry) pair {
	if k.roles != r.version {
		k.pair, k.roles = r.regions[0].pair(k.key), r.version
	}
	return k.pair
}

// cached is own for a key with cells.
func (r *roles) cached(k *keyEntry) crdt.Incarnation { return r.pair(k).aggregator }

// winner returns the aggregator in a region, by its place, of a key with cells,
// 0 for none. Where ranks are the same, the twin aggregates the same keys.
func (r *roles) winner(region int, k *keyEntry) crdt.Incarnation {
	m := &r.regions[region]
	if m.twin != 0 {
		if p := r.pair(k); p.aggregator == r.self.ID && !p.changed {
			return m.twin
		}
	}
	return m.aggregator(k.key)
}

// changedRegions reports for each region of is whether it had other members in
// was.
func changedRegions(was, is []members) []bool {
	changed := make([]bool, len(is))
	for r := range is {
		i := slices.IndexFunc(was, func(m members) bool { return m.region == is[r].region })
		changed[r] = i < 0 && len(is[r].ids) > 0 || i >= 0 && !slices.Equal(was[i].ids, is[r].ids)
	}
	return changed
}

// Aggregates reports whether this daemon is the aggregator of a key.
func (e *Engine) Aggregates(k crdt.Key) bool { return e.roles.own(k) == e.self.ID }

// Aggregator returns the aggregator of a key in the own region, 0 for none.
func (e *Engine) Aggregator(k crdt.Key) crdt.Incarnation { return e.roles.own(k) }

const (
	// sentAll is how many hits are left when a region withholds none, and
	// slackest the slack from which on that is a quarter of what each other
	// region could add.
	sentAll, slackest = 4, 3
)

// slack returns from how many unsent hits on the sum of the region is sent to
// other regions, with some hits left of a key. Up to slackest, three quarters
// of what is left beyond sentAll are divided over the regions, into whole parts
// that differ from key to key: each region withholds up to its part. So none
// withholds any hits when all hits together reach the limit. Proof: u hits are
// withheld then. No region knows of more than u that are left, so together they
// withhold three quarters of u at most, and u is 0.
func (r *roles) slack(k crdt.Key, left uint64) uint64 {
	n := uint64(len(r.regions))
	hits := sat.Sub(left, sentAll)
	hits -= (hits + 3) / 4
	part := hits/n + (hits%n+(uint64(k)+r.before)%n)/n
	return max(left/(n-1)/4, min(1+part, slackest))
}
