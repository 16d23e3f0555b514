package processtest

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/internal/breaker"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
)

// Play calls its argument with what makes the driver of a script.
type Play func(t *testing.T, run func(drive func(*Script) Driver))

// Run replays the scripts of replica/testdata/process in a package beside
// replica.
func Run(t *testing.T, play Play) {
	datadriven.Walk(t, "../replica/testdata/process", func(t *testing.T, path string) {
		if testing.Short() && slices.Contains([]string{"away", "breaker", "many", "rounds"}, filepath.Base(path)) {
			t.Skip("takes thousands of turns")
		}
		play(t, func(drive func(*Script) Driver) {
			x := newScript(t, filepath.Base(path) == "alone")
			x.driver = drive(x)
			defer x.driver.Stop()
			x.driver.Start()
			x.take()
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return x.run(t, d) })
		})
	})
}

// Driver drives a process, us-0, over a network, clocks and a disk in
// memory. It calls Script.sent with each frame.
type Driver interface {
	// Start starts an incarnation; the one before ends like kill -9.
	Start()
	Stop()
	Self() crdt.Incarnation
	// Mono is the time since the first start. Wall is the wall clock.
	Mono() time.Duration
	Wall() time.Time
	// Pass lets time pass, and settle what happens now.
	Pass(d time.Duration)
	Peers(live []gossip.Peer)
	Receive(from gossip.Peer, frame []byte) error
	// Call makes a call. leave has its caller go away.
	Call(c *node.Call, noWait bool, decided func()) (leave func())
	Post(m sticky.Message)
	Room(to crdt.Incarnation, yes bool)
	// Disk has all writes fail, or succeed again. Log changes the log of the
	// acceptor, for the next start, and Compact replaces it by a snapshot.
	Disk(broken bool)
	// Hold lets no sync return before it is called with false.
	Hold(held bool)
	Log(change func([][]byte) [][]byte)
	Compact()
	Process(func(*replica.Process))
	Acceptor(func(*quorum.Acceptor))
	Agent(func(*agent.Agent))
}

// Script is the state of a script.
type Script struct {
	t       *testing.T
	alone   bool // no other daemon is in the region
	driver  Driver
	front   *node.Matcher
	keys    map[crdt.Key]string
	peers   []gossip.Peer
	watch   map[string]bool
	lines   []line
	leave   map[string]func()
	filling []*replica.StrictCall
	crowd   []gossip.Peer
	asked   map[string][]sticky.LeaseRequest
	offers  map[string][]sticky.Accept
	copies  map[string][]sticky.SnapshotRequest
	totals  map[string]uint64 // granted, by peer and key
	seen    map[string]bool   // accepts that were printed
	number  uint64            // of the latest message of a peer
	stores  uint64            // the store number that the process began with
}

// line is what happened at an instant.
type line struct {
	at   time.Duration
	text string
}

func newScript(t *testing.T, alone bool) *Script {
	x := &Script{
		t: t, alone: alone, front: node.NewMatcher(Rules(), rules.NewHasher(Secret), node.MatcherOptions{}),
		keys: map[crdt.Key]string{}, peers: Peers(), watch: map[string]bool{},
		leave: map[string]func(){}, asked: map[string][]sticky.LeaseRequest{},
		offers: map[string][]sticky.Accept{}, copies: map[string][]sticky.SnapshotRequest{}, totals: map[string]uint64{}, seen: map[string]bool{},
	}
	return x
}

// printf notes what happens now.
func (x *Script) printf(format string, args ...any) {
	x.lines = append(x.lines, line{x.driver.Mono().Round(250 * time.Microsecond), fmt.Sprintf(format, args...)})
}

// take returns what happened since it was called last, by time and text.
func (x *Script) take() string {
	slices.SortStableFunc(x.lines, func(a, b line) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.text, b.text)) })
	var b strings.Builder
	for _, l := range x.lines {
		fmt.Fprintf(&b, "%v %s\n", l.at, l.text)
	}
	x.lines = nil
	return b.String()
}

func (x *Script) run(t *testing.T, d *datadriven.TestData) string {
	x.t = t
	var b strings.Builder
	for line := range strings.Lines(d.Input) {
		if words := strings.Fields(line); len(words) > 0 {
			x.command(words[0], words[1:])
			x.driver.Pass(0)
			b.WriteString(x.take())
		}
	}
	return b.String()
}

