package transfer

import (
	"cmp"
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
)

// Pauses of a Requester, in milliseconds.
const (
	requestMS = 50  // A peer that has not replied by then counts as refusing.
	emptyMS   = 100 // Pause when no peer is believed to have rights left.
	refusalMS = 500 // How long a refusal or a missing reply is remembered.
)

// maxRefusals is how many refusals a Requester remembers. A Requester with that
// many pauses: most refusals come when the whole region is near its end, and
// further requests are not worth their messages.
const maxRefusals = 4

// Need is one daemon's need for rights to a key in a window.
type Need struct {
	Entity   bool   // The key stands for one caller.
	Recent   uint64 // Rates.Recent, with the hit just offered.
	Second   uint64 // Rates.Second, with the hit just offered.
	Ahead    uint64 // The rights it wants to have, see Ahead.
	Rights   uint64 // Rights left after that hit.
	Held     uint64 // Allotment + received - given: Rights and the admitted hits.
	Limit    uint64 // Of the rule, without its overage budget.
	Estimate uint64 // Hits that all daemons are estimated to have admitted.
}

// Hits returns how many rights are worth a request, 0 for none: there is
// traffic, the rights and not the limit will stop it, and the rest does not
// cover the hits of the last tenths of a second. For an entity key they are
// also worth one once half of the held rights are used and the rest is less
// than half of Ahead. A daemon without traffic never requests any; this keeps
// the number of messages low.
func (n Need) Hits() uint64 {
	if n.Recent == 0 || !n.urgent() && !n.early() {
		return 0
	}
	return sat.Sub(min(max(n.Recent, n.Ahead), sat.Sub(n.Limit, n.Estimate)), n.Rights)
}

// urgent reports whether the rights may end before a transfer arrives.
func (n Need) urgent() bool { return n.Rights < n.Recent }

// early reports whether the daemon of an entity key has used half of its
// rights.
func (n Need) early() bool { return n.Entity && early(n.Rights, n.Held, n.Ahead) }

// Peer is another daemon of the region as it is known here. The amounts come
// from merged cells and replies.
type Peer struct {
	ID     crdt.Incarnation // Not 0.
	Held   uint64           // Allotment + received - given.
	Used   uint64           // Admitted hits.
	Rate   uint64           // Admitted hits per second.
	Silent bool             // No message arrived for three intervals.
}

// rights returns the rights that the peer is believed to have left.
func (p Peer) rights() uint64 { return sat.Sub(p.Held, p.Used) }

// Requester chooses the peers that one daemon requests rights of, for one key.
// The zero value is ready for use and is 120 bytes; create it when Need.Hits is
// first above 0. At most one request is outstanding, and in any half second at
// most 4 requests bring nothing, not counting those to peers that are believed
// to have received rights since they refused.
type Requester struct {
	asked    crdt.Incarnation // Receiver of the outstanding request, 0 for none.
	believed uint64           // The rights it was believed to have.
	until    int64            // End of the outstanding request or of the pause.
	refused  [maxRefusals]refusal
}

// refusal is a peer that transferred nothing. It is asked again once it is
// believed to have received rights, or after refusalMS: it may have less
// traffic by then.
type refusal struct {
	id       crdt.Incarnation
	believed uint64
	until    int64
}

// Ready reports whether Pick may return a peer. It is cheap; collect the peers
// only if it holds.
func (q *Requester) Ready(now int64, n Need) bool {
	return n.Hits() > 0 && !waiting(now, q.until, emptyMS)
}

// Pick returns the peer to request rights of now, and notes the request. It
// returns ok false if there is none, and then a pause begins. It picks the peer
// that is believed to have most rights to transfer; among equals the first
// after self by id, so that daemons in need do not all ask the same peer.
// Silent peers are skipped. A request without a reply in time counts as
// refused.
func (q *Requester) Pick(now int64, n Need, self crdt.Incarnation, peers []Peer) (id crdt.Incarnation, ok bool) {
	if !q.Ready(now, n) {
		return 0, false
	}
	if q.asked != 0 {
		q.refuse(now)
	}
	best, most := Peer{}, uint64(0)
	if !q.full(now) {
		for _, p := range peers {
			hits := q.expected(now, n, p)
			if p.ID == self || p.ID == 0 || p.Silent || hits == 0 {
				continue
			}
			if cmp.Or(cmp.Compare(hits, most), cmp.Compare(p.rights(), best.rights()), cmp.Compare(best.ID-self, p.ID-self)) > 0 {
				best, most = p, hits
			}
		}
	}
	if most == 0 {
		q.until = sat.AddInt(now, emptyMS)
		return 0, false
	}
	q.asked, q.believed, q.until = best.ID, best.rights(), sat.AddInt(now, requestMS)
	return best.ID, true
}

// Answer notes that a peer transferred hits, or refused if hits is 0. The
// caller has merged the transfer already. A reply to a request that timed out
// only ends the remembered refusal.
func (q *Requester) Answer(now int64, from crdt.Incarnation, hits uint64) {
	if hits > 0 {
		for i := range q.refused {
			if q.refused[i].id == from {
				q.refused[i] = refusal{}
			}
		}
	}
	if from != q.asked || from == 0 {
		return
	}
	if hits == 0 {
		q.refuse(now)
	}
	q.asked, q.until = 0, now
}

// expected returns the rights that a peer is expected to transfer: all but one,
// the last one to a requester without any. It returns 0 for a peer that
// refused, and before rights are urgent also for one that would keep its own
// for its traffic.
func (q *Requester) expected(now int64, n Need, p Peer) uint64 {
	rights := p.rights()
	for _, r := range q.refused {
		if r.id == p.ID && rights <= r.believed && waiting(now, r.until, refusalMS) {
			return 0
		}
	}
	switch {
	case p.Rate > 0 && !n.urgent():
		return surplus(DonorState{Rights: rights, Second: p.Rate}, Request{Rights: n.Rights, Second: n.Second})
	case rights == 1 && n.Rights == 0:
		return 1
	}
	return sat.Sub(rights, 1)
}

// full reports whether all places for refusals are in use.
func (q *Requester) full(now int64) bool {
	return !slices.ContainsFunc(q.refused[:], func(r refusal) bool { return r.id == 0 || !waiting(now, r.until, refusalMS) })
}

// refuse ends the outstanding request as refused. It replaces the refusal of
// the same peer, or else the one that ends first.
func (q *Requester) refuse(now int64) {
	at := 0
	for i, r := range q.refused {
		if r.id == q.asked {
			at = i
			break
		}
		if r.until < q.refused[at].until {
			at = i
		}
	}
	q.refused[at] = refusal{q.asked, q.believed, sat.AddInt(now, refusalMS)}
	q.asked = 0
}
