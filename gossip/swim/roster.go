package swim

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/georld/rld/gossip"
)

// maxMembers bounds the list, the daemon itself included.
const maxMembers = 1000

// roster is the membership list, filled by the callbacks of memberlist. They
// run under memberlist's lock, so they do not block, and another goroutine
// reports the list.
type roster struct {
	name, region string
	refused      *refusals
	changed      chan struct{} // one signal covers any number of changes
	probes       probes
	// mute silences a daemon that lost its name: the others then forget it and
	// accept the holder of the name.
	mute atomic.Bool

	mu        sync.Mutex
	self      gossip.Member
	announced []byte            // the metadata of self that memberlist announces
	at        string            // membership address; "" until memberlist has set it
	alive     map[string]living // the others, by name
	claim     claim
}

// living is a member and its membership address.
type living struct {
	gossip.Member
	at string
}

// claim is the state of this daemon's claim of its name.
type claim struct {
	held   bool   // this daemon holds the name; until then other members are ignored
	holder string // membership address of the holder after the last round
	found  string // the same in the current round
}

// newRoster returns a list with self alone. It holds its name at once if there
// are no seeds to ask.
func newRoster(self gossip.Member, held bool, r *refusals) *roster {
	return &roster{
		name: self.Name, region: self.Region, refused: r,
		changed: make(chan struct{}, 1),
		self:    self,
		alive:   map[string]living{},
		probes:  probes{answered: time.Now()}, // the first one is not due before the next
		claim:   claim{held: held},
	}
}

// members returns the list, sorted by ID.
func (r *roster) members() []gossip.Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]gossip.Member, 0, 1+len(r.alive))
	out = append(out, r.self)
	for _, l := range r.alive {
		out = append(out, l.Member)
	}
	slices.SortFunc(out, func(a, b gossip.Member) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// addresses returns the membership addresses of the members, this daemon's
// included.
func (r *roster) addresses() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]bool{r.at: true}
	for _, l := range r.alive {
		out[l.at] = true
	}
	return out
}

// others returns the number of other members.
func (r *roster) others() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.alive)
}

// setReady reports whether the value changed.
func (r *roster) setReady(ready bool) bool {
	r.mu.Lock()
	news := r.self.Ready != ready
	r.self.Ready = ready
	r.mu.Unlock()
	if news {
		notify(r.changed)
	}
	return news
}

// setAt sets the address that memberlist announces.
func (r *roster) setAt(at string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = at
}

// ask begins a round of asking for the holder of the name.
func (r *roster) ask() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claim.found = ""
}

// take claims the name unless a holder was found since ask.
func (r *roster) take() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claim.held, r.claim.holder = r.claim.found == "", r.claim.found
	if r.claim.held {
		r.mute.Store(false)
	}
	return r.claim.held
}

// standing returns whether this daemon holds its name, and otherwise the
// holder, if known.
func (r *roster) standing() claim {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.claim
}

// notify puts a signal into a channel that holds one, unless it is there.
func notify(signal chan<- struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

// NodeMeta returns the metadata of this daemon for memberlist.
func (r *roster) NodeMeta(int) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return meta{Member: r.self, asking: !r.claim.held}.append(nil)
}

// isAnnounced reports whether memberlist announces the current metadata.
func (r *roster) isAnnounced() bool {
	want := r.NodeMeta(0)
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Equal(r.announced, want)
}

// NotifyMsg, GetBroadcasts, LocalState and MergeRemoteState would carry other
// data than the membership. They carry none here.
func (*roster) NotifyMsg([]byte) {}

// GetBroadcasts returns nothing.
func (*roster) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState returns nothing.
func (*roster) LocalState(bool) []byte { return nil }

// MergeRemoteState does nothing.
func (*roster) MergeRemoteState([]byte, bool) {}

// NotifyJoin is called when a member has joined or returned.
func (r *roster) NotifyJoin(n *memberlist.Node) { r.put(n) }

// NotifyUpdate is called when the metadata of a member changed.
func (r *roster) NotifyUpdate(n *memberlist.Node) { r.put(n) }

func (r *roster) put(n *memberlist.Node) {
	if n.Name == r.name {
		r.mu.Lock()
		r.announced = slices.Clone(n.Meta)
		r.mu.Unlock()
		return
	}
	m, err := decodeMeta(n.Meta) // a copy: no part of n is kept
	if err != nil {
		return
	}
	r.mu.Lock()
	m.Name = n.Name
	r.alive[n.Name] = living{Member: m.Member, at: addressOf(n)}
	r.mu.Unlock()
	notify(r.changed)
}

// NotifyLeave is called when a member has left or counts as dead.
func (r *roster) NotifyLeave(n *memberlist.Node) {
	r.probes.gone()
	r.mu.Lock()
	delete(r.alive, n.Name)
	r.mu.Unlock()
	notify(r.changed)
}

