package control

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
)

// world is a cluster of nodes in virtual time, with a network that delays and
// loses messages, and disks that lose what was not synced.
type world struct {
	t                       testing.TB
	rng                     *rand.Rand
	now                     time.Duration
	machines                []*machine
	flights                 []flight
	loss                    float64
	delay                   time.Duration                         // the longest
	between                 func(from, to *machine) time.Duration // the delay, nil for a random one
	cut                     func(from, to *machine) bool
	founders                []string
	heartbeat, replaceAfter time.Duration // Config.Heartbeat and ReplaceAfter
	last                    crdt.Incarnation
	events                  []string
	// committed is the history by recovery and index, as the first daemon that
	// applied an entry has it.
	committed map[Recovery]map[uint64]string
	ledger    ledger
	// layouts reports that daemons have acceptors, and spent counts what their
	// owners consumed.
	layouts bool
	spent   int
}

// machine is a daemon with its disk.
type machine struct {
	name, region string
	durable      bool
	witness      bool
	up, paused   bool
	node         *Node
	address      crdt.Incarnation
	disk         [][]byte
	writing      [][]byte
	written      time.Duration
	failing      bool
	results      []Result
	seen         Version
	corrupt      bool          // a test changed its record
	keeps        bool          // it decides calls by former limits
	skew         time.Duration // of its clock
	acceptor     acceptorModel
	files        []RuleFile
	format       int // that it reads, 0 for Format
}

// readFiles gives the node the rules of the files.
func (m *machine) readFiles(t testing.TB) {
	set, err := language().Parse(m.files, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.node.Limits().Local(set)
	var own *RuleSet
	if len(m.files) > 0 {
		if own, err = NewRuleSet(m.files); err != nil {
			t.Fatal(err)
		}
	}
	m.node.Limits().Files(own)
}

// wall returns the clock of a machine in Unix milliseconds.
func (m *machine) wall(w *world) int64 { return (w.now + m.skew).Milliseconds() }

type flight struct {
	at   time.Duration
	from *machine
	m    Message
}

const tick = 20 * time.Millisecond

func newWorld(t testing.TB, seed uint64, founders ...string) *world {
	return &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), founders: founders, delay: 60 * time.Millisecond, replaceAfter: 10 * time.Second,
		cut: func(_, _ *machine) bool { return false }, committed: map[Recovery]map[uint64]string{}, ledger: newLedger(),
	}
}

func (w *world) add(region, name string, durable bool) *machine {
	m := &machine{name: name, region: region, durable: durable}
	w.machines = append(w.machines, m)
	w.start(m)
	return m
}

func (w *world) find(name string) *machine {
	i := slices.IndexFunc(w.machines, func(m *machine) bool { return m.name == name })
	if i < 0 {
		w.t.Fatalf("no machine %q", name)
	}
	return w.machines[i]
}

func (w *world) config(m *machine) Config {
	return Config{
		Name: m.name, Region: m.region, Durable: m.durable, Witness: m.witness, Founders: w.founders,
		Language: language(), Horizon: 3 * time.Second, Layouts: w.layouts,
		Heartbeat: w.heartbeat, Stable: 2 * time.Second, ReplaceAfter: w.replaceAfter, Longest: 20 * time.Second, Entries: 16,
		Format: m.format, FormatAfter: time.Minute,
	}
}

// start starts a process with what is on the disk.
func (w *world) start(m *machine) {
	if m.up {
		return
	}
	start, err := Recover(m.disk, w.config(m))
	if err != nil {
		w.t.Fatalf("%s at %v: %v", m.name, w.now, err)
	}
	rng := rand.New(rand.NewPCG(w.rng.Uint64(), 2))
	n, err := New(w.config(m), start, InsecureSeed(rng), rng)
	if err != nil {
		w.t.Fatalf("%s at %v: %v", m.name, w.now, err)
	}
	w.last++
	m.node, m.address, m.up, m.writing, m.seen = n, w.last, true, nil, Version{}
	m.readFiles(w.t)
	w.membership()
}

