package daemon

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/daemon/regions"
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
	// listed reports whether a region is in the settings or in the record, and
	// dialable whether an address from peers may be dialed.
	listed   func(region string) bool
	dialable func(region, addr string) bool
}

// remote is another region.
type remote struct {
	lists map[crdt.Incarnation][]gossip.Member // by the daemon that sent it
	last  []gossip.Member                      // the last daemons while any was connected
	// introduced are addresses of unknown daemons that connected to this one.
	introduced []string
	// lost is when the last daemon of an unlisted region disconnected, zero for
	// a listed or connected one.
	lost time.Time
}

// Bounds of the directory.
const (
	maxRegions    = 64 // that are not listed
	maxIntroduced = 64
	maxRemote     = 1_000 // daemons of another region
)

func newDirectory(self gossip.Member, contacts map[string][]string) *directory {
	return &directory{
		self: self, own: []gossip.Member{self}, contacts: contacts,
		met: map[string]link.Hello{}, regions: map[string]*remote{}, ready: map[crdt.Incarnation]bool{},
		listed: func(string) bool { return true }, dialable: func(string, string) bool { return true },
	}
}

// region returns another region, nil for the own one, and for an unlisted one
// beyond the bound.
func (d *directory) region(name string) *remote {
	if name == d.self.Region {
		return nil
	}
	r := d.regions[name]
	if r == nil && (d.listed(name) || d.unlisted() < maxRegions) {
		r = &remote{lists: map[crdt.Incarnation][]gossip.Member{}}
		d.regions[name] = r
	}
	return r
}

// unlisted counts the unlisted regions.
func (d *directory) unlisted() (n int) {
	for name := range d.regions {
		if !d.listed(name) {
			n++
		}
	}
	return n
}

// tidy forgets unlisted regions without a connected daemon for some time.
func (d *directory) tidy(now time.Time) {
	for name, r := range d.regions {
		switch {
		case len(r.lists) > 0 || d.listed(name):
			r.lost = time.Time{}
		case r.lost.IsZero():
			r.lost = now
		case now.Sub(r.lost) >= regions.ForgetAfter:
			delete(d.regions, name)
		}
	}
}

// deciding removes the members of unlisted regions: only the control log is
// exchanged with them.
func (d *directory) deciding(members []gossip.Member) []gossip.Member {
	return slices.DeleteFunc(members, func(m gossip.Member) bool { return !d.listed(m.Region) })
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
	most := gossip.MaxPeers
	if !d.listed(from.Member.Region) {
		most = 1 // others of it introduce themselves
	}
	list := []gossip.Member{from.Member}
	for _, m := range members {
		switch {
		case m.Region != from.Member.Region:
		case m.ID == from.Member.ID:
			list[0].Ready = m.Ready // newer than the handshake
		case len(list) < most && d.dialable(m.Region, m.Addr):
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
	if r == nil || slices.Contains(r.introduced, m.Addr) || !d.dialable(m.Region, m.Addr) || d.crowded(m) {
		return false
	}
	d.forget(m.Addr, m.Region)
	most := maxIntroduced
	if !d.listed(m.Region) {
		most = regions.MaxOfCandidate
	}
	if len(r.introduced) >= most {
		r.introduced = r.introduced[1:]
	}
	r.introduced = append(r.introduced, m.Addr)
	return true
}

// crowded reports whether a member is one too many of an unlisted region.
func (d *directory) crowded(m gossip.Member) bool {
	r := d.regions[m.Region]
	return r != nil && !d.listed(m.Region) && len(r.lists) >= regions.MaxOfCandidate && r.lists[m.ID] == nil
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

// learned returns the region of an address that only peers reported, false for
// one of the settings.
func (d *directory) learned(addr string) (region string, ok bool) {
	for _, addrs := range d.contacts {
		if slices.Contains(addrs, addr) {
			return "", false
		}
	}
	for _, t := range d.targets() {
		if t.Addr == addr {
			return t.Region, true
		}
	}
	return d.self.Region, true
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
	learned := func(addr, region string) {
		if d.dialable(region, addr) {
			add(addr, region)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.regions)) { // the same each time
		r := d.regions[name]
		for _, addr := range r.introduced {
			learned(addr, name)
		}
		for _, m := range r.last {
			learned(m.Addr, name)
		}
	}
	for addr, h := range d.met { // its handshake names its region
		if _, wanted := byAddr[addr]; wanted {
			add(addr, h.Member.Region)
		}
	}
	for _, m := range d.own {
		learned(m.Addr, m.Region)
	}
	for name, addrs := range d.contacts {
		for _, addr := range addrs {
			add(addr, name)
		}
	}
	return slices.SortedFunc(maps.Values(byAddr), func(a, b link.Target) int { return cmp.Compare(a.Addr, b.Addr) })
}
