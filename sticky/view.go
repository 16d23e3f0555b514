package sticky

import (
	"math/bits"
	"slices"

	"github.com/georld/rld/crdt"
)

// Home is where a key is at home.
type Home struct {
	Region string
	Name   string    // of the daemon, "" when none is known
	Slot   crdt.Slot // the incarnation to ask, 0 when none is live
	Self   bool      // it is this daemon
	Own    bool      // the region is this daemon's own
}

// Seat is a replica of this daemon's region.
type Seat struct {
	Voter uint64 // NameHash of the name
	Name  string
	Slot  crdt.Slot // 0 when it is not live
}

// View says who is home of what, by one layout and one set of live daemons. It
// never changes and is safe for concurrent use; Replica.View returns a new one
// when something did. The zero value knows of nobody.
type View struct {
	number  uint64
	self    crdt.Slot
	own     int // index of the own region in areas, which always has it
	areas   []area
	drawing []int // areas that keys are drawn to, by weight
	equal   bool  // all of these weigh the same
	pins    map[uint64]int
	seats   []Seat
	seated  bool
	half    bool // for tests: an even majority
}

// area is a region as a home for keys.
type area struct {
	name   string
	hash   uint64
	weight uint64
	// homes are those of its daemons that may be home now: of the replicas, or
	// of all when these are not known, the live and ready ones; without any, the
	// live ones; without any, all.
	homes []daemon
}

type daemon struct {
	name string
	hash uint64
	slot crdt.Slot
}

// Home returns the home of a ledger: in the region that the rule is pinned to or
// that the key is drawn to, or in the own region when regional is set.
func (v *View) Home(key crdt.Key, rule uint64, regional bool) Home {
	if len(v.areas) == 0 {
		return Home{}
	}
	word := fold(key)
	i := v.own
	if !regional {
		var pinned bool
		if i, pinned = v.pins[rule]; !pinned {
			i = v.drawn(word)
		}
	}
	a := &v.areas[i]
	h := Home{Region: a.name, Own: i == v.own}
	most := uint64(0)
	for j := range a.homes {
		d := &a.homes[j]
		if u := draw(word, d.hash); j == 0 || u > most {
			most, h.Name, h.Slot = u, d.name, d.slot
		}
	}
	h.Self = h.Slot != 0 && h.Slot == v.self
	return h
}

// Candidate reports whether a daemon could be home of a ledger if others died.
func (v *View) Candidate(key crdt.Key, rule uint64, regional bool, of crdt.Slot) bool {
	if len(v.areas) == 0 || of == 0 {
		return false
	}
	i := v.own
	if !regional {
		var pinned bool
		if i, pinned = v.pins[rule]; !pinned {
			i = v.drawn(fold(key))
		}
	}
	return slices.ContainsFunc(v.areas[i].homes, func(d daemon) bool { return d.slot == of })
}

// drawn returns the region that a key is drawn to: by weighted rendezvous, so
// that a change of one weight moves only what must move.
func (v *View) drawn(word uint64) int {
	if len(v.drawing) == 0 {
		return v.own
	}
	best := v.drawing[0]
	if v.equal {
		most := draw(word, v.areas[best].hash)
		for _, i := range v.drawing[1:] {
			if u := draw(word, v.areas[i].hash); u > most {
				best, most = i, u
			}
		}
		return best
	}
	least := rarity(draw(word, v.areas[best].hash))
	for _, i := range v.drawing[1:] {
		r := rarity(draw(word, v.areas[i].hash))
		// r/weight < least/weight of the best, without dividing
		ahi, alo := bits.Mul64(r, v.areas[best].weight)
		bhi, blo := bits.Mul64(least, v.areas[i].weight)
		if ahi < bhi || ahi == bhi && alo < blo {
			best, least = i, r
		}
	}
	return best
}

// Seats returns the replica set of the own region, by name; it must not be
// changed. It is empty when the region has none.
func (v *View) Seats() []Seat { return v.seats }

// Live returns how many of the seats are live: below Majority nothing can be
// raised.
func (v *View) Live() int {
	n := 0
	for _, s := range v.seats {
		if s.Slot != 0 {
			n++
		}
	}
	return n
}

// Majority returns how many of the seats a raise needs: more than half of all,
// the dead included.
func (v *View) Majority() int {
	if v.half {
		return max(len(v.seats)/2, 1)
	}
	return majority(len(v.seats))
}

// Seated reports whether this daemon is one of the seats.
func (v *View) Seated() bool { return v.seated }

// Number returns the number of the layout.
func (v *View) Number() uint64 { return v.number }

// newView builds the view of a daemon of region by a layout and the live
// daemons, among them itself.
func newView(l *Layout, region, name string, self crdt.Slot, live []Peer) *View {
	v := &View{number: l.Number, self: self, own: -1, equal: true, pins: make(map[uint64]int, len(l.Pins))}
	for i := range l.Regions {
		r := &l.Regions[i]
		if r.Name == region {
			v.own = i
		}
		v.areas = append(v.areas, newArea(r, live))
		if r.Weight > 0 {
			v.drawing = append(v.drawing, i)
			v.equal = v.equal && r.Weight == l.Regions[v.drawing[0]].Weight
		}
	}
	if v.own < 0 {
		v.own = len(v.areas)
		v.areas = append(v.areas, newArea(&Region{Name: region}, live))
	}
	for _, p := range l.Pins {
		for i := range l.Regions {
			if l.Regions[i].Name == p.Region {
				v.pins[p.Rule] = i
			}
		}
	}
	for _, n := range l.replicas(region) {
		d := find(live, region, n)
		v.seats = append(v.seats, Seat{Voter: NameHash(n), Name: n, Slot: d.ID})
		v.seated = v.seated || n == name
	}
	return v
}

func newArea(r *Region, live []Peer) area {
	a := area{name: r.Name, hash: hashText("region", r.Name), weight: uint64(r.Weight)}
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
		take(name, find(live, r.Name, name))
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
		a.homes = ready
	case len(alive) > 0:
		a.homes = alive
	default:
		a.homes = all
	}
	return a
}
