package epoch

import (
	"fmt"
	"slices"

	"github.com/georld/rld/hlc"
)

// A world is a few participants on the real Table, and all items ever sent
// between them: each may be delivered at any time, in any order, once, often or
// never. Every participant has its own clock, which only tick moves, so any
// skew is covered; windows are 1 ms long. After each step every participant
// reads its share of every window its clock has reached: no execution uses
// more.
type world struct {
	*setup
	tables []*Table
	now    []int64
	stored []Record
	dead   []bool
	grants []Extension // all ever given; those not delivered at once may come late
	acks   []Ack
	// cur is the greatest share of the current run by participant and window,
	// past the sum of those of former runs.
	cur, past [][]uint64
	star      []ID // by window: the greatest least epoch of any share
	crashes   int
	stops     int
	resumes   int
	lapses    int
	// left is what a stopped run left to the next one.
	left []leftover
}

// leftover is the record and the accounts of a run that stopped: its use by
// window. It is there until the next run starts.
type leftover struct {
	record Record
	used   []uint64
	there  bool
}

// setup is the start of a world and its possible actions.
type setup struct {
	name      string
	large     bool // too many states for every run of the tests
	genesis   Epoch
	proposals []Epoch
	joiners   []uint64
	clock     int64 // the last instant of every clock
	carry     int64
	crashes   int   // restarts with the record
	stops     int   // calls of Stop
	resumes   int   // restarts after Stop that continue the use
	ahead     int64 // of the clock, that records are
	lead      int64 // of the clock, that acknowledgements are
	lapses    int   // losses of the record
	kills     int   // deaths
	parts     bool  // amounts are weights, as those of daemons are: see Part
	prune     bool
	late      bool // extensions may be delivered late
	// ride lets epochs travel with what refers to them only. Knowing an epoch
	// without acknowledging it or counting on it makes no share greater.
	ride bool
	// takers receive acknowledgements, holders receive extensions; all
	// participants if empty. The others cannot gain a share by them.
	takers, holders []uint64
	mutation        mutation
	broken          mutant
}

// mutation is a rule the driver breaks.
type mutation int

const (
	mutationNone        mutation = iota
	mutationLatest               // use the latest epoch known
	mutationSchedule             // use the latest epoch known whose activation has come
	mutationRaiseNow             // no carry in the raise, though history reaches back
	mutationLimit                // shares of different limits
	mutationCurrent              // an acknowledgement holds from the current window on
	mutationLower                // a lower epoch acknowledged after a higher one
	mutationAmnesia              // a lost record is taken for a first start
	mutationNoFence              // a restart uses windows of the former run
	mutationNoAccounts           // it resumes without the use of the former run
	mutationTwice                // two runs resume one that stopped
	mutationNoUnknown            // it resumes also the runs before a crash
	mutationFreeWindows          // extensions before the stop count for all windows
	mutationFreeGrants           // extensions count for every epoch
	mutationForgetGrant          // extensions forgotten by a restart
	mutationLie                  // the operator retires a live participant
)

func newWorld(s *setup) *world {
	w := &world{setup: s, crashes: s.crashes, stops: s.stops, resumes: s.resumes, lapses: s.lapses, star: make([]ID, s.clock+1)}
	for _, m := range s.genesis.Members {
		w.join(m.ID)
	}
	for _, id := range s.joiners {
		w.join(id)
	}
	w.observe()
	return w
}

func (w *world) join(id uint64) {
	t, err := New(id, w.genesis)
	if err != nil {
		panic(err)
	}
	w.tables = append(w.tables, t)
	w.now = append(w.now, 0)
	w.stored = append(w.stored, Record{})
	w.dead = append(w.dead, false)
	w.cur = append(w.cur, make([]uint64, w.clock+1))
	w.past = append(w.past, make([]uint64, w.clock+1))
	w.left = append(w.left, leftover{})
	w.extend(len(w.tables) - 1)
}

func (w *world) extend(i int) {
	w.store(i, w.tables[i].Extend(w.now[i]+w.ahead))
}

func (w *world) store(i int, r Record) {
	w.stored[i] = r
	w.tables[i].Stored(r)
}