func (x *Script) command(name string, args []string) {
	switch name {
	case "start":
		x.driver.Start()
	case "peers":
		x.driver.Peers(x.named(args))
	case "many":
		live := x.named(args[1:])
		for i := range x.int(args[0]) {
			live = append(live, gossip.Peer{ID: crdt.Incarnation(1<<20 + x.number<<16 + uint64(i)), Name: fmt.Sprintf("zz-%d", i), Region: "eu", Ready: true})
		}
		x.number++
		x.driver.Peers(live)
		x.crowd = live[len(args)-1:]
	case "flood":
		for _, p := range x.crowd[:x.int(args[0])] {
			x.driver.Post(sticky.Message{From: x.driver.Self(), To: p.ID, Number: 1, Requests: make([]sticky.LeaseRequest, 1)})
		}
	case "measure":
		d, err := time.ParseDuration(args[1])
		x.Must(err)
		x.driver.Process(func(p *replica.Process) {
			p.Reach.Measure([]node.Link{{Peer: gossip.Peer{ID: 4_711, Region: "eu"}, RTT: d}, {Peer: x.peer(args[0]), RTT: d}})
		})
	case "calls":
		for i := range x.int(args[0]) {
			x.call(fmt.Sprint(args[1], i), []string{fmt.Sprint(args[1], i)}, false)
		}
	case "call", "now":
		x.call(args[0], args[1:], name == "now")
	case "fill":
		x.driver.Process(func(p *replica.Process) { x.fill(p, x.int(args[0])) })
	case "gone":
		x.leave[args[0]]()
	case "at":
		until, err := time.ParseDuration(args[0])
		x.Must(err)
		x.driver.Pass(until - x.driver.Mono())
	case "stream":
		x.driver.Room(x.peer(args[0]).ID, args[1] == "open")
	case "disk":
		x.disk(args[0])
	case "watch":
		clear(x.watch)
		for _, kind := range args {
			x.watch[kind] = true
		}
	case "post":
		x.post(args)
	case "send":
		x.send(args)
	case "frames":
		x.driver.Process(func(p *replica.Process) { x.printf("%d frames sent", p.Outbox.Sent()) })
	case "show", "paths":
		x.show(name == "paths")
	case "state":
		x.state()
	default:
		if !x.partCommand(name, args) {
			x.peerCommand(name, x.peer(args[0]), args[1:])
		}
	}
}

