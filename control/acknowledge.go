package control

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/rules"
)

// LimitsAgent is the part of a daemon in the limits of the log. It acknowledges
// the version that it has stored and that decides its calls (InUse), and the
// one that its region has. At the leader it brings limits into force that all
// regions have acknowledged. It is not safe for concurrent use.
//
// A daemon that was not counted must store the version before it holds rights.
// Each acknowledgement of the epoch that gives it rights contains the version
// that the acknowledging daemon has stored and uses (Sender.Stored). The
// joining daemon stores the greatest of these versions, and holds nothing
// before. So it has stored all that its region acknowledged before it was
// counted.
type LimitsAgent struct {
	node *Node
	// local are the rules of files, and whole is the union of each set of the
	// log with them.
	local  *rules.Set
	parsed map[string]*rules.Set // of the log, by hash and sizes
	whole  map[*rules.Set]*rules.Set
	// stored is the version of the record on disk, and used the latest one
	// whose limits decide calls.
	stored, used Version
	// former are the limits of records whose end a recovery dropped, the oldest
	// first. They count until all daemons have acknowledged the limits of the
	// recovery. over is true when that is in force for all windows.
	former []Limits
	over   bool
	// holders are the participants of the region that may hold rights,
	// ascending. They count beside the daemons of the membership.
	holders []uint64
	// reported is what the leader and a regional peer were sent, again when it
	// is sent again, and wait the time after that.
	reported    [2]Version
	again, wait time.Duration
	askAgain    time.Duration
	proposed    Number // the command that brings limits into force
	proposals   proposals
}

// maxParsed bounds the rule sets that are kept as rules.
const maxParsed = 2 * maxSteps

// maxFormer bounds the limits that recoveries dropped. Of more recoveries in a
// row, the latest one before the last is forgotten.
const maxFormer = 4

// begin prepares the agent of a node that starts with a record from its disk.
func (a *LimitsAgent) begin(n *Node, former []Limits) {
	none, err := rules.NewSet(nil)
	if err != nil {
		panic(fmt.Sprintf("control: no rules: %v", err)) // they have no fault
	}
	*a = LimitsAgent{node: n, local: none, parsed: map[string]*rules.Set{}, whole: map[*rules.Set]*rules.Set{}, former: former}
	if n.record != nil {
		a.stored = n.record.Version
	}
}

// Holders sets the daemons of the own region that may hold rights, as ID.Member
// returns them, in ascending order: the members of its settled daemon epoch and
// of all later ones. Limits come into force when all of them, and all live
// daemons of the region, have stored them. It is nil for a daemon that may not
// know all of them, which then states nothing for its region.
func (a *LimitsAgent) Holders(members []uint64) {
	if !slices.Equal(members, a.holders) {
		a.holders = slices.Clone(members)
		a.turn()
	}
}

// knowsHolders reports whether this daemon knows who holds rights in its
// region.
func (a *LimitsAgent) knowsHolders() bool {
	g := a.node.record.Region(a.node.cfg.Region)
	return !a.node.cfg.Holders || a.holders != nil || g == nil || len(g.Founders) == 0
}

// absent returns how many daemons may hold rights in the region that are not
// live.
func (a *LimitsAgent) absent() int {
	n, count := a.node, 0
	for _, m := range a.holders {
		is := func(p *peer) bool { return p.Region == n.cfg.Region && p.heardAt >= 0 && p.sender.ID.Member() == m }
		if m != n.self.id().Member() && !slices.ContainsFunc(n.peers, is) {
			count++
		}
	}
	return count
}

// Revision identifies all that Effective depends on, beside the time.
type Revision struct {
	record      *Record
	emergencies Number
}

// Revision returns the present revision.
func (a *LimitsAgent) Revision() Revision {
	return Revision{a.node.record, a.node.emergencies.digest}
}

// InUse states that the limits of Effective decide all later calls of this
// daemon. The record is the one that was there when Effective was called.
func (a *LimitsAgent) InUse(r *Record) {
	if r != nil && r.Version != a.used {
		a.used = r.Version
		a.turn()
	}
}

// has returns the version that this daemon acknowledges: the latest one that it
// has stored and uses.
func (a *LimitsAgent) has() Version {
	switch {
	case a.node.diverged:
		return Version{}
	case a.used.Compare(a.stored) < 0:
		return a.used
	}
	return a.stored
}

// Local sets the rules of the files of this daemon. They count in the domains
// that no set of the log has.
func (a *LimitsAgent) Local(set *rules.Set) {
	a.local = set
	clear(a.whole)
}

