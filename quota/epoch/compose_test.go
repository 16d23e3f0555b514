package epoch

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A union is a world of two levels: daemons, each with a table of regions and
// one of the daemons of its region.
type union struct {
	*realm
	daemons []*daemon
	votes   []Vote
	acks    []Ack // of regions
	locals  []Ack // of daemons
	crashes int
	stops   int
	cur     [][]uint64
	past    [][]uint64
}

type daemon struct {
	region, local    *Table
	now              int64
	storedR, storedL Record
	left             bool // it stopped, and the next run may continue its use
}

type realm struct {
	name     string
	genesis  Epoch
	regions  []Epoch          // proposals
	starting map[uint64]Epoch // by region: the daemons it starts with
	joiners  map[uint64]uint64
	locals   []Epoch // proposals of region 1
	clock    int64
	lead     int64 // of the clock, that acknowledgements of daemons are
	crashes  int
	stops    int // each may resume
	mutation unionMutation
	silent   uint64 // a daemon whose clock stands: the operator may retire it
}

type unionMutation int

const (
	unionNone        unionMutation = iota
	unionOneVote                   // one daemon acknowledges for its region
	unionNoTables                  // a joining daemon does not learn the dependencies of the others
	unionNoUnsettled               // unsettled epochs of daemons are ignored
	unionOwnVote                   // a daemon's own vote counts as the acknowledgement of its region
	unionNoChain                   // an epoch does not need the dependencies of its predecessor
)

func newUnion(r *realm) *union {
	u := &union{realm: r, crashes: r.crashes, stops: r.stops}
	for _, m := range r.genesis.Members {
		for _, d := range r.starting[m.ID].Members {
			u.join(m.ID, d.ID)
		}
	}
	for _, m := range r.genesis.Members {
		if d, ok := r.joiners[m.ID]; ok {
			u.join(m.ID, d)
		}
	}
	u.observe()
	return u
}

func (u *union) join(region, id uint64) {
	rt, err := NewRegional(region, u.genesis)
	if err != nil {
		panic(err)
	}
	lt, err := New(id, u.starting[region])
	if err != nil {
		panic(err)
	}
	d := &daemon{region: rt, local: lt}
	d.extend()
	u.daemons = append(u.daemons, d)
	u.cur = append(u.cur, make([]uint64, u.clock+1))
	u.past = append(u.past, make([]uint64, u.clock+1))
}

func (d *daemon) extend() {
	d.storeR(d.region.Extend(d.now))
	d.storeL(d.local.Extend(d.now))
}

func (d *daemon) storeR(r Record) { d.storedR = r; d.region.Stored(r) }
func (d *daemon) storeL(r Record) { d.storedL = r; d.local.Stored(r) }

func (u *union) actions() []string {
	var acts []string
	add := func(format string, args ...any) { acts = append(acts, fmt.Sprintf(format, args...)) }
	for i, d := range u.daemons {
		if d.now < u.clock && d.local.owner != u.silent {
			add("tick %d 0", i)
		}
		if u.crashes > 0 {
			add("crash %d 0", i)
		}
		if u.stops > 0 && d.local.stopped == never {
			add("stop %d 0", i)
		}
		if d.left {
			add("resume %d 0", i)
		}
		for _, t := range []*Table{d.region, d.local} {
			if len(t.entries) > 1 && t.entries[1].from <= d.now {
				add("prune %d 0", i)
				break
			}
		}
		pending := d.region.Pending()
		for p, e := range u.regions {
			if !d.region.Knows(e.ID) && !e.Pred.Before(d.region.entries[0].ID) {
				add("learn %d %d", i, p)
			}
			if slices.Contains(pending, e.ID) {
				add("vote %d %d", i, p)
			}
			u.composable(i, p, add)
		}
		for n, a := range u.acks {
			if j, ok := d.region.find(a.ID); ok && d.region.entries[j].from == never {
				if _, ok := d.region.entries[j].ack(a.By); !ok {
					add("take %d %d", i, n)
				}
			}
		}
		if d.region.owner == 1 {
			u.localActions(i, add)
		}
	}
	return acts
}

func (u *union) composable(i, p int, add func(string, ...any)) {
	if a, ok := u.compose(i, p); ok && !slices.ContainsFunc(u.acks, func(b Ack) bool {
		return a.ID == b.ID && a.By == b.By && a.From == b.From && slices.Equal(a.Before, b.Before)
	}) {
		add("compose %d %d", i, p)
	}
}

func (u *union) localActions(i int, add func(string, ...any)) {
	t := u.daemons[i].local
	pending := t.Pending()
	for p, e := range u.realm.locals {
		if !t.Knows(e.ID) && !e.Pred.Before(t.entries[0].ID) {
			add("local-learn %d %d", i, p)
		}
		if slices.Contains(pending, e.ID) {
			add("local-ack %d %d", i, p)
		}
	}
	for n, a := range u.locals {
		if j, ok := t.find(a.ID); ok && a.By != t.owner && t.Names(a.By) && t.entries[j].from == never {
			if _, ok := t.entries[j].ack(a.By); !ok {
				add("local-take %d %d", i, n)
			}
		}
	}
}