// actions lists what may happen next.
func (w *world) actions() []string {
	var acts []string
	add := func(format string, args ...any) { acts = append(acts, fmt.Sprintf(format, args...)) }
	for i, t := range w.tables {
		if w.dead[i] {
			continue
		}
		if w.now[i] < w.clock {
			add("tick %d", i)
		}
		for p, e := range w.proposals {
			if _, ok := t.find(e.ID); !ok && !w.ride && w.mayLearn(e) &&
				!e.ID.Before(t.entries[0].ID) && !e.Pred.Before(t.entries[0].ID) {
				add("learn %d %d", i, p)
			}
		}
		for p, e := range w.proposals {
			u := w.rider(t, e.ID)
			if j, ok := u.find(e.ID); ok && w.mayAck(u, &u.entries[j]) {
				add("ack %d %d", i, p)
			}
		}
		for n, a := range w.acks {
			if !allowed(w.takers, t.owner) {
				break
			}
			t := w.rider(t, a.ID)
			if j, ok := t.find(a.ID); ok && a.By != t.owner && t.Names(a.By) && t.entries[j].from == never {
				if _, ok := t.entries[j].ack(a.By); !ok {
					add("take %d %d", i, n)
				}
			}
		}
		w.grantActions(i, add)
		if w.crashes > 0 && !w.diskless(t.owner) {
			add("crash %d", i)
		}
		if w.stops > 0 && t.stopped == never {
			add("stop %d", i)
		}
		if w.resumes > 0 && w.left[i].there {
			add("resume %d", i)
		}
		if w.lapses > 0 && w.mutation == mutationAmnesia {
			add("lapse %d", i)
		}
		if w.kills > 0 && w.alive() > len(w.tables)-w.kills {
			add("kill %d", i)
		}
		if w.prune && len(t.entries) > 1 && t.entries[1].from <= w.now[i]-w.carry {
			add("prune %d", i)
		}
	}
	return acts
}

// rider returns the table after it has learned the epoch, if it rides along.
func (w *world) rider(t *Table, id ID) *Table {
	if _, ok := t.find(id); ok || !w.ride {
		return t
	}
	t = t.clone()
	w.learnRiding(t, id)
	return t
}

func (w *world) learnRiding(t *Table, id ID) {
	for _, e := range w.proposals {
		if e.ID == id && w.ride && w.mayLearn(e) {
			_ = t.Learn(e)
		}
	}
	resettle(t, w.broken)
}

func (w *world) grantActions(i int, add func(string, ...any)) {
	t := w.tables[i]
	for j, u := range w.tables {
		// An extension beyond the last clock is as good as any.
		if j == i || !allowed(w.holders, u.owner) || w.genesis.Horizon == 0 {
			continue
		}
		g, ok := t.clone().ExtendHorizon(u.owner, w.now[i])
		if ok && u.Names(t.owner) && !slices.Contains(u.extensions, g) {
			add("grant %d %d", i, j)
			if w.late && !slices.Contains(w.grants, g) {
				add("send %d %d", i, j)
			}
		}
	}
	if !w.late {
		return
	}
	for n, g := range w.grants {
		if g.To == t.owner && !slices.Contains(t.extensions, g) && t.Names(g.By) {
			add("late %d %d", i, n)
		}
	}
}

// diskless reports whether a participant has no disk: it never starts again.
func (w *world) diskless(id uint64) bool {
	return slices.ContainsFunc(append(slices.Clip(w.proposals), w.genesis), func(e Epoch) bool {
		k, ok := e.rank(id)
		return ok && e.Members[k].Diskless
	})
}

func allowed(ids []uint64, id uint64) bool {
	return len(ids) == 0 || slices.Contains(ids, id)
}

func (w *world) alive() int {
	n := 0
	for _, d := range w.dead {
		if !d {
			n++
		}
	}
	return n
}

// mayLearn delays epochs that the operator cannot propose yet.
func (w *world) mayLearn(e Epoch) bool {
	for _, r := range e.Retired {
		for i, t := range w.tables {
			if t.owner == r.ID && w.mutation != mutationLie && (!w.dead[i] || w.now[i] >= r.From) {
				return false
			}
		}
	}
	return true
}

func (w *world) mayAck(t *Table, e *entry) bool {
	if e.mine {
		return false
	}
	if w.mutation == mutationLower {
		top := t.top
		t.top = ID{}
		defer func() { t.top = top }()
	}
	return t.acknowledgeable(e) == nil
}

