package sim

import (
	"slices"
	"time"

	"github.com/georld/rld/sticky/lease"

	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
)

// Listener is an auditor that also hears what daemons say about strict keys: Said
// is called for each message before it is sent, to oneself too.
type Listener interface {
	Said(w *World, d *Daemon, m *sticky.Message)
}

// Heeder is an auditor that also hears what nodes take in about strict keys: a
// message, or nil for a call that begins to wait.
type Heeder interface {
	Heeded(w *World, d *Daemon, shard int, m *sticky.Message)
}

// strictAuditor sees to it that homes keep to what others hold for them. It goes
// by what daemons say, as they say it:
//
//   - What a majority of a region's replicas voted for never goes back: who comes
//     with a later ballot, and is voted for by a majority, knew of it. Of its own
//     marks a home knows what it consumed, whatever became of the votes.
//   - What a home grants of a window is no more than a majority had voted for, and
//     what all homes granted of it and did not get back no more than the limit.
//   - Nobody votes for more of a window than there is.
//   - Nothing is answered that still waits, and nothing waits for longer than all
//     the homes that it may ask take.
type strictAuditor struct {
	watcher
	ledgers map[ledgerKey]*marked
	windows map[windowKey]*granted
	// sizes is how many replicas a region has, by the layouts that were seen.
	sizes  map[layoutKey]int
	swept  time.Duration
	latest int64 // of all label clocks so far, Unix ms
}

var (
	_ Listener = (*strictAuditor)(nil)
	_ Filler   = (*strictAuditor)(nil)
)

// layoutKey names a region's part in a layout.
type layoutKey struct {
	number uint64
	region int
}

// ledgerKey names what a region's replicas hold of a key.
type ledgerKey struct {
	key    crdt.Key
	region int
}

// marked is what a majority holds of a ledger.
type marked struct {
	ballot sticky.Ballot // the greatest that a majority voted for
	marks  []held        // what a majority held at some time, by label
	raises []raised      // the latest ones
}

// held is a mark and by whose raise it was made.
type held struct {
	sticky.Watermark
	by sticky.Ballot
}

// maxRaised bounds the raises of a ledger that are looked at: a home has few
// under way.
const maxRaised = 64

// raised is a raise and who voted for it.
type raised struct {
	ballot       sticky.Ballot
	seq          uint64
	known, marks []sticky.Watermark
	votes        []vote
	held         bool
}

// vote is that of a replica, and what it knew of the others' lives.
type vote struct {
	voter uint64
	lives []route.Generation
}

// windowKey names a window of a ledger: of a region's own, or wherever its homes
// are.
type windowKey struct {
	key    crdt.Key
	window int64
	region int
}

// granted is what homes gave of a window.
type granted struct {
	limit uint64
	end   int64
	to    []grantedTo
}

// grantedTo is what one home gave a holder.
type grantedTo struct {
	owner, holder   crdt.Incarnation
	total, returned uint64
}

func newStrictAuditor(b *books) *strictAuditor {
	return &strictAuditor{
		watcher: newWatcher("strict", b),
		ledgers: make(map[ledgerKey]*marked), windows: make(map[windowKey]*granted), sizes: make(map[layoutKey]int),
	}
}

// Decided checks that a decision was made, and counts what windows asked for.
func (a *strictAuditor) Decided(w *World, d *Decided) {
	a.watcher.Decided(w, d)
	if !d.Limit.Homed() || d.Rule == nil || d.Rule.Limit != d.Limit {
		return
	}
	if d.Status.Wait && d.Allowed {
		a.failed(w, "%s let %s pass, which waits for %v", d.Daemon.Name, RuleName(d.Rule), d.Status.Owner)
		return
	}
	a.passed(1)
}

// Said takes in what a daemon says.
func (a *strictAuditor) Said(w *World, d *Daemon, m *sticky.Message) {
	for i := range m.Requests {
		a.returned(w, &m.Requests[i])
	}
	for i := range m.Accepts {
		a.raise(d, &m.Accepts[i])
	}
	view := d.acceptor.Acceptor.Routing()
	a.sizes[layoutKey{view.Number(), d.RegionIndex}] = len(view.Voters())
	if len(m.Accepted) > 0 {
		a.follow(w)
	}
	for i := range m.Accepted {
		a.vote(w, d, m.Number, &m.Accepted[i])
	}
	for i := range m.Grants {
		a.grant(w, d, m.To, &m.Grants[i])
	}
	if w.now-a.swept > time.Second {
		a.swept = w.now
		a.sweep(a.books.clocks.slowest(w) - keepPages)
	}
}

