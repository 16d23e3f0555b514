package transfer

import (
	"fmt"
	"math"
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
)

// The actions of the daemons of a world.

func (w *world) ms() int64 { return w.now / 1000 }

func (w *world) left() int64 { return (w.window+1)*w.windowMS - w.ms() }

func (w *world) region(d int) int { return d / w.daemons }

// aggregator is the daemon that speaks for a region.
func (w *world) aggregator(r int) int { return r * w.daemons }

func (w *world) rights(d int) uint64 { return sat.Sub(w.daemon[d].held, w.daemon[d].used) }

// terms are those of a region and the way to another.
func (w *world) terms() Policy {
	return Policy{Entity: w.entity, Budget: w.budget, WindowMS: w.windowMS, DelayMS: w.wanMS}
}

func (w *world) own(d int) DonorState {
	rates := &w.daemon[d].rates
	return DonorState{w.rights(d), rates.Recent(w.ms()), rates.Second(w.ms())}
}

func (w *world) handle(e *event) {
	switch e.kind {
	case evHit:
		w.hit(e.to)
		return
	case evPush:
		w.push(e.to)
		return
	case evWAN:
		w.publish(e.to)
		return
	}
	if e.window != w.window {
		return // Rights belong to a window.
	}
	switch e.kind {
	case evPushed:
		w.pushed(e)
	case evFrame:
		w.framed(e)
	case evAsk:
		w.give(e)
	case evAnswer:
		w.receive(e.to, e.from, e.v)
		d := &w.daemon[e.to]
		v := &d.views[e.from%w.daemons]
		v.held = v.used + e.snap.held
		d.asker.Answer(w.ms(), crdt.Incarnation(e.from+1), e.w)
		w.ask(e.to)
	case evShortage:
		w.collect(e)
	case evCollect:
		if n := honor(e.v, w.own(e.to)); n > 0 {
			w.transferTo(e.to, w.aggregator(int(e.w)), n)
		}
	case evTransfer:
		w.transfer(e)
	case evCharge:
		w.charge(e.from, e.to, e.v)
	}
}

// hit is one request to a region: two gates, then perhaps a transfer request.
func (w *world) hit(r int) {
	w.at(event{at: w.source[r].next(w.now), kind: evHit, to: r})
	rank := w.daemons - 1
	if !w.pinned {
		rank = w.rng.IntN(w.daemons)
	}
	id := r*w.daemons + rank
	d := &w.daemon[id]
	d.rates.Offer(w.ms(), 1)
	w.demand++
	w.res.decisions++
	if w.rights(id) > 0 && w.estimate(id) < w.limit {
		d.used++
		w.admitted++
		if w.admitted > w.share*regions {
			w.breach("admitted %d of %d", w.admitted, w.share*regions)
		}
	}
	w.ask(id)
	w.short(r, id)
}

func (w *world) breach(format string, args ...any) {
	if w.res.broken == "" {
		w.res.broken = fmt.Sprintf("%v: at %d us: ", w.setup, w.now) + fmt.Sprintf(format, args...)
	}
}

// estimate is the count of the estimate gate: own hits, those of regional peers
// as merged, and those of regions as merged and extrapolated for at most three
// lags.
func (w *world) estimate(id int) uint64 {
	d, r := &w.daemon[id], w.region(id)
	sum := d.used
	for k := range d.views {
		if k != id%w.daemons {
			sum += d.views[k].used
		}
	}
	for q := range regions {
		if v := &w.remotes[r][q]; q != r {
			age := min(w.now-v.taken, 3*w.lagMS*1000)
			sum += v.used + min(uint64(max(0, v.slope*float64(age))), v.region.Available)
		}
	}
	return sum
}