// Must fails the test on an error.
func (x *Script) Must(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

func (x *Script) int(text string) int {
	n, err := strconv.Atoi(text)
	x.Must(err)
	return n
}

func (x *Script) peer(name string) gossip.Peer {
	i := slices.IndexFunc(x.peers, func(p gossip.Peer) bool { return p.Name == name })
	if i < 0 {
		x.t.Fatalf("no peer %q", name)
	}
	return x.peers[i]
}

// name returns the name of a peer.
func (x *Script) name(id crdt.Incarnation) string {
	for _, p := range x.peers {
		if p.ID == id {
			return p.Name
		}
	}
	if id == x.driver.Self() {
		return "us-0"
	}
	return fmt.Sprint("daemon ", uint64(id))
}

// resolve returns a call of one hit of each key, and its hits.
func (x *Script) resolve(keys []string) (*node.Call, []node.Hit) {
	c := &node.Call{Domain: "edge"}
	for _, text := range keys {
		key, value, _ := strings.Cut(text, "=")
		c.Descriptors = append(c.Descriptors, rules.Descriptor{Entries: []rules.Entry{{Key: key, Value: value}}, Hits: 1})
	}
	x.Must(x.front.Resolve(c))
	hits := slices.Clone(c.Hits())
	for i := range hits {
		x.keys[hits[i].Key] = keys[i]
	}
	return c, hits
}

func (x *Script) key(k crdt.Key) string {
	if name := x.keys[k]; name != "" {
		return name
	}
	return "a reserve"
}

// fill has calls wait that nothing answers.
func (x *Script) fill(p *replica.Process, n int) {
	for _, c := range x.filling {
		p.Waiters.End(c)
	}
	x.filling = nil
	call, _ := x.resolve([]string{"far=1"})
	call.Decision.Allowed = true
	call.Statuses[0].Wait, call.Statuses[0].Within = true, time.Hour
	for range n {
		c := &replica.StrictCall{}
		c.Start(call)
		p.Waiters.Next(x.driver.Mono(), c)
		x.filling = append(x.filling, c)
	}
}

// call makes a call.
func (x *Script) call(name string, keys []string, noWait bool) {
	x.resolve(keys)
	c := &node.Call{Domain: "edge"}
	for _, text := range keys {
		key, value, _ := strings.Cut(text, "=")
		c.Descriptors = append(c.Descriptors, rules.Descriptor{Entries: []rules.Entry{{Key: key, Value: value}}, Hits: 1})
	}
	x.leave[name] = x.driver.Call(c, noWait, func() {
		outcome := "denied"
		if c.Decision.Allowed {
			outcome = "allowed"
		}
		for i := range c.Statuses {
			if st := &c.Statuses[i]; st.Degraded != node.NotDegraded {
				outcome += fmt.Sprintf(", %s %v", keys[i], st.Degraded)
			}
		}
		if _, counted := strings.CutPrefix(name, keys[0][:strings.Index(keys[0], "=")]+"="); !counted || !c.Decision.Allowed {
			x.printf("%s: %s", name, outcome)
		}
	})
}

// named returns peers. Those named NAME:starting are not ready.
func (x *Script) named(names []string) []gossip.Peer {
	var all []gossip.Peer
	for _, text := range names {
		name, starting := strings.CutSuffix(text, ":starting")
		p := x.peer(name)
		p.Ready = !starting
		all = append(all, p)
	}
	return all
}

// posted is the key of items that a script has the process send.
func posted(id int) crdt.Key { return crdt.Key(id<<8 | 1) }

// isPosted reports whether a key is one of posted. Hashes are greater.
func isPosted(k crdt.Key) bool { return k < 1<<32 && k%256 == 1 }

// post has the process send a message each for some requests.
func (x *Script) post(args []string) {
	to := x.peer(args[0])
	for _, text := range args[1:] {
		id := x.int(text)
		x.driver.Post(sticky.Message{
			From: x.driver.Self(), To: to.ID, Number: 1, Stamp: x.stamp(),
			Requests: []sticky.LeaseRequest{{ID: uint64(id), Lessee: x.driver.Self(), Key: posted(id)}},
		})
	}
}

// send has the process send a message with a number of items of some kinds.
func (x *Script) send(args []string) {
	m := sticky.Message{From: x.driver.Self(), To: x.peer(args[0]).ID, Number: 1, Stamp: x.stamp()}
	for _, arg := range args[1:] {
		name, value, _ := strings.Cut(arg, "=")
		n := x.int(value)
		switch name {
		case "number":
			m.Number = uint64(n)
		case "late": // milliseconds
			m.Stamp = hlc.New(x.driver.Wall().UnixMilli()-int64(n), 0)
		case "requests":
			m.Requests = slices.Repeat([]sticky.LeaseRequest{{ID: 1, Lessee: m.From, Key: posted(1)}}, n)
		case "grants":
			m.Grants = slices.Repeat([]sticky.LeaseGrant{{ID: 1, Owner: m.From, Key: posted(1)}}, n)
		case "accepts":
			m.Accepts = slices.Repeat([]sticky.Accept{{Key: posted(1), Ballot: sticky.Ballot{Round: 1, Owner: m.From, Term: 1}}}, n)
		case "accepted":
			m.Accepted = slices.Repeat([]sticky.Accepted{{Key: posted(1), Voter: 1, OK: true}}, n)
		case "copies":
			m.SnapshotRequests = slices.Repeat([]sticky.SnapshotRequest{{Voter: 1, Number: 1, Begin: true}}, n)
		case "chunks":
			m.SnapshotChunks = slices.Repeat([]sticky.SnapshotChunk{{Voter: 1, Number: 1, Begin: true, Last: true}}, n)
		case "layouts":
			m.Layouts = slices.Repeat([]route.Layout{*x.Layout()}, n)
		default:
			x.t.Fatalf("no kind %s", name)
		}
	}
	x.driver.Post(m)
}

func (x *Script) stamp() hlc.Timestamp { return hlc.New(x.driver.Wall().UnixMilli(), 0) }

func (x *Script) window() int64 {
	return x.driver.Wall().Truncate(time.Minute).UnixMilli()
}

// Transition prints that the breaker of an owner changed its state. calls and
// failed are of one that opened.
func (x *Script) Transition(owner, to, from string, calls, failed uint64) {
	if to == "open" {
		to += fmt.Sprintf(", was %s, %d of %d calls failed", from, failed, calls)
	}
	x.printf("breaker of %s: %s", owner, to)
}

// show prints the calls and frames, and the breakers of the owners that were
// asked or the paths to all of them.
func (x *Script) show(paths bool) {
	x.driver.Process(func(p *replica.Process) {
		all := p.Reach.Circuits(x.driver.Mono())
		if !inOrder(all) {
			x.printf("the paths are not in order")
		}
		for _, c := range all {
			if strings.HasPrefix(c.Name, "zz-") {
				continue
			}
			since := ""
			if c.Changed {
				since = fmt.Sprintf(" for %v", c.For.Round(time.Millisecond))
			}
			if paths {
				x.printf("%s/%s: %s, wait %v", c.Region, c.Name, x.name(c.Owner), c.Wait.Round(time.Millisecond))
			} else if c.Changed || c.Calls > 0 {
				x.printf("%s/%s: %v%s, %d of %d calls failed", c.Region, c.Name, c.State, since, c.Failed, c.Calls)
			}
		}
		r := p.Reach
		if paths {
			return
		}
		x.printf("%d calls wait, %d refused; %d items dropped; %d closed, %d half-open, %d opened", p.Waiters.Len(),
			p.Waiters.Refused(), p.Outbox.Dropped(), r.Transitions(breaker.Closed), r.Transitions(breaker.HalfOpen), r.Transitions(breaker.Open))
	})
}

// Errorf fails the test.
func (x *Script) Errorf(format string, args ...any) { x.t.Errorf(format, args...) }
