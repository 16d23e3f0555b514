package route

import (
	"math/bits"
	"slices"

	"github.com/georld/rld/internal/rendezvous"

	"github.com/georld/rld/crdt"
)

// Owner is where a key is at home.
type Owner struct {
	Region      string
	Name        string           // of the daemon, "" when none is known
	Incarnation crdt.Incarnation // the incarnation to ask, 0 when none is live
	Self        bool             // it is this daemon
	Own         bool             // the region is this daemon's own
}

// Voter is a replica of this daemon's region.
type Voter struct {
	ID          uint64 // NameHash of the name
	Name        string
	Incarnation crdt.Incarnation // 0 when it is not live
}

// Routing says who is home of what, by one layout and one set of live daemons. It
// never changes and is safe for concurrent use; Replica.Routing returns a new one
// when something did. The zero value knows of nobody.
type Routing struct {
	number  uint64
	self    crdt.Incarnation
	own     int // index of the own region in areas, which always has it
	regions   []regionOwners
	weighted []int // areas that keys are drawn to, by weight
	equal   bool  // all of these weigh the same
	pins    map[uint64]int
	voters  []Voter
	isVoter  bool
}

// regionOwners is a region as a home for keys.
type regionOwners struct {
	name   string
	hash   uint64
	weight uint64
	// owners are those of its daemons that may be home now: of the replicas, or
	// of all when these are not known, the live and ready ones; without any, the
	// live ones; without any, all.
	owners []daemon
}

type daemon struct {
	name        string
	hash        uint64
	incarnation crdt.Incarnation
}

// Owner returns the home of a ledger: in the region that the rule is pinned to or
// that the key is drawn to, or in the own region when regional is set.
func (v *Routing) Owner(key crdt.Key, rule uint64, regional bool) Owner {
	if len(v.regions) == 0 {
		return Owner{}
	}
	word := rendezvous.Fold(key)
	i := v.own
	if !regional {
		var pinned bool
		if i, pinned = v.pins[rule]; !pinned {
			i = v.homeOf(word)
		}
	}
	a := &v.regions[i]
	h := Owner{Region: a.name, Own: i == v.own}
	most := uint64(0)
	for j := range a.owners {
		d := &a.owners[j]
		if u := rendezvous.Draw(word, d.hash); j == 0 || u > most {
			most, h.Name, h.Incarnation = u, d.name, d.incarnation
		}
	}
	h.Self = h.Incarnation != 0 && h.Incarnation == v.self
	return h
}

// Candidate reports whether a daemon could be home of a ledger if others died.
func (v *Routing) Candidate(key crdt.Key, rule uint64, regional bool, of crdt.Incarnation) bool {
	if len(v.regions) == 0 || of == 0 {
		return false
	}
	i := v.own
	if !regional {
		var pinned bool
		if i, pinned = v.pins[rule]; !pinned {
			i = v.homeOf(rendezvous.Fold(key))
		}
	}
	return slices.ContainsFunc(v.regions[i].owners, func(d daemon) bool { return d.incarnation == of })
}

// homeOf returns the region that a key is drawn to: by weighted rendezvous, so
// that a change of one weight moves only what must move.
func (v *Routing) homeOf(word uint64) int {
	if len(v.weighted) == 0 {
		return v.own
	}
	best := v.weighted[0]
	if v.equal {
		most := rendezvous.Draw(word, v.regions[best].hash)
		for _, i := range v.weighted[1:] {
			if u := rendezvous.Draw(word, v.regions[i].hash); u > most {
				best, most = i, u
			}
		}
		return best
	}
	least := rendezvous.Rarity(rendezvous.Draw(word, v.regions[best].hash))
	for _, i := range v.weighted[1:] {
		r := rendezvous.Rarity(rendezvous.Draw(word, v.regions[i].hash))
		// r/weight < least/weight of the best, without dividing
		ahi, alo := bits.Mul64(r, v.regions[best].weight)
		bhi, blo := bits.Mul64(least, v.regions[i].weight)
		if ahi < bhi || ahi == bhi && alo < blo {
			best, least = i, r
		}
	}
	return best
}

// Voters returns the replica set of the own region, by name; it must not be
// changed. It is empty when the region has none.
func (v *Routing) Voters() []Voter { return v.voters }

// Live returns how many of the seats are live: below Majority nothing can be
// raised.
func (v *Routing) Live() int {
	n := 0
	for _, s := range v.voters {
		if s.Incarnation != 0 {
			n++
		}
	}
	return n
}

// Majority returns how many of the seats a raise needs: more than half of all,
// the dead included.
func (v *Routing) Majority() int {
	return Majority(len(v.voters))
}

// IsVoter reports whether this daemon is one of the seats.
func (v *Routing) IsVoter() bool { return v.isVoter }

// Number returns the number of the layout.
func (v *Routing) Number() uint64 { return v.number }

// newView builds the view of a daemon of region by a layout and the live
// daemons, among them itself.
func New(l *Layout, region, name string, self crdt.Incarnation, live Peers) *Routing {
	v := &Routing{number: l.Number, self: self, own: -1, equal: true, pins: make(map[uint64]int, len(l.Pins))}
	for i := range l.Regions {
		r := &l.Regions[i]
		if r.Name == region {
			v.own = i
		}
		v.regions = append(v.regions, newRegionOwners(r, live))
		if r.Weight > 0 {
			v.weighted = append(v.weighted, i)
			v.equal = v.equal && r.Weight == l.Regions[v.weighted[0]].Weight
		}
	}
	if v.own < 0 {
		v.own = len(v.regions)
		v.regions = append(v.regions, newRegionOwners(&Region{Name: region}, live))
	}
	for _, p := range l.Pins {
		for i := range l.Regions {
			if l.Regions[i].Name == p.Region {
				v.pins[p.Rule] = i
			}
		}
	}
	for _, n := range l.VotersOf(region) {
		d := live.Find(region, n)
		v.voters = append(v.voters, Voter{ID: NameHash(n), Name: n, Incarnation: d.ID})
		v.isVoter = v.isVoter || n == name
	}
	return v
}

func newRegionOwners(r *Region, live Peers) regionOwners {
	a := regionOwners{name: r.Name, hash: rendezvous.Hash("region", r.Name), weight: uint64(r.Weight)}
	var ready, alive, all []daemon
	take := func(name string, p Peer) {
		d := daemon{name, NameHash(name), p.ID}
		all = append(all, d)
		if p.ID != 0 {
			alive = append(alive, d)
		}
		if p.ID != 0 && p.Ready {
			ready = append(ready, d)
		}
	}
	for _, name := range r.Replicas {
		take(name, live.Find(r.Name, name))
	}
	if len(r.Replicas) == 0 {
		for i, p := range live {
			if p.Region == r.Name && (i == 0 || live[i-1].Region != p.Region || live[i-1].Name != p.Name) {
				take(p.Name, p)
			}
		}
	}
	switch {
	case len(ready) > 0:
		a.owners = ready
	case len(alive) > 0:
		a.owners = alive
	default:
		a.owners = all
	}
	return a
}

// Pinned reports whether the layout names the home region of a rule.
func (v *Routing) Pinned(rule uint64) bool {
	_, ok := v.pins[rule]
	return ok
}

// Regions returns how many regions the layout has: floors are shares of them, and
// so the same for all who go by it.
func (v *Routing) Regions() int { return len(v.regions) }
