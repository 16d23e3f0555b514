package explore

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/wire"
)

// inputKind is what can happen to one daemon.
type inputKind uint8

const (
	inStart inputKind = iota // a new process
	inCast                   // it learns the live processes
	inTick
	inAsk
	inFrame
)

// input is one thing that happens to a daemon at a tick.
type input struct {
	kind inputKind
	tick int16
	cast cast  // of inStart and inCast
	arg  int32 // of inFrame: the frame
}

// cast is the live process of each daemon.
type cast [maxScopeDaemons]uint8

// noHistory comes before the first process.
const noHistory = int32(-1)

// history is a state of a daemon: all that happened to it, the last of it being
// in. A history is immutable.
type history struct {
	parent  int32
	in      input
	daemon  int
	cast    cast // as the daemon knows it; its own process among them
	sent    []int32
	facts   []fact     // the counts that it holds, in the order of cells
	counted []fact     // what its processes counted
	asked   verdict    // of inAsk
	ages    []ageClaim // of its links
	keeps   bool       // whether it keeps the counts of its region

	// live is the process, when it is at hand. The next input takes it away;
	// for another one the process is made again from the start.
	live *process
}

// fact is a count of an incarnation in a window: one that a daemon holds, or
// that a process itself made.
type fact struct {
	kind        gossip.Kind
	incarnation crdt.Incarnation
	window      int64
	hits        uint64
}

// ageClaim is that all that a peer counted before a virtual time is known.
type ageClaim struct {
	peer  crdt.Incarnation
	until time.Duration
	kept  bool // the peer's counts are kept
}

// verdict is a decision and the counts held before it.
type verdict struct {
	allowed bool
	window  int64
	gate    node.Gate
}

// run is a process of a daemon, by the number of its restarts.
type run struct {
	daemon   int
	restarts uint8
}

// process is a running daemon.
type process struct {
	node  *node.Node
	start time.Duration
}

// explorer explores a scope.
type explorer struct {
	scope        Scope
	regions      []string // of each daemon
	names        []string
	incarnations [][maxScopeRestarts + 1]crdt.Incarnation // of the processes of each daemon
	runs         map[crdt.Incarnation]run                 // the first process that has it
	tick         time.Duration
	base         int64 // wall time of tick 0, Unix nanoseconds
	set          *rules.Set
	front        *node.Matcher
	call         node.Call
	key          crdt.Key // that all calls count

	histories []history
	steps     map[transition]int32
	kept      []int32 // histories whose process may be at hand, round and round
	hand      int     // the place of the one kept longest
	frames    []sentFrame
	byContent map[sentContent]int32
	seen      map[[maxScopeDaemons]int32]struct{}
	path      []action
	out       Explored
}

// maxKept bounds the processes that are at hand.
const maxKept = 1_024

// transition is what leads from one history to the next.
type transition struct {
	from int32
	in   input
}

// sentFrame is a frame that was sent.
type sentFrame struct {
	from, to int // daemons
	stream   stream
	bytes    []byte
}

// sentContent tells frames apart.
type sentContent struct {
	stream stream
	bytes  string
}

// stream is the incarnations of the sender and the receiver of a frame.
type stream struct{ from, to crdt.Incarnation }

func streamOf(m *gossip.Message) stream { return stream{m.From, m.To} }

// decode returns the messages of the frame.
func (f *sentFrame) decode() ([]gossip.Message, error) {
	return new(wire.Decoder).Decode(f.stream.from, f.stream.to, f.bytes)
}

// errViolated ends an exploration that found something.
var errViolated = errors.New("sim: exploration found a violation")

func newExplorer(s Scope) (*explorer, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	e := &explorer{
		scope: s, tick: cmp.Or(s.Tick, gossip.DefaultInterval), steps: map[transition]int32{}, byContent: map[sentContent]int32{},
		seen: map[[maxScopeDaemons]int32]struct{}{}, runs: map[crdt.Incarnation]run{},
		kept: slices.Repeat([]int32{noHistory}, maxKept),
		out:  Explored{Seen: map[string]uint64{}},
	}
	for r, n := range s.Regions {
		for i := range n {
			e.regions = append(e.regions, string(rune('a'+r)))
			e.names = append(e.names, fmt.Sprintf("%c%d", 'a'+r, i+1))
			var incarnations [maxScopeRestarts + 1]crdt.Incarnation
			for n := range incarnations {
				r := run{len(e.incarnations), uint8(n)}
				incarnations[n] = crdt.Incarnation(e.rng(r).Uint64())
				if _, twice := e.runs[incarnations[n]]; !twice {
					e.runs[incarnations[n]] = r
				}
			}
			e.incarnations = append(e.incarnations, incarnations)
		}
	}
	yaml := fmt.Sprintf("domain: d\ndescriptors:\n  - {key: k, rate_limit: "+
		"{unit: second, unit_multiplier: %d, requests_per_unit: %d, algorithm: %v%s}}\n", s.Seconds, s.Limit, s.Algorithm, s.mode())
	set, found := limits.Parse([]limits.File{{Name: "scope", Data: []byte(yaml)}}, limits.Options{})
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("sim: scope %s: %w", s.Name, err)
	}
	e.set, e.front = set, node.NewMatcher(set, rules.NewHasher([rules.SecretBytes]byte{1}), node.MatcherOptions{})
	if err := e.resolve(&e.call); err != nil {
		return nil, err
	}
	e.key = e.call.Hits()[0].Key
	return e, nil
}

