package control

import (
	"cmp"
	"slices"
	"time"

	"github.com/georld/rld/sticky/route"
)

// LayoutAgent is the part of a daemon in the layouts of strict keys. It reports
// the state of the acceptor to the leader, which chooses the strict voters: it
// announces a layout, and makes it active once a majority of the voters of each
// region has copied the watermarks. It is not safe for concurrent use.
type LayoutAgent struct {
	node *Node
	own  *AcceptorReport
	pins []route.Pin

	// The last report sent to the leader, and when it is sent again.
	sent  AcceptorReport
	again time.Duration
	// wait is the time from one report to the next, or on the leader from one
	// command to the next: longer and longer in vain.
	wait time.Duration

	// Of the leader: when it looks next, its latest command, since when it
	// knows the newest layout, since when each daemon is there, and since when
	// a voter is not, by region and name.
	due       time.Duration
	proposed  Number
	newest    uint64
	newestAt  time.Duration
	there     map[[2]string]time.Duration
	notThere  map[[2]string]time.Duration
	leadsHere bool
}

// AcceptorReport is the state of an acceptor on disk.
type AcceptorReport struct {
	// Number and Log identify the newest layout that it has: it votes under no
	// earlier one.
	Number uint64    `json:"number,omitempty"`
	Log    route.Log `json:"log,omitzero"`
	// Copied reports that it has all watermarks that a voter of that layout
	// needs.
	Copied bool `json:"copied,omitempty"`
	// Failing reports that its disk fails: it votes no more.
	Failing bool `json:"failing,omitempty"`
	// Store is its store number: another one after each loss of its state.
	Store uint64 `json:"store,omitempty"`
	// Unknown is a layout that the newest one of the record does not cover: a
	// recovery dropped it. The next one must be copied from its voters, too.
	Unknown *route.Layout `json:"unknown,omitempty"`
}

// maxRefusedWait is how many heartbeats a leader waits at most before it
// proposes the next layout after one that was refused.
const maxRefusedWait = 32

// Layouts returns the part of the daemon in the layouts of strict keys.
func (n *Node) Layouts() *LayoutAgent { return &n.layouts }

// Report states the acceptor of this daemon, and the home regions that its
// rules name. It takes the pins over.
func (a *LayoutAgent) Report(r AcceptorReport, pins []route.Pin) {
	a.own, a.pins = &r, pins
}

// strictDaemon is a live daemon with an acceptor, as the leader knows it.
type strictDaemon struct {
	id           ID
	region, name string
	report       *AcceptorReport
	// fits reports that it may become a voter: it is durable, and stays.
	fits    bool
	leaving bool
}

// turn reports to the leader, or changes the layouts as the leader.
func (a *LayoutAgent) turn() {
	n := a.node
	if n.record == nil || !n.cfg.Layouts {
		return
	}
	if !n.leads() {
		a.leadsHere = false
		a.send()
		return
	}
	if n.at < a.due || !n.raft.complete() || n.requests.index(a.proposed) >= 0 {
		return
	}
	a.due = n.at + n.cfg.Heartbeat
	all := a.daemons()
	a.observe(all)
	c := a.next(all)
	if c == nil {
		return
	}
	// The record may refuse the next change for the reason of the latest one.
	if o := n.record.Outcome(a.proposed); o != nil && o.Refused != "" {
		a.wait = min(2*a.wait, maxRefusedWait*n.cfg.Heartbeat)
	} else {
		a.wait = n.cfg.Heartbeat
	}
	a.due, a.proposed = n.at+a.wait, n.number()
	r := Request{ID: a.proposed, Author: "control", Change: Change{Layouts: c}}
	n.requests.own = append(n.requests.own, ownRequest{Request: r, due: n.at, silent: true})
	sendRequests(n)
}

// send sends the report to the leader when it changed, and again less and less
// often while a layout is announced.
func (a *LayoutAgent) send() {
	n := a.node
	if a.own == nil || n.at < a.again && *a.own == a.sent {
		return
	}
	changed := *a.own != a.sent
	if !changed && n.record.Layouts.Announced == nil {
		return
	}
	p := n.byID(n.leader())
	if p == nil {
		return
	}
	a.wait = min(2*a.wait, 32*n.cfg.Retry)
	if changed {
		a.wait = n.cfg.Retry
	}
	a.sent, a.again = *a.own, n.at+a.wait
	n.send(p, Message{})
}

