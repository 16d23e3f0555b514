package transfer

import (
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/sat"
)

// Key is one daemon's part in the transfers of rights to one key. Its methods
// decide; the caller carries out the returned Output. It is not safe for
// concurrent use.
type Key struct {
	rates  Rates
	since  int64 // Monotonic milliseconds; rates count later hits only.
	window int64 // The window that given belongs to.
	given  uint64

	requester *Requester // nil until the first request
	donor     Donor
	shortage  Shortage
	reported  int64 // When this daemon last reported its need.
	reviewed  int64 // When this aggregator last reviewed its region.
	needs     []reportedNeed
	outlook   *outlook // nil where transfers are in time
}

// reportedNeed is the need that a daemon of the region reported.
type reportedNeed struct {
	from   crdt.Incarnation
	second uint64 // Offered hits of its last second.
	at     int64
}

// Pauses and memory of a Key, in milliseconds.
const (
	// reportMS is the least time between two reports of need to an aggregator,
	// which receives the counts besides.
	reportMS = 2 * TickMS
	// reviewMS is the least time between two reviews of a region: one takes a
	// few microseconds, and in a flood every denied hit asks for one.
	reviewMS = 10
	// needMS is how long a reported need is remembered.
	needMS = 1_000
)

// maxNeeds bounds the remembered needs of a region's daemons.
const maxNeeds = 64

// Input is the state of a key at this daemon at the time of a call.
type Input struct {
	Now       int64  // Monotonic time, in milliseconds.
	Window    int64  // Start of the window, in Unix milliseconds.
	ElapsedMS int64  // Time since the start of the window.
	Policy    Policy // Of the rule; DelayMS is not used.
	Regional  bool   // Each region counts for itself: none helps another.
	Limit     uint64 // Of the rule, without its overage budget.
	Rights    uint64 // Rights left to this daemon.
	Used      uint64 // Rights used in the window, with those transferred away.
	Estimate  uint64 // Hits that all daemons are estimated to have admitted.

	Self, Aggregator crdt.Incarnation // Aggregator of the own region, 0 for none.
	Region           string           // The own region.
	View             View
}

// View reads the daemon's view of other daemons for the key and window of an
// Input. Returned slices are valid until the next call of the same method.
type View interface {
	// Peers returns the other daemons of the region.
	Peers() []Peer
	// Regions returns the other regions.
	Regions() []gossip.RemoteRegion
	// Allotment returns the rights a region starts the window with.
	Allotment(region string) uint64
}

// Sender is the daemon that a message or a transfer comes from.
type Sender struct {
	ID     crdt.Incarnation
	Remote bool          // Of another region.
	RTT    time.Duration // Round trip, -1 for unknown.
}

// Output is the work for the caller: first the transfers, then the messages.
type Output struct {
	Transfers []Transfer
	Messages  []Message
	// Wake is the monotonic time, in milliseconds, to call Review at, 0 for
	// none.
	Wake int64
	// Keep is set if the Key remembers something of use for the next windows.
	Keep bool
}

// Transfer moves rights to another daemon. The caller transfers at most the
// rights it still has, charges them to its account and calls Transferred. If it
// transfers nothing in reply to a request, it sends Refusal instead.
type Transfer struct {
	To    crdt.Incarnation
	Hits  uint64
	Reply bool // Replies to a request.
}

// Message is a rights message for one daemon. The caller sets its key and rule.
type Message struct {
	To crdt.Incarnation
	gossip.RightsMessage
}

// send adds a message.
func (o *Output) send(to crdt.Incarnation, m gossip.RightsMessage) {
	o.Messages = append(o.Messages, Message{to, m})
}

// New returns a Key whose rates count from now on. given are the rights
// transferred away in window, and used the hits admitted in it. Those count as
// offered just now, as they were in a burst: a key that was idle has a new Key
// when a burst begins.
func New(now, window int64, given, used uint64) Key {
	k := Key{since: now, window: window, given: given}
	k.rates.Offer(now, used)
	return k
}

// Offer counts hits offered to this daemon at now, admitted or denied.
func (k *Key) Offer(now int64, hits uint64) {
	k.rates.Offer(now, hits)
	if k.outlook != nil {
		k.outlook.offers = sat.Add(k.outlook.offers, hits)
	}
}

// Transferred counts rights that were transferred away in a window.
func (k *Key) Transferred(window int64, hits uint64) {
	if k.window != window {
		k.window, k.given = window, 0
	}
	k.given = sat.Add(k.given, hits)
}

// admitted returns the hits admitted in the window.
func (k *Key) admitted(in *Input) uint64 {
	if k.window != in.Window {
		return in.Used
	}
	return sat.Sub(in.Used, k.given)
}

// aggregates reports whether this daemon is the aggregator of its region.
func (in *Input) aggregates() bool { return in.Aggregator == in.Self }

// leftMS returns the rest of the window in milliseconds.
func (in *Input) leftMS() int64 { return in.Policy.WindowMS - in.ElapsedMS }