// now is the virtual time of a tick.
func (e *explorer) now(tick int16) time.Duration {
	warm := min(tick, warmTicks)
	return time.Duration(warm)*gossip.DefaultInterval + time.Duration(tick-warm)*e.tick
}

// instant returns the readings of a daemon's clocks at a virtual time.
// Monotonic clocks of different daemons are unrelated.
func (e *explorer) instant(p *process, now time.Duration) node.Instant {
	return node.Instant{Mono: now - p.start, Wall: e.base + int64(now)}
}

// millis is the wall clock at a virtual time.
func (e *explorer) millis(now time.Duration) int64 {
	return (e.base + int64(now)) / int64(time.Millisecond)
}

// rng draws the incarnation of a process, the same in each exploration.
func (e *explorer) rng(r run) *rand.Rand {
	if e.scope.mutation.reuseIncarnation {
		r.restarts = 0
	}
	return rand.New(rand.NewPCG(uint64(r.daemon)+1, uint64(r.restarts)+1))
}

// after returns the history that an input leads to.
func (e *explorer) after(from int32, daemon int, in input) (int32, error) {
	key := transition{from, in}
	if from != noHistory {
		if to, ok := e.steps[key]; ok {
			return to, nil
		}
	}
	p := e.process(from)
	next := history{parent: from, in: in, daemon: daemon}
	if from != noHistory {
		was := &e.histories[from]
		next.cast, next.counted, next.ages = was.cast, was.counted, was.ages
		was.live = nil
	}
	p, refused, err := e.feed(p, daemon, in, &next)
	if err != nil {
		return 0, err
	}
	if refused {
		return e.refused(key, p, &next)
	}
	to := int32(len(e.histories))
	e.histories = append(e.histories, next)
	e.keep(to, p)
	if from != noHistory {
		e.steps[key] = to
		err = e.checkHistory(&e.histories[from], &e.histories[to])
	}
	return to, err
}

// refused checks that a rejected message changed nothing, and leaves the daemon
// in its former state.
func (e *explorer) refused(key transition, p *process, next *history) (int32, error) {
	was := &e.histories[key.from]
	e.keep(key.from, p)
	if !slices.Equal(was.facts, next.facts) || !slices.Equal(was.ages, next.ages) || len(next.sent) > 0 {
		return 0, e.violated("%s took something in of a message that it refused", e.names[next.daemon])
	}
	e.steps[key] = key.from
	return key.from, nil
}

// keep keeps the process of a history at hand, in the place of another one.
func (e *explorer) keep(at int32, p *process) {
	place := &e.kept[e.hand]
	e.hand = (e.hand + 1) % maxKept
	if *place != noHistory {
		e.histories[*place].live = nil
	}
	*place = at
	e.histories[at].live = p
}

// process returns the process of a history: the one at hand, or one that
// everything happened to once more.
func (e *explorer) process(at int32) *process {
	if at != noHistory && e.histories[at].live != nil {
		return e.histories[at].live
	}
	return e.replay(at)
}

// replay makes the process of a history from the start.
func (e *explorer) replay(at int32) *process {
	var inputs []input
	for i := at; i != noHistory; i = e.histories[i].parent {
		inputs = append(inputs, e.histories[i].in)
	}
	var p *process
	for _, in := range slices.Backward(inputs) {
		p, _, _ = e.feed(p, e.histories[at].daemon, in, nil) // as before, without an error
	}
	return p
}

// feed hands an input to a process and records the effects in h, unless h is
// nil. refused is true for a message that Step rejected.
func (e *explorer) feed(p *process, daemon int, in input, h *history) (_ *process, refused bool, err error) {
	if in.kind == inStart {
		if p, err = e.start(daemon, in); err != nil {
			return nil, false, err
		}
	}
	now := e.now(in.tick)
	at := e.instant(p, now)
	switch in.kind {
	case inStart, inCast:
		p.node.Peers(at, e.peers(in.cast))
		if h != nil {
			h.cast = in.cast
		}
	case inTick:
		p.node.Tick(at)
	case inAsk:
		err = e.ask(p, at, h)
	case inFrame:
		var msgs []gossip.Message
		if msgs, err = e.frames[in.arg].decode(); err == nil {
			refused = p.node.Step(at, &msgs[0]) != nil
		}
	}
	if err != nil {
		return nil, false, err
	}
	ready := p.node.Ready()
	if h == nil {
		return p, refused, nil
	}
	for _, ev := range ready.Events {
		e.out.Seen[ev.Kind.String()]++
	}
	if err := e.send(daemon, ready.Messages, h); err != nil {
		return nil, false, err
	}
	e.look(p, now, h)
	return p, refused, nil
}

