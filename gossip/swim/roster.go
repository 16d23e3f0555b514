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

// roster is the membership list, kept by what memberlist calls it with. Those
// calls come under memberlist's lock: they do not wait, and the list is handed
// on elsewhere.
type roster struct {
	name, region string
	refused      *refusals
	changed      chan struct{} // one signal is enough for any number of changes
	probes       probes
	// mute keeps a daemon that lost its name from answering to it: the others
	// then forget it, and take the one that holds the name.
	mute atomic.Bool

	mu    sync.Mutex
	self  meta
	told  []byte            // of self, as memberlist tells it
	at    string            // membership address; "" until memberlist has said it
	alive map[string]living // the others, by name
	claim claim
}

// living is a member and its membership address.
type living struct {
	gossip.Member
	at string
}

// claim is how far this daemon has come in taking its name.
type claim struct {
	held   bool   // the name is ours; until then nobody is listened to
	holder string // membership address of who held it after the last round
	heard  string // the same in the round that is under way
}

// newRoster returns a list of self alone, which holds its name at once if
// there is nobody to ask.
func newRoster(self gossip.Member, held bool, r *refusals) *roster {
	return &roster{
		name: self.Name, region: self.Region, refused: r,
		changed: make(chan struct{}, 1),
		self:    metaOf(self),
		alive:   map[string]living{},
		probes:  probes{answered: time.Now()}, // the first one is not due before the next
		claim:   claim{held: held},
	}
}

// members returns the list, sorted.
func (r *roster) members() []gossip.Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]gossip.Member, 0, 1+len(r.alive))
	out = append(out, r.self.member(r.name))
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

// others returns how many members there are beside this daemon.
func (r *roster) others() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.alive)
}

// setReady reports whether that is news.
func (r *roster) setReady(ready bool) bool {
	r.mu.Lock()
	news := r.self.ready != ready
	r.self.ready = ready
	r.mu.Unlock()
	if news {
		r.signal()
	}
	return news
}

// setAt takes the address that memberlist tells others.
func (r *roster) setAt(at string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = at
}

// ask begins a round of questions after who holds the name.
func (r *roster) ask() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claim.heard = ""
}

// take takes the name unless a holder was heard of since ask.
func (r *roster) take() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claim.held, r.claim.holder = r.claim.heard == "", r.claim.heard
	if r.claim.held {
		r.mute.Store(false)
	}
	return r.claim.held
}

// standing returns whether the name is ours, and else who holds it, if known.
func (r *roster) standing() claim {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.claim
}

func (r *roster) signal() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// NodeMeta is what memberlist tells others of this daemon.
func (r *roster) NodeMeta(int) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.self
	m.asking = !r.claim.held
	return m.append(nil)
}

// isTold reports whether memberlist tells others what is true of this daemon.
func (r *roster) isTold() bool {
	want := r.NodeMeta(0)
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Equal(r.told, want)
}

// NotifyMsg, GetBroadcasts, LocalState and MergeRemoteState are memberlist's
// ways to carry more than membership. They carry nothing here.
func (*roster) NotifyMsg([]byte) {}

// GetBroadcasts returns nothing.
func (*roster) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState returns nothing.
func (*roster) LocalState(bool) []byte { return nil }

// MergeRemoteState does nothing.
func (*roster) MergeRemoteState([]byte, bool) {}

// NotifyJoin is called when a member has come, or come back.
func (r *roster) NotifyJoin(n *memberlist.Node) { r.put(n) }

// NotifyUpdate is called when a member says something new of itself.
func (r *roster) NotifyUpdate(n *memberlist.Node) { r.put(n) }

func (r *roster) put(n *memberlist.Node) {
	if n.Name == r.name {
		r.mu.Lock()
		r.told = slices.Clone(n.Meta)
		r.mu.Unlock()
		return
	}
	m, err := decodeMeta(n.Meta) // a copy: nothing of n is kept
	if err != nil {
		return
	}
	r.mu.Lock()
	r.alive[n.Name] = living{Member: m.member(n.Name), at: addressOf(n)}
	r.mu.Unlock()
	r.signal()
}

// NotifyLeave is called when a member has left or is held for dead.
func (r *roster) NotifyLeave(n *memberlist.Node) {
	r.probes.gone()
	r.mu.Lock()
	delete(r.alive, n.Name)
	r.mu.Unlock()
	r.signal()
}

// NotifyAlive is asked about every word of a living daemon, old or new. An
// error keeps it out of the list.
func (r *roster) NotifyAlive(n *memberlist.Node) error {
	at := addressOf(n)
	if n.Name == r.name && (r.ownAddress() == "" || at == r.ownAddress()) {
		return nil // this daemon, or one before it that memberlist contradicts
	}
	if err := checkText("name", n.Name, 1, maxName); err != nil {
		return r.malformed("", at, err)
	}
	m, err := decodeMeta(n.Meta)
	if err == nil && (len(n.Addr) != net.IPv4len && len(n.Addr) != net.IPv6len || n.Port == 0) {
		err = fmt.Errorf("membership address %s is not that of a host", at)
	}
	if err != nil {
		return r.malformed(n.Name, at, err)
	}
	if m.region != r.region {
		r.refused.add(wrongRegion, m.region+" "+n.Name, "name", n.Name, "at", at, "region", m.region, "would be right", r.region)
		return fmt.Errorf("of region %q", m.region)
	}
	return r.admit(n.Name, at, m.asking)
}

// malformed refuses who says what this release does not understand.
func (r *roster) malformed(name, at string, err error) error {
	r.refused.add(badMetadata, at, "name", name, "at", at, "error", err)
	return err
}

// admit decides on a daemon of this region.
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

// NotifyConflict is called when a living daemon claims the name of another at
// another address. memberlist keeps the one it has.
func (r *roster) NotifyConflict(existing, other *memberlist.Node) {
	r.taken(existing.Name, addressOf(existing), addressOf(other))
}

// NotifyMerge is shown the list of a daemon that is asked, or asks, to join.
// Here a daemon learns that another lives under its name. The newcomer gives
// way, which does not hold the name yet. Two that both hold it took it while
// they could not see each other: then one that is alone gives way to one that
// has company, and else the one with the greater slot.
func (r *roster) NotifyMerge(peers []*memberlist.Node) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range peers {
		if n.Name != r.name || addressOf(n) == r.at || !lives(n) {
			continue
		}
		m, err := decodeMeta(n.Meta)
		if err != nil || m.region != r.region || m.asking {
			continue
		}
		if !r.claim.held {
			r.claim.heard = addressOf(n)
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

// yields reports whether this daemon gives its name up to another that holds
// it as well. Both come to the same conclusion.
func (r *roster) yields(peers []*memberlist.Node, other meta) bool {
	alone, otherAlone := len(r.alive) == 0, !company(peers, r.region, r.name)
	if alone != otherAlone {
		return alone
	}
	return other.id < r.self.id
}

// company reports whether somebody of the region other than name lives among
// peers.
func company(peers []*memberlist.Node, region, name string) bool {
	return slices.ContainsFunc(peers, func(n *memberlist.Node) bool {
		m, err := decodeMeta(n.Meta)
		return n.Name != name && lives(n) && err == nil && m.region == region && !m.asking
	})
}

func lives(n *memberlist.Node) bool {
	return n.State == memberlist.StateAlive || n.State == memberlist.StateSuspect
}

func (r *roster) ownAddress() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at
}

// addressOf is where the membership of n listens.
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