// policy returns the policy for a path with a round trip, -1 for unknown.
func (in *Input) policy(rtt time.Duration) Policy {
	p := in.Policy
	p.DelayMS = max(0, rtt.Milliseconds()) / 2
	return p
}

// message returns a message of a kind with the state of this daemon.
func (k *Key) message(in *Input, kind gossip.RightsMessageKind) gossip.RightsMessage {
	return gossip.RightsMessage{Kind: kind, Window: in.Window, Rights: in.Rights, Second: k.rates.Second(in.Now)}
}

// Refusal returns the reply to a request that is not met.
func (k *Key) Refusal(in *Input) gossip.RightsMessage { return k.message(in, gossip.TransferRefusal) }

// Check requests rights if this daemon is about to run short of them: of a
// regional peer directly, and through the aggregator of the region. Call it
// after Offer.
func (k *Key) Check(in *Input) (out Output) {
	need := Need{
		Entity: in.Policy.Entity, Recent: k.rates.Recent(in.Now), Second: k.rates.Second(in.Now), Rights: in.Rights,
		Held: sat.Add(in.Rights, k.admitted(in)), Limit: in.Limit, Estimate: in.Estimate,
	}
	need.Ahead = Ahead(in.leftMS(), need.Second)
	if in.aggregates() {
		out = k.Review(in)
	}
	hits := need.Hits()
	if hits == 0 {
		return out
	}
	if k.requester == nil {
		k.requester = new(Requester)
	}
	if k.requester.Ready(in.Now, need) {
		if to, ok := k.requester.Pick(in.Now, need, in.Self, in.View.Peers()); ok {
			m := k.message(in, gossip.TransferRequest)
			m.Need = hits
			out.send(to, m)
		}
	}
	if !in.aggregates() && in.Now-k.reported >= reportMS {
		k.reported = in.Now
		out.send(in.Aggregator, k.message(in, gossip.NeedReport))
	}
	return out
}

// Review lets the aggregator of a region check whether the region runs short,
// which may happen before any of its daemons does. It does nothing at another
// daemon, and only meets expected shortages within reviewMS after the last
// review.
func (k *Key) Review(in *Input) (out Output) {
	if k.outlook != nil {
		k.meet(in, &out)
	}
	if in.aggregates() && (in.Now-k.reviewed >= reviewMS || in.Now < k.reviewed) {
		k.reviewed = in.Now
		k.announce(in, &out)
	}
	return out
}

// announce sends a shortage of the own region to the other regions.
func (k *Key) announce(in *Input, out *Output) {
	if in.Regional {
		return
	}
	regions, rtt := in.View.Regions(), time.Duration(0)
	for i := range regions {
		if !regions[i].Silent {
			rtt = max(rtt, regions[i].RTT)
		}
	}
	all, _, _ := k.region(in)
	policy := in.policy(rtt)
	if k.outlook != nil || !policy.Open() {
		k.foresee(in, policy, all, regions, out)
	}
	need, ok := k.shortage.Announce(in.Now, policy, in.leftMS(), all, sat.Sub(in.Limit, in.Estimate))
	if !ok {
		return
	}
	m := k.message(in, gossip.ShortageNotice)
	m.Rights, m.Second, m.Need = all.Available, all.Offered, need
	for i := range regions {
		if r := &regions[i]; !r.Silent && r.Aggregator != 0 {
			out.send(r.Aggregator, m)
		}
	}
}

// region returns the sums over the own region, and the states of its daemons
// that are not silent with their ids, this daemon first. The rights of a silent
// daemon do not count, since it may have used them. The hits of a daemon's last
// second are those of Policy.recentMS.
func (k *Key) region(in *Input) (all Region, rows []DonorState, ids []crdt.Incarnation) {
	own := k.own(in)
	k.expireNeeds(in.Now)
	rows, ids = append(rows, k.recent(in, own)), append(ids, in.Self)
	all = Region{
		Allotment: in.View.Allotment(in.Region), Available: own.Rights, Offered: k.offered(in, own),
	}
	for _, p := range in.View.Peers() {
		row := DonorState{Rights: p.rights(), Recent: p.Rate / 5, Second: p.Rate}
		for _, n := range k.needs {
			if n.from == p.ID {
				row.Second = max(row.Second, n.second)
			}
		}
		all.Offered = sat.Add(all.Offered, row.Second)
		if p.Silent {
			continue
		}
		all.Available = sat.Add(all.Available, row.Rights)
		row.Second = demand(row.Second, in.Policy.recentMS())
		rows, ids = append(rows, row), append(ids, p.ID)
	}
	return all, rows, ids
}

// offered returns the rate that this daemon counts with in its region, in hits
// per second.
func (k *Key) offered(in *Input, own DonorState) uint64 {
	if !in.Policy.brief() {
		return Rate(own.Recent, own.Second)
	}
	within := k.rates.Within(in.Now, in.Policy.recentMS())
	return max(Rate(own.Recent, within), k.rates.Burst(in.Now))
}

