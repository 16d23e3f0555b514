package daemon

import (
	"cmp"
	"maps"
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
)

// directory holds the live daemons of all regions: those of its own region from
// membership, those of another region from the lists that daemons of it send. A
// region without any connection keeps its last daemons, which are dialed until
// one answers. It is not safe for concurrent use.
type directory struct {
	self     gossip.Member
	own      []gossip.Member       // live members of the region, with self
	contacts map[string][]string   // configured addresses by region
	met      map[string]link.Hello // connected peers by address
	regions  map[string]*remote
	streamed map[crdt.Incarnation]bool // see reached
	// ready is the readiness of connected daemons of the region, which is more
	// recent than that of membership.
	ready map[crdt.Incarnation]bool
}

// remote is another region.
type remote struct {
	lists map[crdt.Incarnation][]gossip.Member // by the daemon that sent it
	last  []gossip.Member                      // the last daemons while any was connected
	// introduced are addresses of unknown daemons that connected to this one.
	introduced []string
}

// Bounds of the directory.
const (
	maxRegions    = 64
	maxIntroduced = 64
	maxRemote     = 1_000 // daemons of another region
)

func newDirectory(self gossip.Member, contacts map[string][]string) *directory {
	return &directory{
		self: self, own: []gossip.Member{self}, contacts: contacts,
		met: map[string]link.Hello{}, regions: map[string]*remote{}, ready: map[crdt.Incarnation]bool{},
	}
}

// region returns another region, nil for the own one or if there are too many.
func (d *directory) region(name string) *remote {
	if name == d.self.Region {
		return nil
	}
	r := d.regions[name]
	if r == nil && len(d.regions) < maxRegions {
		r = &remote{lists: map[crdt.Incarnation][]gossip.Member{}}
		d.regions[name] = r
	}
	return r
}