// daemons returns the live daemons with an acceptor, by region and name.
func (a *LayoutAgent) daemons() []strictDaemon {
	n := a.node
	var all []strictDaemon
	if a.own != nil && !a.own.Failing {
		all = append(all, strictDaemon{n.self.id(), n.cfg.Region, n.cfg.Name, a.own, n.cfg.Durable && !n.leaving && n.abstains == "", n.leaving})
	}
	for _, p := range n.peers {
		live := isLive(n, p) && p.version.Recovery == n.record.Version.Recovery
		if live && p.sender.Acceptor != nil && !p.sender.Acceptor.Failing && !n.Dead(p.sender.ID) {
			all = append(all, strictDaemon{p.sender.ID, p.Region, p.Name, p.sender.Acceptor, p.sender.Durable && !p.sender.Leaving, p.sender.Leaving})
		}
	}
	slices.SortStableFunc(all, func(a, b strictDaemon) int {
		return cmp.Or(cmp.Compare(a.region, b.region), cmp.Compare(a.name, b.name))
	})
	// Of two processes of one name, the state of neither is certain.
	return slices.DeleteFunc(all, func(d strictDaemon) bool {
		same := 0
		for i := range all {
			if all[i].region == d.region && all[i].name == d.name {
				same++
			}
		}
		return same > 1
	})
}

