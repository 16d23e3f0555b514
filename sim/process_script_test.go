package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
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

// This file and process_{rules,peers,parts}_test.go are the same in the
// packages daemon and sim, but for their first lines: both replay the scripts
// of replica/testdata/process, each with its own driver of package replica, and
// must print the same. A script plays the peers, the callers, the network and
// the disk of one process, us-0. Each line of a run
// command is one of:
//
//	start                     a new incarnation starts on the same disk
//	peers NAME[:starting]...  the live peers, and which are not ready
//	measure NAME D            round trips are measured, also to no peer
//	rtt NAME D                a peer sends counts that measure its round trip
//	call C KEY=VALUE...       a call of one hit of each
//	calls N KEY               N calls of one hit of a value of their own each
//	now C KEY=VALUE...        likewise, but the call does not wait
//	fill N                    N calls wait for an hour, 0 for none
//	gone C                    the caller of a call goes away
//	at D                      time passes until an instant of the script
//	grant NAME [KEY=VALUE]... a peer grants all that it was asked for, or some
//	deny NAME [KEY=VALUE]...  likewise, but it denies
//	fail NAME REASON [KEY=VALUE]...
//	                          likewise, but it cannot grant it
//	accept NAME               it accepts all watermarks that it was sent
//	ask NAME KEY=VALUE...     it requests leases
//	propose NAME KEY=VALUE N  it proposes a watermark
//	copy NAME                 it requests a snapshot
//	testify NAME              it knows of no write of the process
//	chunk NAME KEY=VALUE      it sends the snapshot that it was asked for
//	counts NAME SHARD...      it sends counts of shards, in one frame
//	rights NAME               it sends a message about rights
//	bad NAME KIND             it sends a frame that is not valid
//	post NAME ID...           the process has requests of these numbers to send
//	send NAME KIND=N...       it has a message of N items of each kind to send
//	flood N                   it has a request for each of N daemons of many
//	stream NAME shut|open     a stream has no room for frames, or has again
//	disk broken|whole         writes to the disk fail, or succeed again
//	disk held|released        syncs of files do not return, or return again
//	disk compact              the log of the acceptor is replaced by a snapshot
//	disk lost|damaged|headless|old
//	                          the log is lost, ends or begins wrongly, or names
//	                          a layout before its own
//	watch KIND... | none      prints frames of counts or rights, too
//	many N NAME...            the live peers, and N other daemons
//	show                      prints the calls and the owners that were asked
//	frames                    prints how many frames about strict keys were sent
//	paths                     prints how long calls wait for each owner
//	state                     prints the acceptor and the rights
//	asks                      a call requests leases again and again
//	late N                    N calls wait for no time
//	again NAME                the StrictCall of a call is used for another
//	order                     messages to many daemons wait for room
//	probe NAME                a call waits for two keys, one of which is answered
//	twins NAME                a peer is live in many incarnations
//	forget NAME               the process does not know a peer of the shards
//	route NAME KEY=VALUE...   the process routes a request of a peer to itself
//	encode NAME:SHARD:N...    counts of N cells of shards are encoded
//	strictless                a message comes to a process without strict keys
//	unknown                   the acceptor gets a message of an unknown peer
//	rules                     prints the rules with rights
//	agent                     prints the work of a new rights agent

// TestProcess replays the scripts of replica/testdata/process.
func TestProcess(t *testing.T) {
	datadriven.Walk(t, "../replica/testdata/process", func(t *testing.T, path string) {
		if testing.Short() && slices.Contains([]string{"away", "breaker", "many", "rounds"}, filepath.Base(path)) {
			t.Skip("takes thousands of turns")
		}
		playProcess(t, func(new func(*processScript) processDriver) {
			x := newProcessScript(t, filepath.Base(path) == "alone")
			x.driver = new(x)
			defer x.driver.stop()
			x.driver.start()
			x.take()
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return x.run(t, d) })
		})
	})
}

// TestProcessScriptIsShared compares the files of the scripts with those of the
// other package.
func TestProcessScriptIsShared(t *testing.T) {
	for _, file := range []string{"script", "rules", "peers", "parts"} {
		var texts [][]byte
		for _, dir := range []string{"daemon", "sim"} {
			text, err := os.ReadFile("../" + dir + "/process_" + file + "_test.go")
			if err != nil {
				t.Fatal(err)
			}
			_, text, _ = bytes.Cut(text, []byte("\n"))
			texts = append(texts, text)
		}
		if !bytes.Equal(texts[0], texts[1]) {
			t.Errorf("process_%s_test.go differs between the packages daemon and sim", file)
		}
	}
}

