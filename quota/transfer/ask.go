package transfer

import "github.com/georld/rld/internal/sat"

// Times of asking.
const (
	askMS    = 50  // A sibling that has not answered by then will not.
	emptyMS  = 100 // Pause when no sibling is believed to have anything to give.
	refuseMS = 500 // How long a refusal or a missing answer is remembered.
)

// remembered is how many refusals an Requester remembers. When they are that many,
// asking on is not worth the messages, and it pauses: most refusals come when the
// whole region is at its end.
const remembered = 4

// Kind says what keys of a rule stand for.
type Kind uint8

// The kinds of keys. An aggregate key is hit in all regions at once; an entity
// key stands for one caller, who is usually in one place, so that rights follow
// him sooner and leave less behind.
const (
	Aggregate Kind = iota
	Entity
)

// Need is what a daemon knows of its own need for a key under a label.
type Need struct {
	Kind     Kind
	Recent   uint64 // Rates.Recent, with the hit just offered.
	Rights   uint64 // Rights left after that hit.
	Held     uint64 // Base + received - given: Rights and what was admitted.
	Limit    uint64 // Of the rule, without its overage budget.
	Estimate uint64 // What the estimate gate takes the world to have admitted.
}

// Asks reports whether rights are worth asking for: there is traffic, rights and
// not the limit will stop it, and what is left does not last for what came in
// the last tenths of a second. Entity keys ask as soon as half of what was held
// is gone. A silent daemon never asks; this is what keeps asking cheap.
func (w Need) Asks() bool {
	if w.Recent == 0 || w.Rights >= sat.Sub(w.Limit, w.Estimate) {
		return false
	}
	return w.Rights < w.Recent || w.Kind == Entity && w.Rights <= w.Held-min(w.Held, w.Rights)
}

// Peer is what is believed of another daemon of the region. Base, received,
// given and admitted amounts are those merged so far, those of answers
// included.
type Peer struct {
	ID   uint64 // Not 0; one process incarnation.
	Held uint64 // Base + received - given.
	Used uint64 // Admitted.
}

// rights returns the rights that the sibling is believed to have left.
func (s Peer) rights() uint64 {
	return sat.Sub(s.Held, s.Used)
}

// Requester is one daemon's asking for one key under one label. The zero value is
// ready; make it when Need.Asks first holds, it is 120 bytes. At most one ask is
// outstanding, and in any half second at most 4 bring nothing, but for those to
// siblings that are believed to have got more since they refused.
type Requester struct {
	asked    uint64 // Whom; 0 when no ask is outstanding.
	believed uint64 // What was believed of him.
	until    int64  // End of the outstanding ask or of the pause.
	refused  [remembered]refusal
}

// refusal is a sibling that gave nothing. He is asked again when he is believed
// to have got more, or after refuseMS: he may be less busy by then.
type refusal struct {
	id       uint64
	believed uint64
	until    int64
}

// Ready reports whether Pick may find somebody. It is cheap; gather siblings
// only if it holds.
func (a *Requester) Ready(now int64, w Need) bool {
	return w.Asks() && !waiting(now, a.until, emptyMS)
}

// Pick returns the sibling to ask now and starts the ask; ok is false if there
// is none, and then a pause begins. siblings, in any order, are those that were
// heard of lately: dead ones cost an ask each. The sibling is the one with the greatest
// believed gift; among equals the first after self by id, so that hungry
// daemons do not all ask the same one. An ask of which no answer has come in
// time counts as refused.
func (a *Requester) Pick(now int64, w Need, self uint64, peers []Peer) (id uint64, ok bool) {
	if !a.Ready(now, w) {
		return 0, false
	}
	if a.asked != 0 {
		a.refuse(now)
	}
	best, gift := Peer{}, uint64(0)
	if !a.full(now) {
		for _, s := range peers {
			g := a.transfer(now, w, s)
			if s.ID == self || s.ID == 0 || g == 0 {
				continue
			}
			if g > gift || g == gift && s.ID-self < best.ID-self {
				best, gift = s, g
			}
		}
	}
	if gift == 0 {
		a.until = sat.AddInt(now, emptyMS)
		return 0, false
	}
	a.asked, a.believed, a.until = best.ID, best.rights(), sat.AddInt(now, askMS)
	return best.ID, true
}

// Answer takes in the answer of a sibling, given his gift. The caller has merged
// it into its ledger already, together with the rights the donor has left if
// the answer tells. Answers to asks that were given up only lift the refusal.
func (a *Requester) Answer(now int64, from, gift uint64) {
	if gift > 0 {
		for i := range a.refused {
			if a.refused[i].id == from {
				a.refused[i] = refusal{}
			}
		}
	}
	if from != a.asked || from == 0 {
		return
	}
	if gift == 0 {
		a.refuse(now)
	}
	a.asked, a.until = 0, now
}

// transfer returns what s is believed to give: all but one right, and on a last call
// that too.
func (a *Requester) transfer(now int64, w Need, s Peer) uint64 {
	rights := s.rights()
	for _, r := range a.refused {
		if r.id == s.ID && rights <= r.believed && waiting(now, r.until, refuseMS) {
			return 0
		}
	}
	if w.Rights == 0 {
		return rights
	}
	return sat.Sub(rights, 1)
}

// full reports whether every place for a refusal is taken.
func (a *Requester) full(now int64) bool {
	for _, r := range a.refused {
		if r.id == 0 || !waiting(now, r.until, refuseMS) {
			return false
		}
	}
	return true
}

// refuse ends the outstanding ask as refused, in the place of the same sibling,
// or else of the refusal that ends first.
func (a *Requester) refuse(now int64) {
	at := 0
	for i, r := range a.refused {
		if r.id == a.asked {
			at = i
			break
		}
		if r.until < a.refused[at].until {
			at = i
		}
	}
	a.refused[at] = refusal{a.asked, a.believed, sat.AddInt(now, refuseMS)}
	a.asked = 0
}