// reached returns the members that this daemon has had a stream to, itself
// among them. Messages to others are lost.
func (d *directory) reached(members []gossip.Member) []gossip.Member {
	was := d.streamed
	d.streamed = make(map[crdt.Incarnation]bool, len(members))
	for _, m := range members {
		if was[m.ID] || m.ID == d.self.ID || d.met[m.Addr].Member.ID == m.ID {
			d.streamed[m.ID] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(members), func(m gossip.Member) bool { return !d.streamed[m.ID] })
}

// connected adds the daemon that answers at an address. Its region is that of
// the handshake.
func (d *directory) connected(addr string, h link.Hello) {
	d.disconnected(addr)
	d.met[addr] = h
	d.forget(addr, h.Member.Region)
	if h.Member.Region == d.self.Region {
		d.ready[h.Member.ID] = h.Member.Ready
	}
	r := d.region(h.Member.Region)
	if r == nil {
		return
	}
	r.introduced = slices.DeleteFunc(r.introduced, func(a string) bool { return a == addr })
	if r.lists[h.Member.ID] == nil { // else it answers at another address too
		r.lists[h.Member.ID] = []gossip.Member{h.Member}
		r.settle()
	}
}

// forget removes an address from all regions except one.
func (d *directory) forget(addr, region string) {
	for name, r := range d.regions {
		if name == region {
			continue
		}
		r.introduced = slices.DeleteFunc(r.introduced, func(a string) bool { return a == addr })
		r.last = slices.DeleteFunc(r.last, func(m gossip.Member) bool { return m.Addr == addr })
		if len(r.lists) == 0 && len(r.introduced) == 0 && len(r.last) == 0 {
			delete(d.regions, name)
		}
	}
}

// disconnected removes the daemon that answered at an address.
func (d *directory) disconnected(addr string) {
	h, ok := d.met[addr]
	if !ok {
		return
	}
	delete(d.met, addr)
	for _, other := range d.met {
		if other.Member.ID == h.Member.ID {
			return // it still answers at another address
		}
	}
	delete(d.ready, h.Member.ID)
	if r := d.region(h.Member.Region); r != nil {
		delete(r.lists, h.Member.ID)
		r.settle()
	}
}

// setMembers sets the list that a daemon of another region sent of its region.
// Of a list of a daemon of the own region only the entry of the sender counts:
// membership has the others.
func (d *directory) setMembers(from link.Hello, members []gossip.Member) {
	if _, answers := d.ready[from.Member.ID]; answers {
		for _, m := range members {
			if m.ID == from.Member.ID {
				d.ready[m.ID] = m.Ready
			}
		}
		return
	}
	r := d.region(from.Member.Region)
	if r == nil || r.lists[from.Member.ID] == nil {
		return // not connected to it
	}
	list := []gossip.Member{from.Member}
	for _, m := range members {
		switch {
		case m.Region != from.Member.Region:
		case m.ID == from.Member.ID:
			list[0].Ready = m.Ready // newer than the handshake
		case len(list) < gossip.MaxPeers:
			list = append(list, m)
		}
	}
	r.lists[from.Member.ID] = list
	r.settle()
}

// introduce adds the address of an unknown daemon of another region. It reports
// whether it was unknown.
func (d *directory) introduce(m gossip.Member) bool {
	if _, answered := d.met[m.Addr]; m.Addr == "" || answered {
		return false
	}
	r := d.region(m.Region)
	if r == nil || slices.Contains(r.introduced, m.Addr) {
		return false
	}
	d.forget(m.Addr, m.Region)
	if len(r.introduced) == maxIntroduced {
		r.introduced = r.introduced[1:]
	}
	r.introduced = append(r.introduced, m.Addr)
	return true
}

// settle sets the live daemons of a region from the lists, if there are any. Of
// two incarnations of one name the connected one counts.
func (r *remote) settle() {
	if len(r.lists) == 0 {
		return
	}
	byID := map[crdt.Incarnation]gossip.Member{}
	answers := map[string]crdt.Incarnation{}
	for id, list := range r.lists {
		byID[id] = list[0]
		answers[list[0].Name] = id
	}
	for _, list := range r.lists {
		for _, m := range list[1:] {
			if _, known := byID[m.ID]; !known && answers[m.Name] == 0 {
				byID[m.ID] = m
			}
		}
	}
	r.last = slices.SortedFunc(maps.Values(byID), byIdentity)
	if len(r.last) > maxRemote { // connected ones come first
		slices.SortStableFunc(r.last, func(a, b gossip.Member) int {
			return cmp.Compare(btoi(r.lists[a.ID] == nil), btoi(r.lists[b.ID] == nil))
		})
		r.last = r.last[:maxRemote]
		slices.SortFunc(r.last, byIdentity)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func byIdentity(a, b gossip.Member) int { return cmp.Compare(a.ID, b.ID) }

// members returns the live daemons of all regions, by ID.
func (d *directory) members() []gossip.Member {
	all := slices.Clone(d.own)
	for i := range all {
		if ready, answers := d.ready[all[i].ID]; answers && all[i].ID != d.self.ID {
			all[i].Ready = ready
		}
	}
	for _, r := range d.regions {
		all = append(all, r.last...)
	}
	slices.SortFunc(all, byIdentity)
	return slices.CompactFunc(all, func(a, b gossip.Member) bool { return a.ID == b.ID })
}

// targets returns the addresses to dial: the daemons of the region, and in
// other regions the known, the configured and the introduced ones.
func (d *directory) targets() []link.Target {
	byAddr := map[string]link.Target{}
	add := func(addr, region string) {
		if addr != "" && addr != d.self.Addr {
			byAddr[addr] = link.Target{Addr: addr, Region: region, WAN: region != d.self.Region}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.regions)) { // the same each time
		r := d.regions[name]
		for _, addr := range r.introduced {
			add(addr, name)
		}
		for _, m := range r.last {
			add(m.Addr, name)
		}
	}
	for addr, h := range d.met { // its handshake names its region
		if _, wanted := byAddr[addr]; wanted {
			add(addr, h.Member.Region)
		}
	}
	for name, addrs := range d.contacts {
		for _, addr := range addrs {
			add(addr, name)
		}
	}
	for _, m := range d.own {
		add(m.Addr, m.Region)
	}
	return slices.SortedFunc(maps.Values(byAddr), func(a, b link.Target) int { return cmp.Compare(a.Addr, b.Addr) })
}