// recent returns a state of this daemon with the hits of Policy.recentMS in
// place of those of its last second.
func (k *Key) recent(in *Input, own DonorState) DonorState {
	if in.Policy.brief() {
		ms := in.Policy.recentMS()
		own.Second = min(own.Second, demand(k.rates.Within(in.Now, ms), ms))
	}
	return own
}

// own returns this daemon's state as a donor. For the part of the last second
// before since it uses the average of the window.
func (k *Key) own(in *Input) DonorState {
	o := DonorState{Rights: in.Rights, Recent: k.rates.Recent(in.Now), Second: k.rates.Second(in.Now)}
	if in.Now-k.since < 1000 {
		average := k.admitted(in) * 1000 / uint64(max(1000, in.ElapsedMS))
		o.Second = max(o.Second, average)
		o.Recent = max(o.Recent, average/5)
	}
	return o
}

// Step handles a message of another daemon about the key and window of in, or a
// ShortageNotice about the next window. in.Estimate is used for a NeedReport
// only.
func (k *Key) Step(in *Input, from Sender, m *gossip.RightsMessage) (out Output) {
	switch {
	case m.Kind == gossip.TransferRequest:
		hits := k.donor.Transfer(in.Now, k.own(in), requestOf(m))
		out.Transfers = append(out.Transfers, Transfer{To: from.ID, Hits: hits, Reply: true})
	case m.Kind == gossip.TransferRefusal && k.requester != nil:
		k.requester.Answer(in.Now, from.ID, 0)
	case m.Kind == gossip.NeedReport && in.aggregates():
		k.noteNeed(in.Now, from.ID, m.Second)
		k.announce(in, &out)
	case m.Kind == gossip.ShortageNotice && in.aggregates() && from.Remote && !in.Regional:
		if m.Window > in.Window {
			k.expect(in, from, m, &out)
		} else {
			k.share(in, from, requestOf(m), in.policy(from.RTT).Spare, &out)
		}
	case m.Kind == gossip.CollectRequest:
		out.Transfers = append(out.Transfers, Transfer{To: m.For, Hits: honor(m.Need, k.recent(in, k.own(in)))})
	}
	return out
}

// requestOf returns the state of a requester in its message.
func requestOf(m *gossip.RightsMessage) Request {
	return Request{Rights: m.Rights, Second: m.Second, Need: m.Need}
}

// noteNeed remembers the need of a daemon of the region.
func (k *Key) noteNeed(now int64, from crdt.Incarnation, second uint64) {
	k.expireNeeds(now)
	n := reportedNeed{from, second, now}
	if i := slices.IndexFunc(k.needs, func(old reportedNeed) bool { return old.from == from }); i >= 0 {
		k.needs[i] = n
		return
	}
	if len(k.needs) < maxNeeds {
		k.needs = append(k.needs, n)
	}
}

// expireNeeds forgets the needs that were reported needMS ago or earlier.
func (k *Key) expireNeeds(now int64) {
	k.needs = slices.DeleteFunc(k.needs, func(n reportedNeed) bool { return now-n.at >= needMS })
}

// share transfers spare rights of the own region to a region that is short: own
// rights directly, and those of other daemons by collect requests. spareOf
// returns the spare rights of a region.
func (k *Key) share(in *Input, from Sender, q Request, spareOf func(leftMS int64, r Region) uint64, out *Output) {
	policy, left := in.policy(from.RTT), in.leftMS()
	all, rows, ids := k.region(in)
	if k.outlook != nil {
		all.Offered = max(all.Offered, k.outlook.sinceStart(in))
	}
	spare, others := spareOf(left, all), uint64(0)
	for _, r := range in.View.Regions() {
		if r.Aggregator == from.ID || r.Silent {
			continue
		}
		allotment := in.View.Allotment(r.Region)
		others = sat.Add(others, spareOf(left, Region{
			Allotment: allotment, Available: sat.Sub(allotment, r.Used), Offered: r.Rate,
		}))
	}
	parts := make([]uint64, len(rows))
	collect(policy.Transfer(all, q, spare, others), rows, parts)
	if parts[0] > 0 {
		out.Transfers = append(out.Transfers, Transfer{To: from.ID, Hits: parts[0]})
	}
	for i := 1; i < len(rows); i++ {
		if parts[i] > 0 {
			m := k.message(in, gossip.CollectRequest)
			m.Need, m.For = parts[i], from.ID
			out.send(ids[i], m)
		}
	}
}

// Received notes hits of a window that another daemon transferred to this one,
// and splits those of another region over the daemons in need. in.Rights
// contains the hits already.
func (k *Key) Received(in *Input, from Sender, window int64, hits uint64) (out Output) {
	if k.requester != nil {
		k.requester.Answer(in.Now, from.ID, hits)
	}
	if window != in.Window || !from.Remote {
		return out
	}
	k.expireNeeds(in.Now)
	rates := []uint64{k.rates.Second(in.Now)}
	for _, n := range k.needs {
		rates = append(rates, n.second)
	}
	parts := make([]uint64, len(rates))
	split(hits, rates, parts)
	for i, n := range k.needs {
		out.Transfers = append(out.Transfers, Transfer{To: n.from, Hits: parts[i+1]})
	}
	return out
}