// do performs one action; it is the only way a world changes.
func (w *world) do(act string) {
	var verb string
	var i, n int
	if k, err := fmt.Sscanf(act, "%s %d %d", &verb, &i, &n); k < 2 {
		panic(fmt.Sprintf("action %q: %v", act, err))
	}
	t := w.tables[i]
	must := func(err error) {
		if err != nil {
			panic(fmt.Sprintf("action %q: %v", act, err))
		}
	}
	switch verb {
	case "tick":
		w.now[i]++
		w.extend(i)
	case "learn":
		must(t.Learn(w.proposals[n]))
	case "ack":
		w.learnRiding(t, w.proposals[n].ID)
		if w.mutation == mutationLower {
			t.top = ID{}
		}
		a, r, err := t.Acknowledge(w.proposals[n].ID, w.now[i]+w.lead, nil)
		must(err)
		if w.mutation == mutationCurrent {
			a.From--
			j, _ := t.find(a.ID)
			t.entries[j].own = a
			for k := range t.entries[j].acks {
				if t.entries[j].acks[k].By == t.owner {
					t.entries[j].acks[k] = a
				}
			}
			t.entries[j].from = never
			t.settle()
			r = t.Record()
		}
		w.store(i, r)
		w.acks = append(w.acks, a)
	case "take":
		a := w.acks[n]
		w.learnRiding(t, a.ID)
		for _, id := range a.Before {
			w.learnRiding(t, id)
		}
		must(t.TakeAck(a))
	case "grant", "send":
		g, _ := t.ExtendHorizon(w.tables[n].owner, w.now[i])
		if w.mutation == mutationFreeGrants {
			g.Under = ID{}
		}
		if verb == "send" {
			w.grants = append(w.grants, g)
		} else {
			must(w.tables[n].TakeExtension(g))
		}
	case "late":
		must(t.TakeExtension(w.grants[n]))
	case "crash":
		w.crash(i)
	case "stop":
		w.stops--
		t.Stop(w.now[i])
		w.extend(i)
		w.left[i] = leftover{w.stored[i], slices.Clone(w.cur[i]), !w.diskless(t.owner)}
	case "resume":
		w.resume(i)
	case "lapse":
		w.lapse(i)
	case "kill":
		w.dead[i] = true
	case "prune":
		t.Prune(w.now[i] - w.carry)
		w.store(i, t.Record())
	default:
		panic("action " + act)
	}
	for _, t := range w.tables {
		resettle(t, w.broken)
	}
	w.observe()
}

// observe reads every share.
func (w *world) observe() {
	for i, t := range w.tables {
		if w.dead[i] {
			continue
		}
		for x := int64(0); x <= w.now[i]; x++ {
			s := w.share(t, x)
			if s == 0 {
				continue
			}
			w.cur[i][x] = max(w.cur[i][x], s)
			t := usable(t, x, w.carry, w.broken)
			if lo, why := t.lowestAfter(t.unknown, x, w.carry); why == ReasonEpoch && lo >= 0 {
				if id := t.entries[lo].ID; w.star[x].Before(id) {
					w.star[x] = id
				}
			}
		}
	}
}

// share returns the share of the real code, or of a mutation.
func (w *world) share(t *Table, x int64) uint64 {
	last := &t.entries
	switch w.mutation {
	case mutationLatest:
		return (*last)[len(*last)-1].AmountOf(0, t.owner)
	case mutationSchedule: // an epoch is active from the window of its stamp + 1 on
		for i := len(*last) - 1; i > 0; i-- {
			if (*last)[i].ID.Stamp.Millis()+1 <= x {
				return (*last)[i].AmountOf(0, t.owner)
			}
		}
		return (*last)[0].AmountOf(0, t.owner)
	case mutationLimit: // weights by the min rule, the limit as each knows it
		s, _ := t.Share(0, x, w.carry)
		return s * (*last)[len(*last)-1].Total() / w.genesis.Total()
	case mutationRaiseNow:
		s, _ := t.Share(0, x, 0)
		return s
	}
	if w.parts {
		s, _ := t.FormerPart(w.genesis.Total(), x, w.carry)
		return s
	}
	t = usable(t, x, w.carry, w.broken)
	s, _ := t.shareAfter(t.unknown, 0, x, w.carry)
	return s
}

// worst returns the window with the worst sum of shares, the sum and its bound.
// Where history reaches back, a participant counts with its greatest share of
// all windows that count in x.
func (w *world) worst() (x int64, sum, bound uint64) {
	bound = 1
	for y := int64(0); y <= w.clock; y++ {
		s, star := uint64(0), ID{}
		for i := range w.tables {
			most := uint64(0)
			for z := max(0, y-w.carry); z <= y; z++ {
				most = max(most, w.past[i][z]+w.cur[i][z])
				if star.Before(w.star[z]) {
					star = w.star[z]
				}
			}
			s += most
		}
		b := w.genesis.Total()
		for _, e := range w.proposals {
			if e.ID == star {
				b = e.Total()
			}
		}
		if s*bound > sum*b {
			x, sum, bound = y, s, b
		}
	}
	return x, sum, bound
}

// amounts makes members out of pairs: participant, amount.
func amounts(pairs ...uint64) []Member {
	var ms []Member
	for i := 0; i+1 < len(pairs); i += 2 {
		ms = append(ms, Member{ID: pairs[i], Amount: pairs[i+1]})
	}
	return ms
}

// at makes an ID; small numbers order the proposals.
func at(ms int64) ID { return ID{Stamp: hlc.New(ms, 0), Proposer: 1} }