// with returns the rules of a set of the log, and of files in all other
// domains.
func (a *LimitsAgent) with(set *rules.Set) (*rules.Set, error) {
	if is := a.whole[set]; is != nil {
		return is, nil
	}
	is, err := rules.Union(set, a.local)
	if err != nil {
		return nil, err
	}
	if len(a.whole) >= maxParsed {
		clear(a.whole)
	}
	a.whole[set] = is
	return is, nil
}

// step returns the rules of a step, and of files in all other domains. Those
// before the first step are the ones of files.
func (a *LimitsAgent) step(l *Limits, i int) (*rules.Set, error) {
	if i < 0 {
		return a.local, nil
	}
	set, err := a.parse(l.Set(l.Steps[i].Set), l.Steps[i].Sizes)
	if err != nil {
		return nil, err
	}
	return a.with(set)
}

// DomainSource is the source of the rules of a domain.
type DomainSource struct {
	Domain string
	From   SupplierOf
	// Agreed: the log has the rules, by command or adopted from files.
	Agreed bool
	// Overruled reports that the files of this daemon have other rules of the
	// domain than the log, and do not count.
	Overruled bool
}

// Domains returns the domains of the latest rules of the log, and of the files
// of this daemon, by name.
func (a *LimitsAgent) Domains() ([]DomainSource, error) {
	set, err := a.latest()
	if err != nil {
		return nil, err
	}
	var all []DomainSource
	for _, name := range set.Domains() {
		overruled := a.local.Domain(name) != nil && !rules.SameDomain(set, a.local, name)
		all = append(all, DomainSource{name, a.node.record.Limits.SupplierOf(name), true, overruled})
	}
	for _, name := range a.local.Domains() {
		if set.Domain(name) == nil {
			all = append(all, DomainSource{Domain: name, From: SupplierLocal})
		}
	}
	slices.SortFunc(all, func(a, b DomainSource) int { return cmp.Compare(a.Domain, b.Domain) })
	return all, nil
}

// keep keeps the limits of a record whose end a recovery dropped. They survive
// a restart.
func (a *LimitsAgent) keep(l *Limits) {
	if len(l.Steps)+len(l.Overrides) == 0 {
		return
	}
	a.former = append(slices.Clone(a.former[:min(len(a.former), maxFormer-1)]), *l)
	a.over = false
	a.node.queue(stored{Former: &a.former})
}

// store notes the version of the record once it is stored.
func (a *LimitsAgent) store() {
	v := a.node.record.Version
	a.node.afterStore(func() {
		a.stored = v
		a.turn()
	})
}

// ofRegion returns the version that all daemons of the region acknowledge that
// may hold rights, zero if one of them is not known to.
func (a *LimitsAgent) ofRegion() Version {
	n, least := a.node, a.has()
	if !a.knowsHolders() || a.absent() > 0 {
		return Version{}
	}
	for _, p := range n.peers {
		if p.Region != n.cfg.Region {
			continue
		}
		switch v := p.sender.Stored; {
		case p.heardAt < 0 || v.Recovery != least.Recovery:
			least = Version{}
		case v.Compare(least) < 0:
			least = v
		}
	}
	return least
}

// waits returns what the leader waits for before a version of the limits can be
// in force: regions, and their daemons as far as it knows them.
func (a *LimitsAgent) waits(v Version) []string {
	n := a.node
	has := func(o Version) bool { return o.Recovery == v.Recovery && o.Index >= v.Index }
	var out []string
	for _, g := range n.record.Regions {
		acknowledged := g.Name == n.cfg.Region && has(a.ofRegion())
		live := g.Name == n.cfg.Region
		var late []string
		if live && !has(a.has()) {
			late = append(late, n.cfg.Name)
		}
		for _, p := range n.peers {
			if p.Region != g.Name {
				continue
			}
			live = true
			acknowledged = acknowledged || has(p.sender.Region)
			if !has(p.sender.Stored) {
				late = append(late, p.Name)
			}
		}
		switch {
		case acknowledged:
		case !live:
			out = append(out, fmt.Sprintf("region %s, of which no daemon is reached", g.Name))
		case len(late) > 0:
			slices.Sort(late)
			out = append(out, fmt.Sprintf("region %s: %s", g.Name, strings.Join(late, ", ")))
		default:
			out = append(out, fmt.Sprintf("region %s, in which a daemon that may hold rights is not reached: %s", g.Name, a.unreached(g.Name)))
		}
	}
	return out
}

// maxUnreached bounds the daemons that unreached names.
const maxUnreached = 3