func (e *explorer) start(daemon int, in input) (*process, error) {
	cfg := node.Default()
	cfg.Region, cfg.Name, cfg.MaxKeys = e.regions[daemon], e.names[daemon], 16
	cfg.Gossip = gossip.Config{WANInterval: gossip.DefaultInterval, ReadyWithin: 5 * gossip.DefaultInterval, MaxCells: 1_024}
	if e.scope.Rights {
		cfg.Allotments = e.sharesOf(daemon, in.cast[daemon], e.now(in.tick))
	}
	n, err := node.New(cfg, e.rng(run{daemon, in.cast[daemon]}))
	if err != nil {
		return nil, err
	}
	p := &process{node: n, start: e.now(in.tick) - time.Duration(1+daemon)*time.Second}
	n.SetRules(e.instant(p, e.now(in.tick)), e.set)
	return p, nil
}

func (e *explorer) peers(c cast) []gossip.Peer {
	var out []gossip.Peer
	for d := range e.names {
		out = append(out, gossip.Peer{ID: e.incarnations[d][c[d]], Name: e.names[d], Region: e.regions[d]})
	}
	return out
}

// resolve makes c the call that all daemons decide.
func (e *explorer) resolve(c *node.Call) error {
	c.Reset()
	c.Domain = "d"
	c.Descriptors = append(c.Descriptors, rules.Descriptor{Hits: 1, Entries: []rules.Entry{{Key: "k", Value: "v"}}})
	return e.front.Resolve(c)
}

// ask makes a request and enters it into the counted.
func (e *explorer) ask(p *process, at node.Instant, h *history) error {
	c := &e.call
	if err := e.resolve(c); err != nil {
		return err
	}
	p.node.Probe(at, c.Hits(), c.Statuses)
	e.front.Decide(c)
	p.node.Charge(at, c.Hits(), c.Statuses)
	if h == nil {
		return nil
	}
	h.asked = verdict{allowed: c.Decision.Allowed, window: e.windowAt(e.now(h.in.tick)), gate: c.Statuses[0].Gate}
	if !h.asked.allowed {
		return nil
	}
	incarnation := p.node.Incarnation()
	h.counted = slices.Clone(h.counted)
	i := slices.IndexFunc(h.counted, func(b fact) bool { return b.incarnation == incarnation && b.window == h.asked.window })
	if i < 0 {
		i, h.counted = len(h.counted), append(h.counted, fact{kind: gossip.Daemon, incarnation: incarnation, window: h.asked.window})
	}
	h.counted[i].hits++
	return nil
}

// windowAt is the window that counts at a virtual time: the window's, and for a
// bucket one for all.
func (e *explorer) windowAt(now time.Duration) int64 {
	if e.scope.fold().Drains() {
		return 0
	}
	return e.millis(now) - e.millis(now)%e.width()
}

// width is the length of a window in milliseconds.
func (e *explorer) width() int64 { return int64(e.scope.Seconds) * 1000 }

// send puts messages on the network.
func (e *explorer) send(from int, msgs []gossip.Message, h *history) error {
	for i := range msgs {
		bytes, err := e.encode(&msgs[i])
		if err != nil {
			return err
		}
		to, ok := e.runs[msgs[i].To]
		if !ok {
			return e.violated("%s sent a message to nobody", e.names[from])
		}
		content := sentContent{streamOf(&msgs[i]), string(bytes)}
		n, known := e.byContent[content]
		if !known {
			n = int32(len(e.frames))
			e.frames = append(e.frames, sentFrame{from, to.daemon, streamOf(&msgs[i]), bytes})
			e.byContent[content] = n
		}
		h.sent = append(h.sent, n)
	}
	return nil
}

// encode returns a message as it is sent.
func (e *explorer) encode(m *gossip.Message) ([]byte, error) {
	if e.scope.mutation.mangle != nil {
		e.scope.mutation.mangle(m)
	}
	return wire.Encode(nil, []gossip.Message{*m})
}

// factsOf returns the counts of cells.
func (e *explorer) factsOf(cells []gossip.Cell) []fact {
	var facts []fact
	for _, c := range cells {
		window := c.Window
		if e.scope.fold().Drains() {
			window = 0
		}
		facts = append(facts, fact{c.Kind, c.Incarnation, window, c.Value.P - c.Value.N})
	}
	return facts
}

// look records the counts that a process holds, and the ages of its views.
func (e *explorer) look(p *process, now time.Duration, h *history) {
	at := e.instant(p, now)
	h.facts, h.ages, h.keeps = e.factsOf(p.node.Cells(at, nil)), nil, e.keeps(p, 0)
	for l := range p.node.Links(at) {
		if l.Age >= 0 {
			h.ages = append(h.ages, ageClaim{l.Peer.ID, now - l.Unsent, e.keeps(p, l.Peer.ID)})
		}
	}
}