// ask requests rights of a regional peer if the policy does.
func (w *world) ask(id int) {
	d := &w.daemon[id]
	if w.variant == none || w.daemons == 1 {
		return
	}
	want := Need{
		Entity: w.entity, Recent: d.rates.Recent(w.ms()), Second: d.rates.Second(w.ms()), Rights: w.rights(id), Held: d.held, Limit: w.limit,
	}
	want.Ahead = Ahead(w.left(), Rate(want.Recent, want.Second))
	if w.variant == noisy {
		want.Recent = max(want.Recent, 10)
	}
	if !d.asker.Ready(w.ms(), want) {
		return
	}
	if want.Estimate = w.estimate(id); !d.asker.Ready(w.ms(), want) {
		return
	}
	w.peers = w.peers[:0]
	for k, v := range d.views {
		w.peers = append(w.peers, Peer{ID: crdt.Incarnation(w.region(id)*w.daemons + k + 1), Held: v.held, Used: v.used, Rate: v.second})
	}
	if to, ok := d.asker.Pick(w.ms(), want, crdt.Incarnation(id+1), w.peers); ok {
		w.send(event{kind: evAsk, from: id, to: int(to - 1), request: Request{w.rights(id), want.Second, want.Hits()}})
	}
}

// give replies to a request.
func (w *world) give(e *event) {
	d := &w.daemon[e.to]
	v := &d.views[e.from%w.daemons]
	v.held = v.used + e.request.Rights
	n := d.giver.Transfer(w.ms(), w.own(e.to), e.request)
	w.charge(e.to, e.from, n)
	w.send(event{
		kind: evAnswer, from: e.to, to: e.from, v: d.given[e.from], w: n,
		snap: &snap{held: w.rights(e.to)},
	})
}

// charge charges n to the donor's account.
func (w *world) charge(from, to int, n uint64) {
	d := &w.daemon[from]
	if w.variant != uncharged && n > w.rights(from) {
		w.breach("daemon %d gives %d of %d", from, n, w.rights(from))
	}
	d.given[to] += n
	w.res.moved += n
	d.held = sat.Sub(d.held, n)
	d.sent = nil
}

// transferTo transfers n rights to a daemon without a request.
func (w *world) transferTo(from, to int, n uint64) {
	e := event{kind: evTransfer, from: from, to: to}
	if w.variant == uncharged && w.region(from) != w.region(to) {
		e.v = w.daemon[from].given[to] + n
		w.send(e)
		w.at(event{at: w.now + w.wanMS*1000, kind: evCharge, from: from, to: to, v: n})
		return
	}
	w.charge(from, to, n)
	e.v = w.daemon[from].given[to]
	w.send(e)
}

// receive merges the total that a donor has given.
func (w *world) receive(to, from int, given uint64) (gain uint64) {
	d := &w.daemon[to]
	if given <= d.got[from] {
		return 0
	}
	gain = given - d.got[from]
	d.got[from] = given
	d.held += gain
	w.audit()
	return gain
}

// audit looks whether there are more rights than were made.
func (w *world) audit() {
	var sum uint64
	for i := range w.daemon {
		sum += w.daemon[i].held
	}
	if sum > w.share*regions && w.variant != uncharged { // That variant must be found by its admissions.
		w.breach("%d rights of %d", sum, w.share*regions)
	}
}

// transfer receives rights; an aggregator splits those from another region.
func (w *world) transfer(e *event) {
	n := w.receive(e.to, e.from, e.v)
	r := w.region(e.to)
	if e.to != w.aggregator(r) || r == w.region(e.from) || n == 0 || w.daemons == 1 {
		return
	}
	for k := range w.daemons {
		w.weights[k] = w.view(e.to, k).second
	}
	split(n, w.weights, w.amounts)
	for k, amount := range w.amounts {
		if k > 0 && amount > 0 {
			w.daemon[e.to].views[k].held += amount
			w.transferTo(e.to, e.to+k, amount)
		}
	}
}

// view is what daemon id knows of rank k of its region.
func (w *world) view(id, k int) snap {
	d := &w.daemon[id]
	if id%w.daemons == k {
		return snap{d.held, d.used, d.rates.Recent(w.ms()), d.rates.Second(w.ms()), nil}
	}
	return d.views[k]
}

// summed is what an aggregator knows of its region.
func (w *world) summed(r int) (g Region, used uint64) {
	var h, q uint64
	for k := range w.daemons {
		v := w.view(w.aggregator(r), k)
		g.Available += sat.Sub(v.held, v.used)
		used += v.used
		h, q = h+v.recent, q+v.second
	}
	g.Allotment, g.Offered = w.share, Rate(h, q)
	return g, used
}