// crash ends a process. Any part of what is being written reaches the disk.
func (w *world) crash(m *machine) {
	if !m.up {
		return
	}
	m.disk = append(m.disk, m.writing[:w.rng.IntN(len(m.writing)+1)]...)
	m.up, m.node, m.writing = false, nil, nil
	w.membership()
}

func (w *world) membership() {
	var all []Peer
	for _, m := range w.machines {
		if m.up {
			all = append(all, Peer{Address: m.address, Name: m.name, Region: m.region})
		}
	}
	for _, m := range w.machines {
		if m.up {
			m.node.Peers(w.now, m.address, all)
		}
	}
}

// run advances time.
func (w *world) run(d time.Duration) {
	for end := w.now + d; w.now < end; {
		w.now += tick
		due := w.flights
		w.flights = nil
		for _, f := range due {
			if f.at > w.now {
				w.flights = append(w.flights, f)
				continue
			}
			to := w.addressed(f.m.To)
			if to == nil || w.cut(f.from, to) {
				continue
			}
			if to.paused {
				f.at = w.now + tick
				w.flights = append(w.flights, f)
				continue
			}
			w.receives(to, &f.m)
			w.serve(to)
		}
		for _, m := range w.machines {
			if !m.up || m.paused {
				continue
			}
			if m.writing != nil && w.now >= m.written {
				if m.failing {
					m.writing = nil
					m.node.Failed(w.now, fmt.Errorf("input/output error"))
				} else {
					m.disk, m.writing = append(m.disk, m.writing...), nil
					m.node.Stored(w.now)
				}
				w.serve(m)
			}
			m.node.Tick(w.now, m.wall(w))
			w.serve(m)
		}
	}
}

func (w *world) addressed(a crdt.Incarnation) *machine {
	for _, m := range w.machines {
		if m.up && m.address == a {
			return m
		}
	}
	return nil
}

// serve does the work of a node.
func (w *world) serve(m *machine) {
	if !m.keeps {
		m.node.Limits().InUse(m.node.Record())
	}
	if w.layouts && !m.witness {
		m.acceptor.follow(w, m)
	}
	for {
		r := m.node.Ready(w.now)
		m.results = append(m.results, r.Results...)
		for _, e := range r.Events {
			w.events = append(w.events, fmt.Sprintf("%s: %v: %s", m.name, e.Kind, e.Text))
		}
		for _, out := range r.Messages {
			w.ledger.sent(&out.Sender)
			if w.rng.Float64() >= w.loss {
				delay := time.Duration(w.rng.Int64N(int64(w.delay) + 1))
				if to := w.addressed(out.To); w.between != nil && to != nil {
					delay = w.between(m, to)
				}
				w.flights = append(w.flights, flight{w.now + delay, m, out})
			}
		}
		w.check(m)
		w.checkLeader(m)
		if r.Store == nil {
			return
		}
		m.writing, m.written = r.Store, w.now+time.Duration(w.rng.Int64N(int64(10*time.Millisecond)))
	}
}

// checkLeader compares the leader that a daemon remembers with the one that
// follows from its peers.
func (w *world) checkLeader(m *machine) {
	known, led := m.node.leader(), m.node.led
	if m.node.led = (ledBy{}); m.node.leader() != known {
		w.t.Fatalf("at %v %s has the leader %v, and remembers %v as of %+v", w.now, m.name, m.node.leader(), known, led)
	}
	m.node.led = led
}