func (u *union) compose(i, p int) (Ack, bool) {
	d := u.daemons[i]
	var votes []Vote
	for _, v := range u.votes {
		if v.Ack.ID == u.regions[p].ID && v.Ack.By == d.region.owner {
			if u.mutation == unionNoUnsettled {
				v.Locals = nil
			}
			votes = append(votes, v)
		}
	}
	if len(votes) == 0 {
		return Ack{}, false
	}
	if u.mutation == unionOneVote {
		return votes[0].Ack, true
	}
	a, ok, err := Compose(d.local, votes)
	if err != nil {
		panic(err)
	}
	return a, ok
}

func (u *union) do(act string) {
	var verb string
	var i, n int
	if k, err := fmt.Sscanf(act, "%s %d %d", &verb, &i, &n); k < 3 {
		panic(fmt.Sprintf("action %q: %v", act, err))
	}
	d := u.daemons[i]
	must := func(err error) {
		if err != nil {
			panic(fmt.Sprintf("action %q: %v", act, err))
		}
	}
	switch verb {
	case "tick":
		d.now++
		d.extend()
	case "learn":
		must(d.region.Learn(u.regions[n]))
		d.storeR(d.region.Record())
	case "vote":
		a, r, err := d.region.Acknowledge(u.regions[n].ID, d.now, nil)
		must(err)
		d.storeR(r)
		u.votes = append(u.votes, Vote{Daemon: d.local.owner, Ack: a, Locals: d.local.Acknowledged()})
	case "compose":
		a, _ := u.compose(i, n)
		u.acks = append(u.acks, a)
	case "take":
		must(d.region.TakeAck(u.acks[n]))
	case "local-learn":
		must(d.local.Learn(u.realm.locals[n]))
	case "local-ack":
		held := d.region.Acknowledged()
		if u.mutation == unionNoTables {
			held = nil
		}
		a, r, err := d.local.Acknowledge(u.realm.locals[n].ID, d.now+u.lead, held)
		must(err)
		d.storeL(r)
		u.locals = append(u.locals, a)
	case "local-take":
		must(d.local.TakeAck(u.locals[n]))
	case "prune":
		d.region.Prune(d.now)
		d.local.Prune(d.now)
		d.local.CompactHeld(d.region.At(0).Epoch.ID)
		d.storeR(d.region.Record())
		d.storeL(d.local.Record())
	case "crash":
		u.crashes--
		var err error
		d.region, err = Restore(d.region.owner, d.storedR)
		must(err)
		d.local, err = Restore(d.local.owner, d.storedL)
		must(err)
		d.now, d.left = max(0, d.now-1), false
		for x := range u.cur[i] {
			u.past[i][x] += u.cur[i][x]
			u.cur[i][x] = 0
		}
	case "stop":
		u.stops--
		d.region.Stop(d.now)
		d.local.Stop(d.now)
		d.extend()
		d.left = true
	case "resume":
		var err error
		d.region, err = Resume(d.region.owner, d.storedR)
		must(err)
		d.local, err = Resume(d.local.owner, d.storedL)
		must(err)
		d.now, d.left = max(0, d.now-1), false
	default:
		panic("action " + act)
	}
	if u.mutation == unionNoChain {
		for _, d := range u.daemons {
			unchain(d.local)
		}
	}
	u.observe()
}

func (u *union) observe() {
	for i, d := range u.daemons {
		for x := int64(0); x <= d.now; x++ {
			s, _ := FormerDaemonShare(d.region, d.local, 0, Whole, x, 0)
			u.cur[i][x] = max(u.cur[i][x], s)
		}
	}
}

func (u *union) worst() (x int64, sum, bound uint64) {
	bound = u.genesis.Total()
	for y := range u.clock + 1 {
		s := uint64(0)
		for i := range u.daemons {
			s += u.cur[i][y] + u.past[i][y]
		}
		if s > sum {
			x, sum = y, s
		}
	}
	return x, sum, bound
}

func (u *union) clone() *union {
	c := *u
	c.daemons = make([]*daemon, len(u.daemons))
	for i, d := range u.daemons {
		e := *d
		e.region, e.local = d.region.clone(), d.local.clone()
		c.daemons[i] = &e
	}
	c.votes, c.acks, c.locals = slices.Clone(u.votes), slices.Clone(u.acks), slices.Clone(u.locals)
	c.cur, c.past = slices.Clone(u.cur), slices.Clone(u.past)
	for i := range c.cur {
		c.cur[i], c.past[i] = slices.Clone(c.cur[i]), slices.Clone(c.past[i])
	}
	return &c
}