// NotifyAlive is called for every message about a live daemon, old or new. An
// error keeps it out of the list.
func (r *roster) NotifyAlive(n *memberlist.Node) error {
	at := addressOf(n)
	if n.Name == r.name && (r.ownAddress() == "" || at == r.ownAddress()) {
		return nil // this daemon, or a former incarnation that memberlist contradicts
	}
	if err := checkName(n.Name); err != nil {
		return r.malformed("", at, err)
	}
	m, err := decodeMeta(n.Meta)
	if err == nil && (len(n.Addr) != net.IPv4len && len(n.Addr) != net.IPv6len || n.Port == 0) {
		err = fmt.Errorf("membership address %s is not that of a host", at)
	}
	if err != nil {
		return r.malformed(n.Name, at, err)
	}
	if m.Region != r.region {
		r.refused.add(wrongRegion, m.Region+" "+n.Name, "name", n.Name, "at", at, "region", m.Region, "would be right", r.region)
		return fmt.Errorf("of region %q", m.Region)
	}
	return r.admit(n.Name, at, m.asking)
}

// malformed refuses a daemon whose metadata this release cannot decode.
func (r *roster) malformed(name, at string, err error) error {
	r.refused.add(badMetadata, at, "name", name, "at", at, "error", err)
	return err
}

// admit decides about a daemon of this region.
func (r *roster) admit(name, at string, asking bool) error {
	r.mu.Lock()
	held, now := r.claim.held, len(r.alive)
	l, known := r.alive[name]
	own := r.at
	r.mu.Unlock()
	switch {
	case asking:
		if name == r.name {
			r.taken(name, own, at)
		} else if known && l.at != at {
			r.taken(name, l.at, at)
		}
		return errAsking
	case !held:
		return errAsking
	case !known && name != r.name && now+1 >= maxMembers:
		r.refused.add(full, "", "name", name, "at", at, "members", now+1)
		return fmt.Errorf("%d members, there is no room for more", now+1)
	}
	return nil
}

// taken refuses a second daemon of one name.
func (r *roster) taken(name, holder, other string) {
	r.refused.add(nameTaken, name+" "+other, "name", name, "held by", holder, "claimed by", other)
}

// NotifyConflict is called when a live daemon claims the name of another at
// another address. memberlist keeps the present one.
func (r *roster) NotifyConflict(existing, other *memberlist.Node) {
	r.taken(existing.Name, addressOf(existing), addressOf(other))
}

// NotifyMerge receives the list of a daemon that joins, or that this one joins.
// Here a daemon learns that another has its name. The newcomer, which does not
// hold the name yet, yields. Two daemons that both hold it got it while they
// were partitioned: then one without other members yields to one that has some,
// and otherwise the one with the greater incarnation.
func (r *roster) NotifyMerge(peers []*memberlist.Node) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range peers {
		if n.Name != r.name || addressOf(n) == r.at || !alive(n) {
			continue
		}
		m, err := decodeMeta(n.Meta)
		if err != nil || m.Region != r.region || m.asking {
			continue
		}
		if !r.claim.held {
			r.claim.found = addressOf(n)
		} else if r.yields(peers, m) {
			r.claim = claim{holder: addressOf(n)}
			r.mute.Store(true)
		}
	}
	if !r.claim.held {
		return errAsking
	}
	return nil
}

// yields reports whether this daemon yields its name to another holder. Both
// come to the same result.
func (r *roster) yields(peers []*memberlist.Node, other meta) bool {
	alone, otherAlone := len(r.alive) == 0, !company(peers, r.region, r.name)
	if alone != otherAlone {
		return alone
	}
	return other.ID < r.self.ID
}

// company reports whether peers include a live daemon of the region other than
// name.
func company(peers []*memberlist.Node, region, name string) bool {
	return slices.ContainsFunc(peers, func(n *memberlist.Node) bool {
		m, err := decodeMeta(n.Meta)
		return n.Name != name && alive(n) && err == nil && m.Region == region && !m.asking
	})
}

func alive(n *memberlist.Node) bool {
	return n.State == memberlist.StateAlive || n.State == memberlist.StateSuspect
}

func (r *roster) ownAddress() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at
}

// addressOf returns the membership address of n.
func addressOf(n *memberlist.Node) string { return joinAddr(n.Addr, int(n.Port)) }

func joinAddr(ip net.IP, port int) string {
	return net.JoinHostPort(ip.String(), strconv.Itoa(port))
}

// NotifyPingComplete is called when a member has answered a probe.
func (r *roster) NotifyPingComplete(_ *memberlist.Node, rtt time.Duration, _ []byte) {
	r.probes.pong(rtt)
}

// AckPayload returns nothing.
func (*roster) AckPayload() []byte { return nil }
