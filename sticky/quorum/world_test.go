package quorum

import (
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/rendezvous"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// setup is a small world: what may happen in it, and how often.
type setup struct {
	name     string
	daemon   int   // daemons of the region, named a, b, c ...
	set      []int // the voters of the first layout; nil: all
	owners   []int // daemons that become owners
	limit    uint64
	headroom uint64
	wants    int   // per owner and incarnation
	crash    int   // crashes, after which the daemon starts again
	lose     int   // crashes that cost the disk
	mortal   []int // the daemon that crashes or loses a disk; nil: any
	pokes    int   // messages sent again
	rebirth  int   // proposers forgotten by an owner that goes on
	async    bool
	change   []int // voters of layout 2
	late     bool  // owners consume step by step, not all at once
	mutation mutation
	large    bool // too many states for every run of the tests
}

// world is one state of a setup. Messages that were sent stay: each may be
// delivered at any time, in any order, never or again.
type world struct {
	s            *setup
	daemons      []*machine
	net          []*letter // ordered by when they were sent first
	incarnations crdt.Incarnation
	consumed     uint64
	left         struct{ crash, lose, pokes, rebirth int }
	log          []Layouts // the history of layouts
	running      bool
	generations  uint64
}

// letter is a message with one item.
type letter struct {
	m    sticky.Message
	text string
	sum  sum
}

// sum is a fingerprint.
type sum [2]uint64

func sumOf(b []byte) sum {
	h := sum{14695981039346656037, 0x9e3779b97f4a7c15}
	for _, c := range b {
		h[0] = (h[0] ^ uint64(c)) * 1099511628211
		h[1] = rendezvous.Mix(h[1] ^ uint64(c))
	}
	return sum{rendezvous.Mix(h[0]), h[1]}
}

// machine is a daemon: a voter, its disk, and the owner of the one key.
type machine struct {
	name        string
	incarnation crdt.Incarnation
	old         []crdt.Incarnation
	at          time.Duration
	r           *Acceptor
	disk        *Stored
	unsaved     []Entry // answered and not on disk, by a mutation
	proposer    Proposer
	terms       uint64
	counted     uint64 // consumption that the owner counts
	wants       int
	knows       int // of the log of the world
	sum         sum // of all this, once it was asked for
	summed      bool
}

const (
	theWindow = int64(1_000_000)
	theNow    = theWindow + 10
	theEnd    = theWindow + 60_000
)

var theKey = crdt.Key(1<<32 | 2)

func daemonName(i int) string { return string(rune('a' + i)) }

func names(of []int) []string {
	out := make([]string, len(of))
	for i, d := range of {
		out[i] = daemonName(d)
	}
	return out
}

func (s *setup) firstLayout() route.Layout {
	set := s.set
	if set == nil {
		for i := range s.daemon {
			set = append(set, i)
		}
	}
	return route.Layout{Number: 1, Regions: []route.Region{{Name: "r", Weight: 1, Replicas: names(set)}}}
}

func newWorld(s *setup) *world {
	w := &world{s: s}
	w.log = make([]Layouts, 1, 3)
	w.log[0].Begin(s.firstLayout(), func(_, _ string) (Report, bool) { return Report{}, false })
	w.left.crash, w.left.lose, w.left.pokes, w.left.rebirth = s.crash, s.lose, s.pokes, s.rebirth
	for i := range s.daemon {
		m := &machine{name: daemonName(i)}
		w.daemons = append(w.daemons, m)
		w.start(m, Start{})
		w.settle(m)
	}
	w.meet()
	w.running = true
	return w
}

// start starts a daemon as a new incarnation.
func (w *world) start(m *machine, start Start) {
	if m.incarnation != 0 {
		m.old = append(m.old, m.incarnation)
	}
	w.incarnations++
	m.incarnation = w.incarnations
	r, err := NewAcceptor(Config{Region: "r", Name: m.name}, start)
	if err != nil {
		panic(err)
	}
	r.witness.over = true // TestOlderDisk has them
	r.Follow(0, w.log[m.knows].Active, w.log[m.knows].Announced)
	m.r, m.at, m.unsaved = r, 0, nil
	if start.Stored == nil {
		m.disk = &Stored{}
	}
	m.terms, m.counted, m.wants = 0, 0, 0
	w.newProposer(m)
}

func (w *world) newProposer(m *machine) {
	m.terms++
	if w.s.mutated(oneTerm) {
		m.terms = 1
	}
	m.proposer = Proposer{Term: m.terms}
}

// meet updates the live peers of all daemons. Former incarnations count as
// live, but not for those to talk to.
func (w *world) meet() {
	var peers []route.Peer
	for _, m := range w.daemons {
		peers = append(peers, route.Peer{ID: m.incarnation, Name: m.name, Region: "r", Ready: true})
		for _, id := range m.old {
			peers = append(peers, route.Peer{ID: id, Name: m.name, Region: "r"})
		}
	}
	for i := range w.daemons {
		m := w.own(i)
		m.r.Peers(m.at, m.incarnation, slices.Clone(peers))
		w.halve(m)
		w.settle(m)
	}
}

// halve gives a daemon a view in which it is the only voter: of two, half is a
// majority then.
func (w *world) halve(m *machine) {
	if w.s.mutated(halfIsMajority) {
		l := w.s.firstLayout()
		l.Regions[0].Replicas = []string{m.name}
		m.r.routing = route.New(&l, "r", m.name, m.incarnation, m.r.live)
	}
}

// settle does the work of an acceptor, except for a store that takes time.
func (w *world) settle(m *machine) {
	for range 10 {
		rd := m.r.Ready(m.at)
		w.halve(m)
		for i := range rd.Messages {
			w.mutateSent(&rd.Messages[i])
			w.post(&rd.Messages[i])
		}
		if rd.Store == nil {
			return
		}
		if w.s.mutated(answersEarly) && w.running {
			m.unsaved = append(m.unsaved, rd.Store...)
			m.r.Stored()
			continue
		}
		if w.s.async && w.running {
			return // until the action "stored"
		}
		w.write(m)
	}
	panic("a replica stores without end")
}

// write puts the store under way on the disk.
func (w *world) write(m *machine) {
	entries := m.unsaved
	if m.r.flight != nil {
		entries = append(entries, m.r.flight.entries...)
	}
	for _, e := range entries {
		if err := m.disk.Apply(e); err != nil {
			panic(err)
		}
	}
	m.unsaved = nil
	m.r.Stored()
}

// post sends the items of a message, each by itself.
func (w *world) post(m *sticky.Message) {
	base := sticky.Message{From: m.From, To: m.To, Number: m.Number}
	for i := range m.Accepts {
		c := base
		c.Accepts = m.Accepts[i : i+1]
		w.send(c)
	}
	for i := range m.Accepted {
		c := base
		c.Accepted = m.Accepted[i : i+1]
		w.send(c)
	}
	for i := range m.SnapshotRequests {
		c := base
		c.SnapshotRequests, c.Layouts = m.SnapshotRequests[i:i+1], m.Layouts
		w.send(c)
	}
	for i := range m.SnapshotChunks {
		c := base
		c.SnapshotChunks = m.SnapshotChunks[i : i+1]
		w.send(c)
	}
}

func (w *world) send(m sticky.Message) {
	if !w.matters(&m) {
		return
	}
	text := describe(&m)
	if w.find(text) == nil {
		w.net = append(w.net, &letter{m, text, sumOf([]byte(text))})
	}
}

func (w *world) find(text string) *letter {
	for _, l := range w.net {
		if l.text == text {
			return l
		}
	}
	return nil
}

// matters reports whether a message can have any effect, now or later.
func (w *world) matters(m *sticky.Message) bool {
	to := w.recipient(m)
	if to == nil {
		return false
	}
	var from *machine
	for _, d := range w.daemons {
		if d.incarnation == m.From {
			from = d
		}
	}
	switch {
	case len(m.Accepted) == 1:
		return to.proposer.awaits(m.Accepted[0].Ballot, m.Accepted[0].Seq)
	case len(m.Accepts) == 1 && w.s.mutation == 0:
		// A proposer that is outvoted for good matters to the calls that wait
		// for it.
		r, l := &m.Accepts[0], to.r.records[theKey]
		return l == nil || !r.Ballot.Less(l.Ballot) || from != nil && from.proposer.awaits(r.Ballot, r.Seq)
	case len(m.SnapshotRequests) == 1:
		return from != nil && from.r.copying != nil
	case len(m.SnapshotChunks) == 1:
		return from != nil && to.r.copying != nil && slices.ContainsFunc(to.r.copying.sources, func(s source) bool {
			return s.name == from.name && !s.done
		})
	}
	return true
}

func (k *Proposer) awaits(b sticky.Ballot, seq uint64) bool {
	return k.Busy() && b == k.ballot && seq == k.seq
}

// sweep drops the messages that have no effect any more.
func (w *world) sweep() {
	kept := make([]*letter, 0, len(w.net)+4)
	for _, l := range w.net {
		if w.matters(&l.m) {
			kept = append(kept, l)
		}
	}
	w.net = kept
}

// actions returns all that may happen now.
func (w *world) actions() []string {
	var acts []string
	for i := range w.daemons {
		m, name := w.daemons[i], daemonName(i)
		if m.r.flight != nil || m.unsaved != nil {
			acts = append(acts, "stored "+name)
		}
		if slices.Contains(w.s.owners, i) {
			if !m.proposer.Busy() && m.wants < w.s.wants && m.counted < w.s.limit {
				acts = append(acts, "want "+name)
			}
			if w.s.late && m.counted < min(m.proposer.Held().Amount(theWindow), w.s.limit) {
				acts = append(acts, "consume "+name)
			}
			if w.left.pokes > 0 && m.proposer.Busy() {
				acts = append(acts, "poke "+name)
			}
			if w.left.rebirth > 0 && m.proposer.Ballot().Round > 0 {
				acts = append(acts, "forget "+name)
			}
		}
		if w.left.pokes > 0 && m.r.copying != nil {
			acts = append(acts, "again "+name)
		}
		mortal := w.s.mortal == nil || slices.Contains(w.s.mortal, i)
		if mortal && w.left.crash > 0 {
			acts = append(acts, "crash "+name)
		}
		if mortal && w.left.lose > 0 {
			acts = append(acts, "lose "+name)
		}
	}
	switch {
	case w.s.change != nil && len(w.log) == 1:
		acts = append(acts, "announce a")
	case len(w.log) == 2:
		if l := w.log[1]; l.Turn(theNow, w.report) {
			acts = append(acts, "activate a")
		}
	}
	for i, m := range w.daemons {
		if m.knows < len(w.log)-1 {
			acts = append(acts, "learn "+daemonName(i))
		}
	}
	for _, l := range w.net {
		acts = append(acts, l.text)
	}
	return acts
}

func (w *world) recipient(m *sticky.Message) *machine {
	for _, d := range w.daemons {
		if d.incarnation == m.To {
			return d
		}
	}
	return nil
}

// do makes one of the actions happen.
func (w *world) do(act string) {
	w.perform(act)
	w.sweep()
}

func (w *world) perform(act string) {
	verb, name, _ := strings.Cut(act, " ")
	if l := w.find(act); l != nil {
		w.deliver(l)
		return
	}
	m := w.own(int(name[0] - 'a'))
	switch verb {
	case "stored":
		w.write(m)
		w.settle(m)
	case "want":
		m.wants++
		m.proposer.Want(m.incarnation, theNow, m.watermarks(m.counted), m.watermarks(min(m.counted+w.s.headroom, w.s.limit)))
		w.accept(m)
	case "consume":
		m.counted++
		w.consumed++
	case "poke":
		w.left.pokes--
		m.at += 2 * AcceptAgain
		w.accept(m)
	case "again":
		w.left.pokes--
		m.at += 2 * requestAgain
		w.settle(m)
	case "forget":
		w.left.rebirth--
		m.counted = 0
		w.newProposer(m)
	case "crash", "lose":
		w.restart(m, verb == "lose")
	case "announce":
		l := w.log[0]
		next := l.Active.Clone()
		next.Regions = []route.Region{{Name: "r", Weight: 1, Replicas: names(w.s.change)}}
		if err := l.Announce(next, w.report); err != nil {
			panic(err)
		}
		w.log = append(slices.Clip(w.log), l)
	case "activate":
		l := w.log[1]
		l.Turn(theNow, w.report)
		w.log = append(slices.Clip(w.log), l)
	case "learn":
		m.knows++
		m.r.Follow(m.at, w.log[m.knows].Active, w.log[m.knows].Announced)
		w.settle(m)
	}
}

func (w *world) restart(m *machine, lose bool) {
	start := Start{Stored: m.disk}
	if lose {
		w.left.lose--
		w.generations++
		start = Start{Generation: w.generations}
		if w.s.mutated(forgetsLoss) {
			start = Start{}
		}
	} else {
		w.left.crash--
		m.disk = cloneStored(m.disk)
		start.Stored = cloneStored(m.disk)
	}
	w.start(m, start)
	w.settle(m)
	if m.r.flight != nil {
		w.write(m) // a start without a store is another crash
		w.settle(m)
	}
	w.meet()
}

// report returns what an acceptor has on disk.
func (w *world) report(_, name string) (Report, bool) {
	r := w.daemons[name[0]-'a'].r.Report()
	return r, true
}

func (w *world) deliver(l *letter) {
	m := w.own(slices.Index(w.daemons, w.recipient(&l.m)))
	if len(l.m.Accepted) == 0 {
		c := l.m
		w.receive(m, &c)
		w.halve(m)
		w.settle(m)
		return
	}
	vote := l.m.Accepted[0]
	if w.s.mutated(ignoresGenerations) {
		vote.Generations = nil
	}
	switch m.proposer.Accepted(&vote, m.r.Routing()) {
	case Chosen:
		if !w.s.late {
			held := min(m.proposer.Held().Amount(theWindow), w.s.limit)
			w.consumed += held - min(held, m.counted)
			m.counted = max(m.counted, held)
		}
	case Lost:
		m.counted = max(m.counted, m.proposer.Known().Amount(theWindow))
	}
}

// worst returns the greatest consumption, present or possible, at any time.
func (w *world) worst() uint64 {
	sum := w.consumed
	for _, m := range w.daemons {
		if held := min(m.proposer.Held().Amount(theWindow), w.s.limit); held > m.counted {
			sum += held - m.counted
		}
	}
	return sum
}