// processDriver drives a process, us-0, over a network, clocks and a disk in
// memory. It calls processScript.sent with each frame.
type processDriver interface {
	// start starts an incarnation; the one before ends like kill -9.
	start()
	stop()
	self() crdt.Incarnation
	// mono is the time since the first start. wall is the wall clock.
	mono() time.Duration
	wall() time.Time
	// pass lets time pass, and settle what happens now.
	pass(d time.Duration)
	peers(live []gossip.Peer)
	receive(from gossip.Peer, frame []byte) error
	// call makes a call. leave has its caller go away.
	call(c *node.Call, noWait bool, decided func()) (leave func())
	post(m sticky.Message)
	room(to crdt.Incarnation, yes bool)
	// disk has all writes fail, or succeed again. log changes the log of the
	// acceptor, for the next start, and compact replaces it by a snapshot.
	disk(broken bool)
	// hold lets no sync return before it is called with false.
	hold(held bool)
	log(change func([][]byte) [][]byte)
	compact()
	process(func(*replica.Process))
	acceptor(func(*quorum.Acceptor))
	agent(func(*agent.Agent))
}

// processScript is the state of a script.
type processScript struct {
	t       *testing.T
	alone   bool // no other daemon is in the region
	driver  processDriver
	front   *node.Matcher
	keys    map[crdt.Key]string
	peers   []gossip.Peer
	watch   map[string]bool
	lines   []processLine
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

// processLine is what happened at an instant.
type processLine struct {
	at   time.Duration
	text string
}

func newProcessScript(t *testing.T, alone bool) *processScript {
	x := &processScript{
		t: t, alone: alone, front: node.NewMatcher(processRules(), rules.NewHasher(processSecret), node.MatcherOptions{}),
		keys: map[crdt.Key]string{}, peers: processPeers(), watch: map[string]bool{},
		leave: map[string]func(){}, asked: map[string][]sticky.LeaseRequest{},
		offers: map[string][]sticky.Accept{}, copies: map[string][]sticky.SnapshotRequest{}, totals: map[string]uint64{}, seen: map[string]bool{},
	}
	return x
}

// printf notes what happens now.
func (x *processScript) printf(format string, args ...any) {
	x.lines = append(x.lines, processLine{x.driver.mono().Round(250 * time.Microsecond), fmt.Sprintf(format, args...)})
}

// take returns what happened since it was called last, by time and text.
func (x *processScript) take() string {
	slices.SortStableFunc(x.lines, func(a, b processLine) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.text, b.text)) })
	var b strings.Builder
	for _, l := range x.lines {
		fmt.Fprintf(&b, "%v %s\n", l.at, l.text)
	}
	x.lines = nil
	return b.String()
}

func (x *processScript) run(t *testing.T, d *datadriven.TestData) string {
	x.t = t
	var b strings.Builder
	for line := range strings.Lines(d.Input) {
		if words := strings.Fields(line); len(words) > 0 {
			x.command(words[0], words[1:])
			x.driver.pass(0)
			b.WriteString(x.take())
		}
	}
	return b.String()
}