// short announces the shortage of a region, if id is its aggregator.
func (w *world) short(r, id int) {
	if w.variant == none || id != w.aggregator(r) {
		return
	}
	g, _ := w.summed(r)
	if !w.terms().Short(w.left(), g) {
		return
	}
	room := sat.Sub(w.limit, w.estimate(id))
	need, ok := w.shortage[r].Announce(w.ms(), w.terms(), w.left(), g, room)
	if !ok {
		return
	}
	for q := range regions {
		if q != r {
			w.send(event{kind: evShortage, from: r, to: q, request: Request{g.Available, g.Offered, need}})
		}
	}
}

// spare returns the spare rights of a region.
func (w *world) spare(g Region) uint64 {
	if w.variant == floorless { // The heuristic that lost: all but one's current traffic.
		return sat.Sub(g.Available, g.Offered/10)
	}
	return w.terms().Spare(w.left(), g)
}

// collect is the reply of a region to another's shortage.
func (w *world) collect(e *event) {
	g, _ := w.summed(e.to)
	mine := w.spare(g)
	var others uint64
	for q := range regions {
		if q != e.to && q != e.from {
			others += w.spare(w.remotes[e.to][q].region)
		}
	}
	n := w.terms().Transfer(g, e.request, mine, others)
	w.rows = w.rows[:0]
	agg := w.aggregator(e.to)
	for k := range w.daemons {
		v := w.view(agg, k)
		w.rows = append(w.rows, DonorState{sat.Sub(v.held, v.used), v.recent, v.second})
	}
	collect(n, w.rows, w.amounts)
	for k, amount := range w.amounts {
		switch {
		case amount == 0:
		case k == 0:
			w.transferTo(agg, w.aggregator(e.from), amount)
		default:
			w.daemon[agg].views[k].held -= amount
			w.send(event{kind: evCollect, from: agg, to: agg + k, v: amount, w: uint64(e.from)})
		}
	}
}

// push sends a daemon's account to its regional peers and checks its need.
func (w *world) push(id int) {
	w.at(event{at: w.now + pushGap, kind: evPush, to: id})
	w.ask(id)
	w.short(w.region(id), id)
	if w.daemons == 1 {
		return
	}
	v := w.view(id, id%w.daemons)
	v.given = w.row(id)
	w.deliver(event{kind: evPushed, from: id, to: id, snap: &v}, 0)
}

// row returns a copy of the rights a daemon has given, for messages.
func (w *world) row(id int) []uint64 {
	d := &w.daemon[id]
	if d.sent == nil {
		d.sent = slices.Clone(d.given)
	}
	return d.sent
}

// pushed merges a peer's account in all daemons of the region.
func (w *world) pushed(e *event) {
	r := w.region(e.from)
	for k := range w.daemons {
		if to := r*w.daemons + k; to != e.from {
			w.daemon[to].views[e.from%w.daemons] = *e.snap
			w.merge(to, e.from, e.snap.given[to])
		}
	}
	w.short(r, w.aggregator(r))
}

// merge merges the total that a donor has given, from gossip.
func (w *world) merge(to, from int, given uint64) {
	if d := &w.daemon[to]; w.variant == twice && given > d.merged[from] {
		d.held += given - d.merged[from]
		d.merged[from] = given
		w.audit()
		return
	}
	w.receive(to, from, given)
}

// publish sends a region's frame to the others.
func (w *world) publish(r int) {
	w.at(event{at: w.now + wanGap, kind: evWAN, to: r})
	f := &frame{taken: w.now}
	f.region, f.used = w.summed(r)
	for k := range w.daemons {
		f.given = append(f.given, w.row(w.aggregator(r)+k))
	}
	for q := range regions {
		if q != r {
			w.deliver(event{kind: evFrame, from: r, to: q, frame: f}, max(w.lagMS-wanGap/2000, 1))
		}
	}
}

// framed merges a region's frame.
func (w *world) framed(e *event) {
	v, f := &w.remotes[e.to][e.from], e.frame
	for k, row := range f.given {
		for to := w.aggregator(e.to); to < w.aggregator(e.to+1); to++ {
			w.merge(to, w.aggregator(e.from)+k, row[to])
		}
	}
	if f.taken <= v.taken {
		return
	}
	v.slope = math.Max(0, float64(f.used)-float64(v.used)) / float64(max(f.taken-v.taken, wanGap))
	v.taken, v.used, v.region = f.taken, f.used, f.region
}