// check compares the history of a daemon with that of all others: records of
// one recovery and index are equal.
func (w *world) check(m *machine) {
	r := m.node.Record()
	if r == nil || r.Version == m.seen || m.corrupt || w.ledger.unseen {
		return
	}
	m.seen = r.Version
	all := w.committed[r.Version.Recovery]
	if all == nil {
		all = map[uint64]string{}
		w.committed[r.Version.Recovery] = all
	}
	is := r.Hash()
	if was, ok := all[r.Version.Index]; ok && was != is {
		w.t.Fatalf("at %v %s has version %v with hash %s, another daemon with %s", w.now, m.name, r.Version, is, was)
	}
	all[r.Version.Index] = is
	for id := range w.committed {
		if id.Number == 0 && id != (Recovery{Random: r.Cluster.ID}) {
			w.t.Fatalf("at %v: two clusters, %v and %v", w.now, id.Random, r.Cluster.ID)
		}
	}
}

// until runs until a condition holds.
func (w *world) until(what string, most time.Duration, ok func() bool) time.Duration {
	w.t.Helper()
	begun := w.now
	for !ok() {
		if w.now-begun >= most {
			w.t.Fatalf("at %v: not %s after %v\n%s", w.now, what, most, w.describe())
		}
		w.run(tick)
	}
	return w.now - begun
}

func (w *world) describe() string {
	out := ""
	for _, m := range w.machines {
		if !m.up {
			out += m.name + " is down\n"
			continue
		}
		s := m.node.Status()
		out += fmt.Sprintf("%s %s\n", m.name, s)
	}
	for _, e := range w.events[max(0, len(w.events)-20):] {
		out += e + "\n"
	}
	return out
}

// equal reports whether all daemons that are up have the same record.
func (w *world) equal() bool {
	var want string
	for _, m := range w.machines {
		if !m.up {
			continue
		}
		r := m.node.Record()
		if r == nil {
			return false
		}
		is := fmt.Sprint(r.Version, r.Hash())
		if want != "" && is != want {
			return false
		}
		want = is
	}
	return want != ""
}

func (w *world) leader() *machine {
	for _, m := range w.machines {
		if m.up && m.node.Leads() {
			return m
		}
	}
	return nil
}

// submit submits a note and waits for its result.
func (w *world) submit(m *machine, c Change) Result {
	w.t.Helper()
	id, err := m.node.Submit(Request{Author: "test", Change: c})
	if err != nil {
		w.t.Fatal(err)
	}
	var out Result
	w.until("a result", time.Minute, func() bool {
		i := slices.IndexFunc(m.results, func(r Result) bool { return r.ID == id })
		if i >= 0 {
			out = m.results[i]
		}
		return i >= 0
	})
	return out
}

func even(names ...string) []FirstRegion {
	var out []FirstRegion
	for i, name := range names {
		out = append(out, FirstRegion{Name: name, Weight: uint32(Whole / len(names))})
		if i == 0 {
			out[0].Weight += uint32(Whole % len(names))
		}
	}
	return out
}

// load lets all daemons submit notes for some time, one at a time each. It
// returns how often a daemon became the leader, and the longest time between
// two entries. run advances time by a tick.
func (w *world) load(d time.Duration, run func()) (elected int, gap time.Duration) {
	last, entries, events := w.now, uint64(0), len(w.events)
	for end := w.now + d; w.now < end; {
		run()
		for _, m := range w.machines {
			if !m.up || m.node.Record() == nil {
				continue
			}
			if len(m.node.requests.own) == 0 {
				_, _ = m.node.Submit(Request{Author: "load", Change: Change{Note: &Note{Text: "load"}}})
			}
			if n := m.node.Record().Changes; n > entries {
				last, entries = w.now, n
			}
		}
		gap = max(gap, w.now-last)
	}
	for _, e := range w.events[events:] {
		if strings.HasSuffix(e, "this daemon leads") {
			elected++
		}
	}
	return elected, gap
}

// open returns a node with a state, and randomness that is the same each time.
func open(cfg Config, start *Start) (*Node, error) {
	rng := rand.New(rand.NewPCG(1, 1))
	return New(cfg, start, InsecureSeed(rng), rng)
}