func (u *union) key() [16]byte {
	b := make([]byte, 0, 1024)
	for i, d := range u.daemons {
		b = d.local.appendKey(d.region.appendKey(b))
		b = binary.AppendVarint(b, d.now)
		b = append(b, fmt.Sprint(d.left)...)
		b = append(b, byte(len(d.storedR.Epochs)), byte(len(d.storedR.Mine)), byte(len(d.storedL.Epochs)))
		for x := range u.cur[i] {
			b = append(b, byte(u.cur[i][x]), byte(u.past[i][x]))
		}
	}
	var sent []string
	for _, v := range u.votes {
		sent = append(sent, fmt.Sprint("v", v.Daemon, v.Locals, string(appendAck(nil, v.Ack))))
	}
	for _, a := range u.acks {
		sent = append(sent, "a"+string(appendAck(nil, a)))
	}
	for _, a := range u.locals {
		sent = append(sent, fmt.Sprint("l", a.Held, string(appendAck(nil, a))))
	}
	slices.Sort(sent)
	b = append(b, strings.Join(sent, "|")...)
	b = append(b, byte(u.crashes), byte(u.stops))
	h := sha256.Sum256(b)
	return [16]byte(h[:16])
}

// wanderUnion is wander for two levels.
func wanderUnion(r *realm, seed uint64, steps int) (taken int, bad *found) {
	rng := rand.New(rand.NewPCG(seed, 2))
	u := newUnion(r)
	slow := rng.IntN(10)
	var path []string
	for taken < steps {
		acts := u.actions()
		if len(acts) == 0 {
			break
		}
		act := acts[rng.IntN(len(acts))]
		for range slow {
			if strings.HasPrefix(act, "tick") {
				act = acts[rng.IntN(len(acts))]
			}
		}
		u.do(act)
		taken++
		path = append(path, act)
		if x, sum, bound := u.worst(); sum > bound && (bad == nil || sum > bad.sum) {
			bad = &found{slices.Clone(path), x, sum, bound}
		}
	}
	return taken, bad
}

func realms() []*realm {
	regions := []Epoch{
		{ID: at(1), Members: amounts(1, 0, 2, 12)},
		{ID: at(2), Pred: at(1), Members: amounts(1, 12, 2, 0)},
	}
	start := genesis(0, 1, 6, 2, 6)
	return []*realm{
		{
			name: "two daemons", genesis: start, regions: regions[:1], clock: 2, crashes: 1,
			starting: map[uint64]Epoch{1: genesis(0, 11, 1, 12, 1), 2: genesis(0, 21, 1)},
		},
		{
			name: "one joins", genesis: start, regions: regions[:1], clock: 2, crashes: 1,
			starting: map[uint64]Epoch{1: genesis(0, 11, 1), 2: genesis(0, 21, 1)},
			joiners:  map[uint64]uint64{1: 12},
			locals:   []Epoch{{ID: at(1), Members: amounts(11, 1, 12, 1)}},
		},
		{
			name: "one joins, one leaves", genesis: start, regions: regions, clock: 3, crashes: 1,
			starting: map[uint64]Epoch{1: genesis(0, 11, 1, 12, 1), 2: genesis(0, 21, 1)},
			joiners:  map[uint64]uint64{1: 13},
			locals: []Epoch{
				{ID: at(1), Members: amounts(11, 1, 12, 1, 13, 1)},
				{ID: at(2), Pred: at(1), Members: amounts(11, 1, 13, 1)},
				{ID: at(3), Members: amounts(12, 1)},
			},
		},
		{
			name: "one joins and stays alone", genesis: start, regions: regions[:1], clock: 2, crashes: 0,
			starting: map[uint64]Epoch{1: genesis(0, 11, 1), 2: genesis(0, 21, 1)},
			joiners:  map[uint64]uint64{1: 12}, silent: 11,
			locals: []Epoch{
				{ID: at(1), Members: amounts(11, 1, 12, 1)},
				{ID: at(2), Pred: at(1), Members: amounts(12, 1), Retired: []Retirement{{11, 1}}},
			},
		},
	}
}

func TestWanderUnion(t *testing.T) {
	runs := uint64(300)
	if testing.Short() {
		runs = 40
	}
	if r, err := strconv.ParseUint(os.Getenv("EPOCH_RUNS"), 10, 64); err == nil {
		runs = r
	}
	for _, r := range realms() {
		t.Run(r.name, func(t *testing.T) {
			for seed := range runs {
				r := *r
				r.lead, r.stops = int64(seed%3), int(seed/3%3)
				r.clock += r.lead
				if _, bad := wanderUnion(&r, seed, 200); bad != nil {
					t.Fatalf("seed %d: %v", seed, bad)
				}
			}
		})
	}
}

// TestExploreUnion visits every state of one region that a daemon joins while
// it lowers its amount for the other. All know the epochs from the start, the
// joiner as well: it may only not have learned that of the regions.
func TestExploreUnion(t *testing.T) {
	limit := 10_000
	switch {
	case os.Getenv("EPOCH_LONG") != "":
		limit = 1_000_000
	case testing.Short():
		limit = 500
	}
	r := realms()[1]
	r.clock, r.crashes = 1, 0
	if _, _, bad := explore(newUnion(r), limit); bad != nil {
		t.Errorf("%v", bad)
	}
}
