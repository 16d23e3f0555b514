package sticky

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/georld/rld/crdt"
)

// setup is a small world: what may happen in it, and how often.
type setup struct {
	name    string
	daemon  int   // daemons of the region, named a, b, c ...
	set     []int // the replicas of the first layout; nil: all
	homes   []int // daemons that want to be home
	limit   uint64
	chunk   uint64
	wants   int // per home and incarnation
	crash   int // crashes, after which the daemon starts again
	lose    int // crashes that cost the disk
	pokes   int // messages sent again
	rebirth int // keepers forgotten by a home that lives on
	async   bool
	change  []int // replicas of layout 2, which the first daemon proposes
	late    bool  // homes consume step by step, not all at once
	broken  flaw
	blind   bool // keepers do not look at lives
	half    bool // half of the replicas is a majority
	oneTerm bool // keepers have all the same term
	large   bool // too many states for every run of the tests
}

// world is one state of a setup. Messages that were sent stay: each may be
// delivered at any time, in any order, never or again.
type world struct {
	s        *setup
	daemons  []*machine
	net      []*letter // ordered by when they were sent first
	has      map[string]bool
	slots    crdt.Slot
	consumed uint64
	left     struct{ crash, lose, pokes, rebirth int }
	changed  bool
	running  bool
	lives    uint64
}

// letter is a message with one item.
type letter struct {
	m    Message
	text string
}

// machine is a daemon: a replica, its disk, and the home of the one key.
type machine struct {
	name    string
	slot    crdt.Slot
	old     []crdt.Slot
	at      time.Duration
	r       *Replica
	disk    *Stored
	keeper  Keeper
	terms   uint64
	counted uint64 // what the home counts as consumed
	wants   int
}

const (
	theLabel = int64(1_000_000)
	theNow   = theLabel + 10
	theEnd   = theLabel + 60_000
)

var theKey = crdt.Key{Hi: 1, Lo: 2}

func daemonName(i int) string { return string(rune('a' + i)) }

func names(of []int) []string {
	out := make([]string, len(of))
	for i, d := range of {
		out[i] = daemonName(d)
	}
	return out
}

func (s *setup) genesis() Layout {
	set := s.set
	if set == nil {
		for i := range s.daemon {
			set = append(set, i)
		}
	}
	return Layout{Number: 1, Regions: []Region{{Name: "r", Weight: 1, Replicas: names(set)}}}
}

func newWorld(s *setup) *world {
	w := &world{s: s, has: map[string]bool{}}
	w.left.crash, w.left.lose, w.left.pokes, w.left.rebirth = s.crash, s.lose, s.pokes, s.rebirth
	for i := range s.daemon {
		m := &machine{name: daemonName(i)}
		w.daemons = append(w.daemons, m)
		w.start(m, Start{First: true})
		w.settle(m)
	}
	w.meet()
	w.running = true
	return w
}

// start starts a daemon as a new incarnation.
func (w *world) start(m *machine, start Start) {
	if m.slot != 0 {
		m.old = append(m.old, m.slot)
	}
	w.slots++
	m.slot = w.slots
	r, err := NewReplica(Config{Region: "r", Name: m.name, Genesis: w.s.genesis()}, start)
	if err != nil {
		panic(err)
	}
	r.broken = w.s.broken
	m.r, m.at = r, 0
	if start.Stored == nil {
		m.disk = &Stored{}
	}
	m.terms, m.counted, m.wants = 0, 0, 0
	w.newKeeper(m)
}

func (w *world) newKeeper(m *machine) {
	m.terms++
	if w.s.oneTerm {
		m.terms = 1
	}
	m.keeper = Keeper{Term: m.terms, blind: w.s.blind}
}