func (x *processScript) command(name string, args []string) {
	switch name {
	case "start":
		x.driver.start()
	case "peers":
		x.driver.peers(x.named(args))
	case "many":
		live := x.named(args[1:])
		for i := range x.int(args[0]) {
			live = append(live, gossip.Peer{ID: crdt.Incarnation(1<<20 + x.number<<16 + uint64(i)), Name: fmt.Sprintf("zz-%d", i), Region: "eu", Ready: true})
		}
		x.number++
		x.driver.peers(live)
		x.crowd = live[len(args)-1:]
	case "flood":
		for _, p := range x.crowd[:x.int(args[0])] {
			x.driver.post(sticky.Message{From: x.driver.self(), To: p.ID, Number: 1, Requests: make([]sticky.LeaseRequest, 1)})
		}
	case "measure":
		d, err := time.ParseDuration(args[1])
		x.must(err)
		x.driver.process(func(p *replica.Process) {
			p.Reach.Measure([]node.Link{{Peer: gossip.Peer{ID: 4_711, Region: "eu"}, RTT: d}, {Peer: x.peer(args[0]), RTT: d}})
		})
	case "calls":
		for i := range x.int(args[0]) {
			x.call(fmt.Sprint(args[1], i), []string{fmt.Sprint(args[1], i)}, false)
		}
	case "call", "now":
		x.call(args[0], args[1:], name == "now")
	case "fill":
		x.driver.process(func(p *replica.Process) { x.fill(p, x.int(args[0])) })
	case "gone":
		x.leave[args[0]]()
	case "at":
		until, err := time.ParseDuration(args[0])
		x.must(err)
		x.driver.pass(until - x.driver.mono())
	case "stream":
		x.driver.room(x.peer(args[0]).ID, args[1] == "open")
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
		x.driver.process(func(p *replica.Process) { x.printf("%d frames sent", p.Outbox.Sent()) })
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

func (x *processScript) must(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

func (x *processScript) int(text string) int {
	n, err := strconv.Atoi(text)
	x.must(err)
	return n
}

func (x *processScript) peer(name string) gossip.Peer {
	i := slices.IndexFunc(x.peers, func(p gossip.Peer) bool { return p.Name == name })
	if i < 0 {
		x.t.Fatalf("no peer %q", name)
	}
	return x.peers[i]
}

// name returns the name of a peer.
func (x *processScript) name(id crdt.Incarnation) string {
	for _, p := range x.peers {
		if p.ID == id {
			return p.Name
		}
	}
	if id == x.driver.self() {
		return "us-0"
	}
	return fmt.Sprint("daemon ", uint64(id))
}

// resolve returns a call of one hit of each key, and its hits.
func (x *processScript) resolve(keys []string) (*node.Call, []node.Hit) {
	c := &node.Call{Domain: "edge"}
	for _, text := range keys {
		key, value, _ := strings.Cut(text, "=")
		c.Descriptors = append(c.Descriptors, rules.Descriptor{Entries: []rules.Entry{{Key: key, Value: value}}, Hits: 1})
	}
	x.must(x.front.Resolve(c))
	hits := slices.Clone(c.Hits())
	for i := range hits {
		x.keys[hits[i].Key] = keys[i]
	}
	return c, hits
}

func (x *processScript) key(k crdt.Key) string {
	if name := x.keys[k]; name != "" {
		return name
	}
	return "a reserve"
}

// fill has calls wait that nothing answers.
func (x *processScript) fill(p *replica.Process, n int) {
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
		p.Waiters.Next(x.driver.mono(), c)
		x.filling = append(x.filling, c)
	}
}

// call makes a call.
func (x *processScript) call(name string, keys []string, noWait bool) {
	x.resolve(keys)
	c := &node.Call{Domain: "edge"}
	for _, text := range keys {
		key, value, _ := strings.Cut(text, "=")
		c.Descriptors = append(c.Descriptors, rules.Descriptor{Entries: []rules.Entry{{Key: key, Value: value}}, Hits: 1})
	}
	x.leave[name] = x.driver.call(c, noWait, func() {
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
func (x *processScript) named(names []string) []gossip.Peer {
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
func posted(id int) crdt.Key { return crdt.Key{Hi: 1, Lo: uint64(id)} }

// post has the process send a message each for some requests.
func (x *processScript) post(args []string) {
	to := x.peer(args[0])
	for _, text := range args[1:] {
		id := x.int(text)
		x.driver.post(sticky.Message{
			From: x.driver.self(), To: to.ID, Number: 1, Stamp: x.stamp(),
			Requests: []sticky.LeaseRequest{{ID: uint64(id), Lessee: x.driver.self(), Key: posted(id)}},
		})
	}
}

// send has the process send a message with a number of items of some kinds.
func (x *processScript) send(args []string) {
	m := sticky.Message{From: x.driver.self(), To: x.peer(args[0]).ID, Number: 1, Stamp: x.stamp()}
	for _, arg := range args[1:] {
		name, value, _ := strings.Cut(arg, "=")
		n := x.int(value)
		switch name {
		case "number":
			m.Number = uint64(n)
		case "late": // milliseconds
			m.Stamp = hlc.New(x.driver.wall().UnixMilli()-int64(n), 0)
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
			m.Layouts = slices.Repeat([]route.Layout{*x.layout()}, n)
		default:
			x.t.Fatalf("no kind %s", name)
		}
	}
	x.driver.post(m)
}

func (x *processScript) stamp() hlc.Timestamp { return hlc.New(x.driver.wall().UnixMilli(), 0) }

func (x *processScript) window() int64 {
	return x.driver.wall().Truncate(time.Minute).UnixMilli()
}

// transition prints that the breaker of an owner changed its state. calls and
// failed are of one that opened.
func (x *processScript) transition(owner, to, from string, calls, failed uint64) {
	if to == "open" {
		to += fmt.Sprintf(", was %s, %d of %d calls failed", from, failed, calls)
	}
	x.printf("breaker of %s: %s", owner, to)
}

// show prints the calls and frames, and the breakers of the owners that were
// asked or the paths to all of them.
func (x *processScript) show(paths bool) {
	x.driver.process(func(p *replica.Process) {
		all := p.Reach.Circuits(x.driver.mono())
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