func (a *strictAuditor) ledger(k crdt.Key, region int) *marked {
	id := ledgerKey{k, region}
	m := a.ledgers[id]
	if m == nil {
		m = &marked{}
		a.ledgers[id] = m
	}
	return m
}

// raise remembers what a home wants held.
func (a *strictAuditor) raise(d *Daemon, r *sticky.Accept) {
	led := a.ledger(r.Key, d.RegionIndex)
	if led.find(r.Ballot, r.Seq) != nil {
		return
	}
	if len(led.raises) >= maxRaised {
		led.raises = slices.Delete(led.raises, 0, 1)
	}
	led.raises = append(led.raises, raised{
		ballot: r.Ballot, seq: r.Seq, known: slices.Clone(r.Known), marks: slices.Clone(r.Watermarks),
	})
}

func (m *marked) find(b sticky.Ballot, seq uint64) *raised {
	for i := range m.raises {
		if r := &m.raises[i]; r.ballot == b && r.seq == seq {
			return r
		}
	}
	return nil
}

// vote counts a vote under the layout of a number. With a majority's the raise is
// held for ever.
func (a *strictAuditor) vote(w *World, d *Daemon, number uint64, v *sticky.Accepted) {
	led := a.ledger(v.Key, d.RegionIndex)
	r := led.find(v.Ballot, v.Seq)
	if r == nil || !v.OK || r.held {
		return
	}
	r.votes = slices.DeleteFunc(r.votes, func(o vote) bool { return o.voter == v.Voter })
	r.votes = append(r.votes, vote{v.Voter, slices.Clone(v.Generations)})
	if n := a.sizes[layoutKey{number, d.RegionIndex}]; n == 0 || r.count() <= n/2 {
		return
	}
	r.held = true
	if led.ballot.Less(r.ballot) {
		led.ballot = r.ballot
		for _, m := range led.marks {
			own := m.by.Owner == r.ballot.Owner && m.by.Term == r.ballot.Term
			if !own && m.End > a.latest && at(r.known, m.Window) < m.Amount {
				a.failed(w, "%v took over with ballot %v and knew of %d of the %d that a majority in %s held of label %d",
					r.ballot.Owner, r.ballot, at(r.known, m.Window), m.Amount, d.Region, m.Window)
				return
			}
		}
	}
	for _, m := range r.marks {
		led.join(m, r.ballot)
	}
	a.passed(1)
}

// count is how many of the votes count together: not those of an earlier life
// than another one knows of.
func (r *raised) count() int {
	n := 0
	for _, v := range r.votes {
		life, latest := lifeOf(v.lives, v.voter), uint64(0)
		for _, o := range r.votes {
			latest = max(latest, lifeOf(o.lives, v.voter))
		}
		if life >= latest {
			n++
		}
	}
	return n
}

func lifeOf(all []route.Generation, voter uint64) uint64 {
	for _, l := range all {
		if l.Voter == voter {
			return l.Generation
		}
	}
	return 0
}

// at is the amount of a label.
func at(marks []sticky.Watermark, window int64) uint64 {
	for _, m := range marks {
		if m.Window == window {
			return m.Amount
		}
	}
	return 0
}

// at is what a majority holds of a label.
func (m *marked) at(window int64) uint64 {
	for i := range m.marks {
		if m.marks[i].Window == window {
			return m.marks[i].Amount
		}
	}
	return 0
}

func (m *marked) join(o sticky.Watermark, by sticky.Ballot) {
	for i := range m.marks {
		if x := &m.marks[i]; x.Window == o.Window {
			if o.Amount > x.Amount {
				x.Amount, x.by = o.Amount, by
			}
			x.End = max(x.End, o.End)
			return
		}
	}
	m.marks = append(m.marks, held{o, by})
}

// returned takes in what a holder gives back.
func (a *strictAuditor) returned(w *World, ask *sticky.LeaseRequest) {
	if ask.Owner == 0 {
		return
	}
	for region := everybody; region < len(w.regions); region++ {
		if g := a.windows[windowKey{ask.Key, ask.Window, region}]; g != nil {
			to := g.of(ask.Owner, ask.Lessee)
			to.returned = max(to.returned, ask.Returned)
		}
	}
}

func (g *granted) of(owner, holder crdt.Incarnation) *grantedTo {
	for i := range g.to {
		if t := &g.to[i]; t.owner == owner && t.holder == holder {
			return t
		}
	}
	g.to = append(g.to, grantedTo{owner: owner, holder: holder})
	return &g.to[len(g.to)-1]
}