// meet tells all daemons who lives. Former incarnations are taken for alive, but
// not for those to talk to.
func (w *world) meet() {
	var peers []Peer
	for _, m := range w.daemons {
		peers = append(peers, Peer{ID: m.slot, Name: m.name, Region: "r", Ready: true})
		for _, id := range m.old {
			peers = append(peers, Peer{ID: id, Name: m.name, Region: "r"})
		}
	}
	for _, m := range w.daemons {
		m.r.Peers(m.at, m.slot, slices.Clone(peers))
		m.r.view.half = w.s.half
		w.settle(m)
	}
}

// settle does what a replica asks for, but for a store when those take time.
func (w *world) settle(m *machine) {
	for range 10 {
		rd := m.r.Ready(m.at)
		m.r.view.half = w.s.half
		for i := range rd.Messages {
			w.post(&rd.Messages[i])
		}
		if rd.Store == nil {
			return
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
	for _, e := range m.r.flight.entries {
		if err := m.disk.Apply(e); err != nil {
			panic(err)
		}
	}
	m.r.Stored()
}

// post sends the items of a message, each by itself. What is said of layouts
// travels with copies alone.
func (w *world) post(m *Message) {
	base := Message{From: m.From, To: m.To, Number: m.Number}
	for i := range m.Raises {
		c := base
		c.Raises = m.Raises[i : i+1]
		w.send(c)
	}
	for i := range m.Votes {
		c := base
		c.Votes = m.Votes[i : i+1]
		w.send(c)
	}
	for i := range m.Copies {
		c := base
		c.Copies, c.Layouts, c.Life = m.Copies[i:i+1], m.Layouts, m.Life
		w.send(c)
	}
	for i := range m.Pages {
		c := base
		c.Pages = m.Pages[i : i+1]
		w.send(c)
	}
}

func (w *world) send(m Message) {
	text := describe(&m)
	if !w.has[text] && w.matters(&m) {
		w.has[text] = true
		w.net = append(w.net, &letter{m, text})
	}
}

// matters reports whether a message can have any effect, now or later.
func (w *world) matters(m *Message) bool {
	to := w.recipient(m)
	if to == nil {
		return false
	}
	return len(m.Votes) == 0 || to.keeper.busy && m.Votes[0].Ballot == to.keeper.ballot && m.Votes[0].Seq == to.keeper.seq
}

// sweep drops the messages that have no effect any more.
func (w *world) sweep() {
	kept := make([]*letter, 0, len(w.net)+4)
	for _, l := range w.net {
		if w.matters(&l.m) {
			kept = append(kept, l)
		} else {
			delete(w.has, l.text)
		}
	}
	w.net = kept
}

// describe says all that matters of a message.
func describe(m *Message) string {
	head := fmt.Sprintf("%d>%d n%d ", m.From, m.To, m.Number)
	switch {
	case len(m.Raises) == 1:
		r := &m.Raises[0]
		return head + fmt.Sprintf("raise %s #%d to %s knowing %s", ballotText(r.Ballot), r.Seq, amounts(r.Marks), amounts(r.Known))
	case len(m.Votes) == 1:
		v := &m.Votes[0]
		if v.OK {
			return head + fmt.Sprintf("vote %s #%d yes %v", ballotText(v.Ballot), v.Seq, livesText(v.Lives))
		}
		return head + fmt.Sprintf("vote %s #%d no %s: %s %s %v", ballotText(v.Ballot), v.Seq, v.Why, ballotText(v.Promised), amounts(v.Held), livesText(v.Lives))
	case len(m.Copies) == 1:
		return head + fmt.Sprintf("copy of life %d for %d", m.Copies[0].Life, m.Copies[0].Number)
	}
	p := &m.Pages[0]
	if p.Why != NoWhy {
		return head + fmt.Sprintf("page for %d: %s", p.Number, p.Why)
	}
	text := head + fmt.Sprintf("page for %d %v", p.Number, livesText(p.Lives))
	for _, r := range p.Records {
		text += fmt.Sprintf(" %s %s", ballotText(r.Ballot), amounts(r.Marks))
	}
	return text
}

func ballotText(b Ballot) string {
	if b.Term > 1 {
		return fmt.Sprintf("%d.%d/%d", b.Round, b.Home, b.Term)
	}
	return fmt.Sprintf("%d.%d", b.Round, b.Home)
}

func amounts(m Marks) string {
	var out []string
	for _, x := range m {
		out = append(out, strconv.FormatUint(x.Amount, 10))
	}
	return "[" + strings.Join(out, " ") + "]"
}

func livesText(lives []Life) string {
	var out []string
	for _, l := range lives {
		for i := range 8 {
			if NameHash(daemonName(i)) == l.Voter {
				out = append(out, fmt.Sprintf("%s%d", daemonName(i), l.Life))
			}
		}
	}
	slices.Sort(out)
	return "lives[" + strings.Join(out, " ") + "]"
}

// actions returns all that may happen now.
func (w *world) actions() []string {
	var acts []string
	for i := range w.daemons {
		m, name := w.daemons[i], daemonName(i)
		if m.r.flight != nil {
			acts = append(acts, "stored "+name)
		}
		if slices.Contains(w.s.homes, i) {
			if !m.keeper.Busy() && m.wants < w.s.wants && m.counted < w.s.limit {
				acts = append(acts, "want "+name)
			}
			if w.s.late && m.counted < min(m.keeper.Held().Amount(theLabel), w.s.limit) {
				acts = append(acts, "consume "+name)
			}
			if w.left.pokes > 0 && m.keeper.Busy() {
				acts = append(acts, "poke "+name)
			}
			if w.left.rebirth > 0 && m.keeper.Ballot().Round > 0 {
				acts = append(acts, "forget "+name)
			}
		}
		if w.left.pokes > 0 && m.r.copying != nil {
			acts = append(acts, "again "+name)
		}
		if w.left.crash > 0 {
			acts = append(acts, "crash "+name)
		}
		if w.left.lose > 0 {
			acts = append(acts, "lose "+name)
		}
	}
	if w.s.change != nil && !w.changed {
		acts = append(acts, "propose a")
	}
	for _, l := range w.net {
		acts = append(acts, l.text)
	}
	return acts
}

func (w *world) recipient(m *Message) *machine {
	for _, d := range w.daemons {
		if d.slot == m.To {
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
	if w.has[act] {
		w.deliver(act)
		return
	}
	m := w.daemons[name[0]-'a']
	switch verb {
	case "stored":
		w.write(m)
		w.settle(m)
	case "want":
		m.wants++
		m.keeper.Want(m.slot, theNow, m.marks(m.counted), m.marks(min(m.counted+w.s.chunk, w.s.limit)))
		w.raise(m)
	case "consume":
		m.counted++
		w.consumed++
	case "poke":
		w.left.pokes--
		m.at += 2 * RaiseAgain
		w.raise(m)
	case "again":
		w.left.pokes--
		m.at += 2 * copyAgain
		w.settle(m)
	case "forget":
		w.left.rebirth--
		m.counted = 0
		w.newKeeper(m)
	case "crash", "lose":
		w.restart(m, verb == "lose")
	case "propose":
		w.changed = true
		w.propose(m)
	}
}

func (m *machine) marks(amount uint64) Marks {
	if amount == 0 {
		return nil
	}
	return Marks{{Label: theLabel, Amount: amount, End: theEnd}}
}

// raise sends what a keeper has to send, to its own replica too.
func (w *world) raise(m *machine) {
	m.keeper.Raises(m.at, m.r.View(), func(to crdt.Slot, r Raise) {
		r.Key = theKey
		w.send(Message{From: m.slot, To: to, Number: m.r.View().Number(), Raises: []Raise{r}})
	})
}

func (w *world) restart(m *machine, lose bool) {
	start := Start{Stored: m.disk}
	if lose {
		w.left.lose--
		w.lives++
		start = Start{Life: w.lives}
	} else {
		w.left.crash--
		m.disk = cloneStored(m.disk)
		start.Stored = cloneStored(m.disk)
	}
	w.start(m, start)
	if lose && w.s.broken&flawAmnesia != 0 {
		m.r.meta.Life, m.r.meta.Lives = 0, nil
	}
	w.settle(m)
	if m.r.flight != nil {
		w.write(m) // a start without a store is another crash
		w.settle(m)
	}
	w.meet()
}

// propose puts layout 2 to its proposer and to all others, as gossip would.
func (w *world) propose(m *machine) {
	l, err := Change{Region: "r", Replicas: names(w.s.change)}.Of(m.r.Layout())
	if err != nil {
		panic(err)
	}
	l.Number, l.Regions[0].Former = 2, m.r.Layout().Regions[0].Replicas
	for _, i := range w.s.change {
		d := w.daemons[i].r
		l.Regions[0].Lives = withLife(l.Regions[0].Lives, NameHash(d.cfg.Name), d.meta.Life)
	}
	m.r.adopt(&l)
	w.settle(m)
}

func (w *world) deliver(text string) {
	i := slices.IndexFunc(w.net, func(l *letter) bool { return l.text == text })
	l := w.net[i]
	m := w.recipient(&l.m)
	if len(l.m.Votes) == 0 {
		c := l.m
		_ = m.r.Receive(m.at, theNow, &c)
		m.r.view.half = w.s.half
		w.settle(m)
		return
	}
	switch m.keeper.Vote(&l.m.Votes[0], m.r.View()) {
	case Raised:
		if !w.s.late {
			held := min(m.keeper.Held().Amount(theLabel), w.s.limit)
			w.consumed += held - min(held, m.counted)
			m.counted = max(m.counted, held)
		}
	case Lost:
		m.counted = max(m.counted, m.keeper.Known().Amount(theLabel))
	}
}

// worst returns what is consumed or may be at any time.
func (w *world) worst() uint64 {
	sum := w.consumed
	for _, m := range w.daemons {
		if held := min(m.keeper.Held().Amount(theLabel), w.s.limit); held > m.counted {
			sum += held - m.counted
		}
	}
	return sum
}

func cloneStored(s *Stored) *Stored {
	c := *s
	c.Records, c.index = slices.Clone(s.Records), nil
	return &c
}

func (w *world) clone() *world {
	c := *w
	c.net = slices.Clip(w.net)
	c.has = make(map[string]bool, len(w.has)+4)
	for t := range w.has {
		c.has[t] = true
	}
	c.daemons = make([]*machine, len(w.daemons))
	for i, m := range w.daemons {
		n := *m
		n.old = slices.Clip(m.old)
		n.r = m.r.clone()
		n.disk = cloneStored(m.disk)
		n.keeper.cast = slices.Clone(m.keeper.cast)
		c.daemons[i] = &n
	}
	return &c
}

func (r *Replica) clone() *Replica {
	c := *r
	c.records = make(map[crdt.Key]*ledger, len(r.records))
	for k, l := range r.records {
		n := *l
		c.records[k] = &n
	}
	c.heard, c.told, c.since = cloneMap(r.heard), cloneMap(r.told), cloneMap(r.since)
	c.batch = r.batch.clone()
	if r.flight != nil {
		f := r.flight.clone()
		c.flight = &f
	}
	if r.copying != nil {
		n := *r.copying
		n.sources = slices.Clone(n.sources)
		c.copying = &n
	}
	c.ready, c.events = slices.Clone(r.ready), nil
	return &c
}

func cloneMap[K comparable, V any](m map[K]V) map[K]V {
	c := make(map[K]V, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

func (b *batch) clone() batch {
	c := batch{slices.Clone(b.dirty), slices.Clone(b.entries), slices.Clone(b.messages)}
	for i := range c.messages {
		m := &c.messages[i]
		m.Votes, m.Copies, m.Pages = slices.Clip(m.Votes), slices.Clip(m.Copies), slices.Clip(m.Pages)
	}
	return c
}

// key is a fingerprint of all that matters of a world.
func (w *world) key() [16]byte {
	b := make([]byte, 0, 512)
	n := func(v uint64) { b = binary.AppendUvarint(b, v) }
	flag := func(v bool) {
		if v {
			n(1)
		} else {
			n(0)
		}
	}
	text := func(s string) { b = append(append(b, s...), 0) }
	n(w.consumed)
	n(uint64(w.left.crash)<<24 | uint64(w.left.lose)<<16 | uint64(w.left.pokes)<<8 | uint64(w.left.rebirth))
	flag(w.changed)
	for _, m := range w.daemons {
		n(uint64(m.slot))
		n(m.counted)
		n(uint64(m.wants))
		n(uint64(m.at))
		m.keeper.print(n, flag, text)
		m.r.print(n, flag, text)
		n(m.disk.Layout.Number)
		n(m.disk.Meta.Life)
		flag(m.disk.Meta.Voting)
		flag(m.disk.Next != nil)
		text(livesText(m.disk.Meta.Lives))
		for _, r := range m.disk.Records {
			text(ballotText(r.Ballot) + amounts(r.Marks))
		}
	}
	texts := make([]string, len(w.net))
	for i, l := range w.net {
		texts[i] = l.text
	}
	slices.Sort(texts)
	for _, t := range texts {
		text(t)
	}
	h := fnv.New128a()
	h.Write(b)
	return [16]byte(h.Sum(nil))
}

func (k *Keeper) print(n func(uint64), flag func(bool), text func(string)) {
	n(k.number)
	n(k.seq)
	n(k.top)
	n(uint64(k.tries))
	flag(k.busy)
	flag(k.lost)
	text(ballotText(k.ballot) + amounts(k.held) + amounts(k.known) + amounts(k.flight.marks) + amounts(k.flight.known) + livesText(k.lives))
	votes := slices.Clone(k.cast)
	slices.SortFunc(votes, func(a, b cast) int {
		if a.voter < b.voter {
			return -1
		}
		return 1
	})
	for _, c := range votes {
		n(c.voter)
		n(c.life)
		n(uint64(c.why))
	}
}

func (r *Replica) print(n func(uint64), flag func(bool), text func(string)) {
	n(r.layout.Number)
	n(r.meta.Life)
	flag(r.meta.Voting)
	flag(r.next != nil)
	text(livesText(r.meta.Lives))
	if l := r.records[theKey]; l != nil {
		text(ballotText(l.ballot) + amounts(l.marks))
	}
	for _, b := range [...]*batch{&r.batch, r.flight} {
		if b == nil {
			continue
		}
		n(uint64(len(b.dirty)))
		for _, e := range b.entries {
			flag(e.Record != nil)
			flag(e.Meta != nil)
			if e.Record != nil {
				text(ballotText(e.Record.Ballot) + amounts(e.Record.Marks))
			}
			if e.Meta != nil {
				n(e.Meta.Life)
				flag(e.Meta.Voting)
				text(livesText(e.Meta.Lives))
			}
		}
		for i := range b.messages {
			m := &b.messages[i]
			n(uint64(m.To))
			for j := range m.Votes {
				text(describe(&Message{Votes: m.Votes[j : j+1]}))
			}
			for j := range m.Copies {
				text(describe(&Message{Copies: m.Copies[j : j+1]}))
			}
			for j := range m.Pages {
				text(describe(&Message{Pages: m.Pages[j : j+1]}))
			}
		}
	}
	if c := r.copying; c != nil {
		for i := range c.sources {
			s := &c.sources[i]
			flag(s.done)
			n(s.life)
			flag(s.ever)
			text(livesText(s.lives))
		}
	}
}
