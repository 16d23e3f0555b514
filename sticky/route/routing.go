package route

import (
	"math/bits"
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/rendezvous"
)

// Owner is the owner of a key.
type Owner struct {
	Region      string
	Name        string           // of the daemon, "" when none is known
	Incarnation crdt.Incarnation // the incarnation to ask, 0 when none is live
	Self        bool             // it is this daemon
	Own         bool             // the region is this daemon's own
	// Lost is set where no region can know what was admitted: in windows that
	// began before, in Unix milliseconds.
	Lost int64
}

// Voter is a strict voter of this daemon's region.
type Voter struct {
	ID          uint64 // NameHash of the name
	Name        string
	Incarnation crdt.Incarnation // 0 when it is not live
}

// Routing maps keys to their owners by one layout and one set of live daemons.
// It is immutable and safe for concurrent use; Acceptor.Routing returns another
// one after a change. The zero value knows no owners.
type Routing struct {
	number   uint64
	self     crdt.Incarnation
	own      int // index of the own region in areas, which always has it
	regions  []regionOwners
	weighted []int // areas that keys are drawn to, by weight
	equal    bool  // all of these weigh the same
	pins     map[uint64]int
	voters   []Voter
	isVoter  bool
	// announced reports that the layout is not active yet, as the daemon knows.
	announced bool
	reserves  []Reserves // of the layout
	// reservedFrom is from when on the region of the daemon has a reserve.
	reservedFrom int64
	lost         []lost
}

// lost is a Loss of the layout, with the routing that drew the region.
type lost struct {
	region  string
	from    int64
	routing *Routing
}

// regionOwners is a region that can be the owner of keys.
type regionOwners struct {
	name   string
	hash   uint64
	weight uint64
	// owners are the daemons of the region that can own keys: the live and
	// ready voters; if there are none, the live ones; else all. If the voters
	// are not known, all daemons of the region count as voters. One with a
	// wrong clock counts as dead.
	owners []daemon
}

type daemon struct {
	name        string
	hash        uint64
	incarnation crdt.Incarnation
}

// Owner returns the owner of a key: in the own region if regional is set, else
// in the region that the rule is pinned to or that the key draws. No owner can
// know the hits of a region that lost its watermarks: the key has none if hits
// count that were admitted from since on, in Unix milliseconds, and the loss
// came later.
func (v *Routing) Owner(key crdt.Key, rule uint64, regional bool, since int64) Owner {
	if len(v.regions) == 0 {
		return Owner{}
	}
	word := rendezvous.Fold(key)
	for i := range v.lost {
		if x := &v.lost[i]; since < x.from && x.of(v, word, rule, regional) {
			return Owner{Region: x.region, Lost: x.from}
		}
	}
	i := v.regionOf(word, rule, regional)
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

// of reports whether the region that was lost may have been the owner of a key.
func (x *lost) of(v *Routing, word, rule uint64, regional bool) bool {
	switch {
	case x.region == "":
		return true
	case regional:
		return x.region == v.regions[v.own].name
	}
	return x.region == x.routing.regions[x.routing.regionOf(word, rule, false)].name
}

// Candidate reports whether a daemon would be the owner of a key if others
// died.
func (v *Routing) Candidate(key crdt.Key, rule uint64, regional bool, of crdt.Incarnation) bool {
	if len(v.regions) == 0 || of == 0 {
		return false
	}
	i := v.regionOf(rendezvous.Fold(key), rule, regional)
	return slices.ContainsFunc(v.regions[i].owners, func(d daemon) bool { return d.incarnation == of })
}

// regionOf returns the index of the region of a key's owner.
func (v *Routing) regionOf(word, rule uint64, regional bool) int {
	if regional {
		return v.own
	}
	if i, pinned := v.pins[rule]; pinned {
		return i
	}
	return v.drawRegion(word)
}

// drawRegion returns the region that a key draws by weighted rendezvous, so
// that a change of one weight moves only the keys that must move.
func (v *Routing) drawRegion(word uint64) int {
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

// Voters returns the strict voters of the own region, by name. The slice must
// not be changed.
func (v *Routing) Voters() []Voter { return v.voters }

// Live returns the number of live voters. Below Majority no watermark can be
// stored.
func (v *Routing) Live() int {
	n := 0
	for _, s := range v.voters {
		if s.Incarnation != 0 {
			n++
		}
	}
	return n
}

// Majority returns how many voters must store a watermark: more than half of
// all, the dead included.
func (v *Routing) Majority() int {
	return Majority(len(v.voters))
}

// IsVoter reports whether this daemon is a strict voter.
func (v *Routing) IsVoter() bool { return v.isVoter }

// Number returns the number of the layout.
func (v *Routing) Number() uint64 { return v.number }

// Active reports whether owners may ask for votes under the layout.
func (v *Routing) Active() bool { return !v.announced }

// Announced returns the routing by a layout that is not active yet.
func (v *Routing) Announced() *Routing {
	next := *v
	next.announced = true
	return &next
}

// New returns the routing of a daemon by a layout and the live daemons, which
// include it.
func New(l *Layout, region, name string, self crdt.Incarnation, live Peers) *Routing {
	v := &Routing{number: l.Number, reserves: l.Reserves, self: self, own: -1, equal: true, pins: make(map[uint64]int, len(l.Pins))}
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
	for _, x := range l.Reserves {
		if slices.Contains(x.New, region) {
			v.reservedFrom = x.From // ascending
		}
	}
	for i := range l.Lost {
		x := &l.Lost[i]
		v.lost = append(v.lost, lost{x.Region, x.From, New(&Layout{Regions: x.Regions, Pins: x.Pins}, "", "", 0, nil)})
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
	best := 0
	add := func(name string, p Peer) {
		rank := 0
		switch {
		case p.Off:
			p.ID = 0
		case p.ID != 0 && p.Ready:
			rank = 2
		case p.ID != 0:
			rank = 1
		}
		if rank > best {
			a.owners, best = nil, rank
		}
		if rank == best {
			a.owners = append(a.owners, daemon{name, NameHash(name), p.ID})
		}
	}
	for _, name := range r.Replicas {
		add(name, live.Find(r.Name, name))
	}
	if len(r.Replicas) == 0 {
		for i, p := range live {
			if p.Region == r.Name && (i == 0 || live[i-1].Region != p.Region || live[i-1].Name != p.Name) {
				add(p.Name, p)
			}
		}
	}
	return a
}

// Pinned reports whether the layout pins a rule to a region.
func (v *Routing) Pinned(rule uint64) bool {
	_, ok := v.pins[rule]
	return ok
}

// Reserved reports whether the region of the daemon has a regional reserve in
// windows that start at an instant, in Unix milliseconds.
func (v *Routing) Reserved(start int64) bool { return start >= v.reservedFrom }

// Reserves returns the number of regions with a regional reserve in windows
// that start at an instant, in Unix milliseconds. It is the same at all daemons
// under a layout, and at all that had watermarks of these windows accepted
// under former ones.
func (v *Routing) Reserves(start int64) int {
	n := 1
	for i, r := range v.reserves {
		if i > 0 && r.From > start {
			break
		}
		n = r.Regions
	}
	return n
}