// grant checks what a home gives of a window.
func (a *strictAuditor) grant(w *World, d *Daemon, holder crdt.Incarnation, g *sticky.LeaseGrant) {
	l, regional := w.ledgerLimit(g)
	if g.Reason != sticky.NoReason || l == nil || !quota.Of(l).Windowed() {
		return
	}
	k := windowKey{g.Key, g.Window, everybody}
	if regional {
		k.region = d.RegionIndex
	}
	row := a.windows[k]
	if row == nil {
		row = &granted{end: g.Window + 2*l.Window()}
		a.windows[k] = row
	}
	row.limit = max(row.limit, quota.Of(l).Capacity())
	to := row.of(g.Owner, holder)
	if g.Total <= to.total {
		return
	}
	to.total = g.Total
	all, own := uint64(0), uint64(0)
	for _, t := range row.to {
		net := t.total - min(t.total, t.returned)
		all += net
		if t.owner == g.Owner {
			own += net
		}
	}
	// Whether each region has the ledger for itself the home's rules say, which may
	// not be the newest.
	held := max(a.ledger(g.Key, d.RegionIndex).at(g.Window),
		a.ledger(lease.WatermarksKey(g.Key, d.Region), d.RegionIndex).at(g.Window))
	switch {
	case all > row.limit && len(w.sets) == 1: // floors may be of another limit than the rest
		a.failed(w, "%s granted what makes %d of %d in label %d of %v", d.Name, all, row.limit, g.Window, g.Key)
	case own > held:
		a.failed(w, "%s granted %d in label %d of %v, and a majority holds %d", d.Name, own, g.Window, g.Key, held)
	default:
		a.passed(1)
	}
}

// follow keeps up with the label clock that was ever furthest ahead: what ended
// for it may be forgotten.
func (a *strictAuditor) follow(w *World) {
	for i, d := range w.daemons {
		a.latest = max(a.latest, d.clock.read(w.now)/int64(time.Millisecond))
		for s := range a.books.clocks.all[i] {
			l := &a.books.clocks.all[i][s]
			a.latest = max(a.latest, l.now+(w.now-l.at).Milliseconds())
		}
	}
}

// ledgerLimit is the limit of the ledger that a grant is of, the greatest of
// those in force somewhere, nil for none; and whether each region has its own.
func (w *World) ledgerLimit(g *sticky.LeaseGrant) (most *rules.Limit, regional bool) {
	for i := range w.sets {
		r := sharedRule(w.sets[i].set, g.Rule)
		if r == nil || !r.Limit.Homed() {
			continue
		}
		l := r.Limit.OwnerLimit(len(w.regions))
		if g.Reserve {
			l = r.Limit.ReserveLimit(len(w.regions))
		}
		regional = regional || g.Reserve || r.Limit.HomeInRegion()
		if most == nil || quota.Of(&l).Capacity() > quota.Of(most).Capacity() {
			most = &l
		}
	}
	return most, regional
}

// sweep forgets what is over for everybody.
func (a *strictAuditor) sweep(now int64) {
	for k, g := range a.windows {
		if g.end < now {
			delete(a.windows, k)
		}
	}
	for k, led := range a.ledgers {
		led.marks = slices.DeleteFunc(led.marks, func(m held) bool { return m.End < now })
		led.raises = slices.DeleteFunc(led.raises, func(r raised) bool {
			return !slices.ContainsFunc(r.marks, func(m sticky.Watermark) bool { return m.End >= now })
		})
		if len(led.marks) == 0 && len(led.raises) == 0 {
			delete(a.ledgers, k)
		}
	}
}

// Fill says how much more could have been admitted.
func (a *strictAuditor) Fill(r *Result) {
	if r.Strict == nil {
		return
	}
	could, missed := a.books.ledger.could, a.books.ledger.missed
	for _, b := range a.books.ledger.all {
		for _, p := range b.pages {
			c, m := under(b, p)
			could, missed = could+c, missed+m
		}
	}
	if could > 0 {
		r.Strict.UnderRatio = float64(missed) / float64(could)
	}
}

// under is what a page could have admitted, and what of it it did not.
func under(b *book, p *page) (could, missed uint64) {
	if b.rule == nil || b.rule.Limit == nil || !b.rule.Limit.Homed() || !quota.Of(b.rule.Limit).Resets() {
		return 0, 0
	}
	could = min(p.asked, uint64(b.rule.Limit.Requests))
	return could, could - min(could, p.admitted)
}