// unreached names the daemons of a region that may hold rights and are not
// live, as far as this daemon heard them. Only the daemons of the region know
// all of them.
func (a *LimitsAgent) unreached(region string) string {
	n := a.node
	live := func(is func(*peer) bool) bool {
		return slices.ContainsFunc(n.peers, func(p *peer) bool { return p.Region == region && p.heardAt >= 0 && is(p) })
	}
	var names []string
	for _, id := range slices.SortedFunc(maps.Keys(n.rights.known), ID.Compare) {
		k := n.rights.known[id]
		holds := region != n.cfg.Region || slices.Contains(a.holders, id.Member())
		switch {
		case k.region != region || !holds || n.Dead(id) || live(func(p *peer) bool { return p.sender.ID == id }):
		case live(func(p *peer) bool { return p.Name == k.name }):
			names = append(names, fmt.Sprintf("%s, formerly %016x", k.name, id.Member()))
		default:
			names = append(names, k.name)
		}
	}
	if len(names) == 0 || len(names) > maxUnreached {
		return fmt.Sprintf("rld budget at a daemon of %s shows it", region)
	}
	return strings.Join(names, "; ")
}

// MaxWaits bounds the names of Sender.Waits.
const MaxWaits = 8

// waitsSent returns the part of waits that messages of the leader contain.
func (a *LimitsAgent) waitsSent(v Version) []string {
	all := a.waits(v)
	all = all[:min(len(all), MaxWaits)]
	for i := range all {
		all[i] = shorten(all[i], maxText/4)
	}
	return all
}

// Ask asks the leader what pending limits wait for: Status.Waits has the answer
// a round trip later. It asks once in Config.Retry at most.
func (a *LimitsAgent) Ask() {
	n := a.node
	p := n.byID(n.leader())
	if n.record == nil || n.leads() || p == nil || n.record.Limits.Pending() == (Version{}) || n.at < a.askAgain {
		return
	}
	a.askAgain = n.at + n.cfg.Retry
	n.send(p, Message{Ask: n.number()})
}

// turn reports the acknowledged version, and brings pending limits into force.
func (a *LimitsAgent) turn() {
	n := a.node
	if n.record == nil {
		return
	}
	if a.over {
		a.former, a.over = nil, false
		n.queue(stored{Former: &[]Limits{}})
	}
	a.adopt()
	v := n.record.Limits.Pending()
	if v == (Version{}) {
		a.reported, a.wait = [2]Version{}, 0
		return
	}
	if n.leads() {
		a.propose(v)
	} else {
		a.report(v)
	}
}

// report sends the acknowledged versions to the leader, and to the daemon of
// the region that collects them: at each change, and then less and less often.
func (a *LimitsAgent) report(v Version) {
	n, is := a.node, [2]Version{a.has(), a.ofRegion()}
	if is[0].Compare(v) < 0 || is == a.reported && n.at < a.again {
		return
	}
	if is != a.reported {
		a.wait = n.cfg.Retry
	} else {
		a.wait = min(2*a.wait, 32*n.cfg.Retry)
	}
	a.reported, a.again = is, n.at+a.wait
	leader := n.byID(n.leader())
	if leader != nil {
		n.send(leader, Message{})
	}
	for _, p := range n.peers { // ascending
		if p.Region == n.cfg.Region {
			if p != leader && p.Address < n.address {
				n.send(p, Message{})
			}
			break
		}
	}
}

// propose brings a version into force that all regions have stored.
func (a *LimitsAgent) propose(v Version) {
	n := a.node
	if !n.raft.complete() || n.requests.index(a.proposed) >= 0 || len(a.waits(v)) > 0 {
		return
	}
	a.proposed = n.number()
	r := Request{ID: a.proposed, Author: "control", Change: Change{Limits: &LimitsChange{InForce: &InForce{Version: v}}}}
	n.requests.own = append(n.requests.own, ownRequest{Request: r, due: n.at, silent: true})
	sendRequests(n)
}

// parse returns the rules of a set of the log.
func (a *LimitsAgent) parse(s *RuleSet, sizes []RegionSize) (*rules.Set, error) {
	n := a.node
	if n.cfg.Language.Parse == nil {
		return nil, errors.New("this daemon reads no rules: want one with limits")
	}
	name := fmt.Sprint(s.Hash, sizes)
	if is := a.parsed[name]; is != nil {
		return is, nil
	}
	files, err := s.Files()
	if err != nil {
		return nil, err
	}
	is, err := n.cfg.Language.Parse(files, sizes)
	if err != nil {
		return nil, err
	}
	if len(a.parsed) >= maxParsed {
		clear(a.parsed)
		clear(a.whole)
	}
	a.parsed[name] = is
	return is, nil
}