func findStrict(all []strictDaemon, region, name string) *strictDaemon {
	i := slices.IndexFunc(all, func(d strictDaemon) bool { return d.region == region && d.name == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// observe notes since when daemons are there, or voters are not.
func (a *LayoutAgent) observe(all []strictDaemon) {
	n := a.node
	if !a.leadsHere {
		a.leadsHere, a.there, a.notThere, a.newest, a.newestAt = true, nil, nil, 0, n.at
	}
	there, notThere := map[[2]string]time.Duration{}, map[[2]string]time.Duration{}
	for _, d := range all {
		if !d.fits {
			continue
		}
		key := [2]string{d.region, d.name}
		if since, ok := a.there[key]; ok {
			there[key] = since
		} else {
			there[key] = n.at
		}
	}
	if l := n.record.Layouts.Newest(); l != nil {
		if l.Number != a.newest {
			a.newest, a.newestAt = l.Number, n.at
		}
		for i := range l.Regions {
			for _, name := range l.Regions[i].Replicas {
				key := [2]string{l.Regions[i].Name, name}
				if findStrict(all, key[0], name) != nil {
					continue
				}
				if since, ok := a.notThere[key]; ok {
					notThere[key] = since
				} else {
					notThere[key] = n.at
				}
			}
		}
	}
	a.there, a.notThere = there, notThere
}

// next returns the change that is due, nil for none.
func (a *LayoutAgent) next(all []strictDaemon) *LayoutChange {
	n := a.node
	l, log := &n.record.Layouts, n.record.Version.Recovery.log()
	if is := l.Announced; is != nil && is.Log == log && a.copied(is, all) && (l.Active != nil || founded(n.record, is, all)) {
		return &LayoutChange{Activate: &Activation{Number: is.Number, From: n.wall + 2*n.cfg.MaxOffset.Milliseconds() + 1}}
	}
	want, forced := a.want(all)
	is := l.Newest()
	switch {
	case want == nil:
		return nil
	case is == nil || forced || is.Log != log:
	case sameVoters(want, is) && !a.lost(is, all), l.Announced != nil && n.at-a.newestAt < n.cfg.Stable:
		return nil
	}
	if want.Validate() != nil {
		return nil
	}
	if !a.reachesFormers(want, all) {
		a.due = n.at + n.cfg.Retry
		return nil
	}
	return &LayoutChange{Announce: want}
}

// copied reports whether a majority of the voters of each region has copied all
// that it needs for a layout.
func (a *LayoutAgent) copied(l *route.Layout, all []strictDaemon) bool {
	for i := range l.Regions {
		g, have := &l.Regions[i], 0
		for _, name := range g.Replicas {
			if d := findStrict(all, g.Name, name); d != nil && d.report.Copied && d.has(l) {
				have++
			}
		}
		if len(g.Replicas) > 0 && have < route.Majority(len(g.Replicas)) {
			return false
		}
	}
	return true
}

// has reports whether a layout is the newest one of the daemon, on its disk.
func (d *strictDaemon) has(l *route.Layout) bool {
	return d.report.Number == l.Number && d.report.Log == l.Log
}

// founded reports whether the first layout may become active. There is no
// former one whose voters would refuse that of another recovery, so the daemons
// that the regions of the founding began with take their place: a majority of
// them, or all whose ids are not dead.
func founded(r *Record, l *route.Layout, all []strictDaemon) bool {
	founders, dead, have := 0, 0, 0
	for i := range r.Regions {
		g := &r.Regions[i]
		if g.Generation != r.FirstGeneration() {
			continue
		}
		for _, id := range g.Founders {
			founders++
			if r.DeadID(id) != nil {
				dead++
			} else if slices.ContainsFunc(all, func(d strictDaemon) bool { return d.id == id && d.has(l) }) {
				have++
			}
		}
	}
	return 2*have > founders || have == founders-dead
}

// sameVoters reports whether two layouts place all keys alike.
func sameVoters(a, b *route.Layout) bool {
	return slices.Equal(a.Pins, b.Pins) && slices.EqualFunc(a.Regions, b.Regions, func(a, b route.Region) bool {
		return a.Name == b.Name && a.Weight == b.Weight && slices.Equal(a.Replicas, b.Replicas)
	})
}

// lost reports whether a voter of a layout lost its state, and has not copied
// that of all others for some time. Under the next layout it needs a majority.
func (a *LayoutAgent) lost(l *route.Layout, all []strictDaemon) bool {
	return slices.ContainsFunc(all, func(d strictDaemon) bool {
		since, ok := a.there[[2]string{d.region, d.name}]
		return ok && a.node.at-since >= a.node.cfg.Stable && slices.Contains(l.VotersOf(d.region), d.name) &&
			!d.report.Copied && d.report.Number == l.Number && d.report.Store != l.Generation(d.region, d.name)
	})
}

// want returns the layout that there should be, nil if that is not known yet.
// forced reports that another one must be announced also if it has the same
// voters: acceptors have layouts that the newest one does not cover.
func (a *LayoutAgent) want(all []strictDaemon) (l *route.Layout, forced bool) {
	n := a.node
	is := n.record.Layouts.Newest()
	l = &route.Layout{Number: 1, Log: n.record.Version.Recovery.log()}
	if is != nil {
		l.Number, l.Reserves = is.Number+1, is.Reserves
		l.Lost = slices.DeleteFunc(slices.Clone(is.Lost), func(x route.Loss) bool { return n.outlasted(x.From) <= n.wall })
	}
	var unknown []*route.Layout
	for _, d := range all {
		r := d.report
		if r.Number > maxLayout || r.Unknown != nil && (r.Unknown.Number > maxLayout || r.Unknown.Validate() != nil) {
			continue
		}
		if is == nil || r.Number > is.Number || r.Number == is.Number && r.Log != is.Log {
			forced = forced || is != nil
			l.Number = max(l.Number, r.Number+1)
		}
		if u := r.Unknown; u != nil && is != nil && !is.Covers(u) {
			forced = true
			l.Number = max(l.Number, u.Number+1)
			l.Reserves = mergeReserves(l.Reserves, u.Reserves)
			unknown = append(unknown, u)
		}
	}
	var lost []route.Loss
	l.Formers, lost = n.record.formers(unknown...)
	if lacks(l, lost) != nil {
		forced = true
		*l = l.WithLost(lost...)
	}
	for i := range n.record.Regions {
		g := &n.record.Regions[i]
		if g.Draining {
			continue
		}
		if is == nil && !a.complete(g, all) {
			return nil, false
		}
		next := route.Region{Name: g.Name, Weight: max(1, g.Weight/1_000), Replicas: a.choose(g.Name, is, all)}
		if len(next.Replicas) == 0 {
			continue
		}
		for _, name := range next.Replicas {
			next.Generations = next.Generations.With(route.Generation{Voter: route.NameHash(name), Generation: storeNumber(g.Name, name, is, all)})
		}
		l.Regions = append(l.Regions, next)
	}
	if len(l.Regions) == 0 {
		return nil, false
	}
	for _, p := range a.pins {
		if l.Region(p.Region) != nil {
			l.Pins = append(l.Pins, p)
		}
	}
	return l, forced
}

// mergeReserves adds numbers of reserves that are not there yet. Of two for the
// same windows the larger one stays, as each reserve is smaller by it, and the
// regions that either has as new.
func mergeReserves(all, more []route.Reserves) []route.Reserves {
	all = slices.Clone(all)
	for _, v := range more {
		if i := slices.IndexFunc(all, func(o route.Reserves) bool { return o.From == v.From }); i < 0 {
			all = append(all, v)
		} else {
			is := all[i]
			is.Regions = max(is.Regions, v.Regions)
			is.New = slices.Compact(slices.Sorted(slices.Values(slices.Concat(is.New, v.New))))
			all[i] = is
		}
	}
	slices.SortFunc(all, func(a, b route.Reserves) int { return cmp.Compare(a.From, b.From) })
	return all[max(0, len(all)-route.MaxReserves):]
}

// complete reports whether the daemons are there that a region began with, as
// many as vote, so that the first layout need not be replaced at once.
func (a *LayoutAgent) complete(g *Region, all []strictDaemon) bool {
	live := 0
	for _, d := range all {
		if d.region == g.Name && d.fits {
			live++
		}
	}
	return live >= min(len(g.Founders), fewVoters) || a.node.at-a.newestAt >= a.node.cfg.Stable
}

// storeNumber returns the store number of a voter, that of the layout before
// for one that is not there.
func storeNumber(region, name string, is *route.Layout, all []strictDaemon) uint64 {
	if d := findStrict(all, region, name); d != nil {
		return d.report.Store
	}
	if is == nil {
		return 0
	}
	return is.Generation(region, name)
}

// choose returns the strict voters of a region, in order: those of the layout
// that stay, and daemons that are there for some time. A voter that leaves or
// is gone is replaced by another daemon of the region; where there is none it
// keeps its place, unless fewer voters tolerate more losses.
func (a *LayoutAgent) choose(region string, is *route.Layout, all []strictDaemon) []string {
	n := a.node
	var kept, leaving, gone, fresh []string
	if is != nil {
		for _, name := range is.VotersOf(region) {
			switch d := findStrict(all, region, name); {
			case d == nil && n.record.Layouts.lostIn(region, is.Number) != nil: // for good
			case d == nil && a.gone(region, name):
				gone = append(gone, name)
			case d != nil && d.leaving:
				leaving = append(leaving, name)
			default:
				kept = append(kept, name)
			}
		}
	}
	now := len(kept) + len(leaving) + len(gone)
	wait := n.cfg.Stable
	if len(leaving) > 0 { // it waits for another voter
		wait /= handOverFaster
	}
	for _, d := range all {
		stable := is == nil || n.at-a.there[[2]string{region, d.name}] >= wait
		if d.region == region && d.fits && stable && (now == 0 || !slices.Contains(is.VotersOf(region), d.name)) {
			fresh = append(fresh, d.name)
		}
	}
	daemons := len(kept) + len(leaving) + len(fresh)
	votes := strictVoters(daemons)
	if votes < now && votes-route.Majority(votes) <= daemons-route.Majority(now) {
		votes = now
	}
	out := slices.Concat(kept, fresh, leaving, gone)
	out = out[:min(len(out), votes)]
	slices.Sort(out)
	return out
}

// handsOver reports whether a daemon that leaves may still lose its strict vote
// to another one: it has one, and a durable daemon of its region could take it.
func (a *LayoutAgent) handsOver() bool {
	n := a.node
	if !n.leaving || n.record == nil || n.leader() == (ID{}) {
		return false
	}
	l := n.record.Layouts.Newest()
	if l == nil || !slices.Contains(l.VotersOf(n.cfg.Region), n.cfg.Name) {
		return l != nil && n.record.Layouts.Announced != nil && slices.ContainsFunc(l.Formers, func(f route.Former) bool {
			return slices.ContainsFunc(f.Regions, func(g route.FormerRegion) bool {
				return g.Name == n.cfg.Region && slices.Contains(g.Replicas, n.cfg.Name)
			})
		}) // others copy from it
	}
	return slices.ContainsFunc(a.daemons(), func(d strictDaemon) bool {
		return d.region == n.cfg.Region && d.fits && !slices.Contains(l.VotersOf(d.region), d.name)
	})
}

// strictVoters returns how many of some daemons of a region vote.
func strictVoters(daemons int) int {
	switch {
	case daemons >= manyVoters:
		return manyVoters
	case daemons >= fewVoters:
		return fewVoters
	}
	return daemons
}

// gone reports whether a voter that is not there is to be replaced. While its
// layout is only announced, that is sooner.
func (a *LayoutAgent) gone(region, name string) bool {
	n := a.node
	since, ok := a.notThere[[2]string{region, name}]
	most := n.cfg.ReplaceAfter
	if n.record.Layouts.Announced != nil {
		most = n.cfg.Stable
	}
	return ok && n.at-since >= most
}
