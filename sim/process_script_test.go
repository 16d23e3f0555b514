package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
	"github.com/georld/rld/wire"
)

// This file is the same in the packages daemon and sim, but for its first line:
// both replay the scripts of replica/testdata/process, each with its own driver
// of package replica, and must print the same. A script plays the peers, the
// callers, the network and the disk of one process, us-0. Each line of a run
// command is one of:
//
//	start                     a new incarnation starts on the same disk
//	peers NAME...             the live peers
//	rtt NAME D                a peer sends counts that measure its round trip
//	call C KEY=VALUE...       a call of one hit of each
//	now C KEY=VALUE...        likewise, but the call does not wait
//	fill N                    N calls wait for an hour, 0 for none
//	gone C                    the caller of a call goes away
//	at D                      time passes until an instant of the script
//	grant NAME, deny NAME     a peer grants or denies all that it was asked for
//	fail NAME REASON          it cannot grant it
//	accept NAME               it accepts all watermarks that it was sent
//	ask NAME KEY=VALUE        it requests a lease
//	propose NAME KEY=VALUE N  it proposes a watermark
//	copy NAME, layout NAME    it requests a snapshot, or sends its layout
//	chunk NAME KEY=VALUE      it sends the snapshot that it was asked for
//	counts NAME SHARD...      it sends counts of shards, in one frame
//	rights NAME               it sends a message about rights
//	bad NAME KIND             it sends a frame that is not valid
//	post NAME ID...           the process has requests of these numbers to send
//	posts NAME N ITEMS        it has N messages of ITEMS requests each
//	stream NAME shut|open     a stream has no room for frames, or has again
//	disk broken|whole         writes to the disk fail, or succeed again
//	watch KIND... | none      prints frames of counts, rights or layouts, too
//	many N NAME...            the live peers, and N other daemons
//	show                      prints the calls and the owners that were asked
//	frames                    prints how many frames about strict keys were sent
//	paths                     prints how long calls wait for each owner
//	state                     prints the acceptor and the rights

// TestProcess replays the scripts of replica/testdata/process.
func TestProcess(t *testing.T) {
	datadriven.Walk(t, "../replica/testdata/process", func(t *testing.T, path string) {
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

// TestProcessScriptIsShared compares this file with the one of the other
// package.
func TestProcessScriptIsShared(t *testing.T) {
	var texts [][]byte
	for _, name := range []string{"../daemon/process_script_test.go", "../sim/process_script_test.go"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ = bytes.Cut(text, []byte("\n"))
		texts = append(texts, text)
	}
	if !bytes.Equal(texts[0], texts[1]) {
		t.Error("process_script_test.go differs between the packages daemon and sim")
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
	disk(broken bool)
	process(func(*replica.Process))
	acceptor(func(*quorum.Acceptor))
	agent(func(*agent.Agent))
}

// The constants of all scripts.
const (
	processShards  = 4
	processForward = 50 * time.Millisecond
	processMargin  = 100 * time.Millisecond
)

var (
	processBreaker = breaker.Config{Calls: 4, Window: 10 * time.Second, Open: time.Minute}
	processSecret  = [rules.SecretBytes]byte{'s', 'i', 'm'}
	processRegions = []string{"ap", "eu", "us"}
)

// processRules returns the rules of all scripts: strict keys of two regions,
// one of them with regional reserves, plain limits, and rights.
func processRules() *rules.Set {
	strict := func(home string, on rules.OnFailure) *rules.Limit {
		return &rules.Limit{
			Unit: rules.Minute, Multiplier: 1, Requests: 1_000, Consistency: rules.Strict, Placed: rules.Owner,
			Home: home, OnFailure: on,
		}
	}
	shared := strict("ap", rules.Share)
	shared.ReserveShare = 30 * rules.Percent
	set, err := rules.NewSet([]rules.DomainNode{{Name: "edge", Children: []rules.Node{
		{Key: "near", Limit: strict("us", rules.Deny)},
		{Key: "far", Limit: strict("eu", rules.Deny)},
		{Key: "shared", Limit: shared},
		{Key: "plain", Limit: &rules.Limit{Unit: rules.Minute, Multiplier: 1, Requests: 1_000}},
		{Key: "free", Limit: &rules.Limit{Unlimited: true}},
		{Key: "none"},
		{Key: "part", Limit: &rules.Limit{
			Unit: rules.Minute, Multiplier: 2, Requests: 1_000, Consistency: rules.Partition,
			Weights: []rules.Weight{{Region: "ap", Share: 20 * rules.Percent}, {Region: "eu", Share: 30 * rules.Percent}, {Region: "us", Share: 50 * rules.Percent}},
		}},
	}}})
	if err != nil {
		panic(err)
	}
	return set
}

// daemons returns the daemons of the region of the process.
func (x *processScript) daemons() []string {
	if x.alone {
		return []string{"us-0"}
	}
	return []string{"us-0", "us-1", "us-2"}
}

// layout returns the first layout.
func (x *processScript) layout() route.Layout {
	l := route.Layout{Number: 1}
	for _, name := range processRegions {
		voters := []string{name + "-0"}
		if name == "us" {
			voters = x.daemons()
		}
		l.Regions = append(l.Regions, route.Region{Name: name, Weight: 1, Replicas: voters})
	}
	for _, r := range processRules().Rules() {
		if r.Limit != nil && r.Limit.Home != "" {
			l.Pins = append(l.Pins, route.Pin{Rule: uint64(r.ID), Region: r.Limit.Home})
		}
	}
	slices.SortFunc(l.Pins, func(a, b route.Pin) int { return cmp.Compare(a.Rule, b.Rule) })
	return l
}

// processPeers are the peers that scripts name.
func processPeers() []gossip.Peer {
	var all []gossip.Peer
	for i, name := range []string{"us-1", "us-2", "eu-0", "ap-0"} {
		all = append(all, gossip.Peer{ID: crdt.Incarnation(1_001 + i), Name: name, Region: name[:2], Ready: true})
	}
	return all
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
	asked   map[string][]sticky.LeaseRequest
	offers  map[string][]sticky.Accept
	copies  map[string][]sticky.SnapshotRequest
	totals  map[string]uint64 // granted, by peer and key
	seen    map[string]bool   // accepts that were printed
	number  uint64            // of the latest message of a peer
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
	x.lines = append(x.lines, processLine{x.driver.mono().Round(time.Millisecond), fmt.Sprintf(format, args...)})
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
		var live []gossip.Peer
		for _, name := range args {
			live = append(live, x.peer(name))
		}
		x.driver.peers(live)
	case "many":
		var live []gossip.Peer
		for _, name := range args[1:] {
			live = append(live, x.peer(name))
		}
		for i := range x.int(args[0]) {
			live = append(live, gossip.Peer{ID: crdt.Incarnation(1<<20 + x.number<<16 + uint64(i)), Name: fmt.Sprintf("zz-%d", i), Region: "eu", Ready: true})
		}
		x.number++
		x.driver.peers(live)
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
		x.driver.disk(args[0] == "broken")
	case "watch":
		clear(x.watch)
		for _, kind := range args {
			x.watch[kind] = true
		}
	case "post", "posts":
		x.post(name, args)
	case "frames":
		x.driver.process(func(p *replica.Process) { x.printf("%d frames sent", p.Outbox.Sent()) })
	case "show", "paths":
		x.show(name == "paths")
	case "state":
		x.state()
	default:
		x.peerCommand(name, x.peer(args[0]), args[1:])
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
		x.printf("%s: %s", name, outcome)
	})
}

func (x *processScript) post(kind string, args []string) {
	to := x.peer(args[0])
	message := func(ids ...uint64) {
		m := sticky.Message{From: x.driver.self(), To: to.ID, Number: 1, Stamp: x.stamp()}
		for _, id := range ids {
			m.Requests = append(m.Requests, sticky.LeaseRequest{ID: id, Lessee: m.From, Key: crdt.Key{Hi: 1, Lo: id}})
		}
		x.driver.post(m)
	}
	if kind == "posts" {
		for range x.int(args[1]) {
			message(slices.Repeat([]uint64{1}, x.int(args[2]))...)
		}
		return
	}
	for _, id := range args[1:] {
		message(uint64(x.int(id)))
	}
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
func (x *processScript) show(all bool) {
	x.driver.process(func(p *replica.Process) {
		for _, c := range p.Reach.Circuits(x.driver.mono()) {
			if strings.HasPrefix(c.Name, "zz-") {
				continue
			}
			since := ""
			if c.Changed {
				since = fmt.Sprintf(" for %v", c.For.Round(time.Millisecond))
			}
			if all {
				x.printf("%s/%s: %s, wait %v", c.Region, c.Name, x.name(c.Owner), c.Wait.Round(time.Millisecond))
			} else if c.Changed || c.Calls > 0 {
				x.printf("%s/%s: %v%s, %d of %d calls failed", c.Region, c.Name, c.State, since, c.Failed, c.Calls)
			}
		}
		r := p.Reach
		if all {
			return
		}
		x.printf("%d calls wait, %d refused; %d items dropped; %d closed, %d half-open, %d opened", p.Waiters.Len(),
			p.Waiters.Refused(), p.Outbox.Dropped(), r.Transitions(breaker.Closed), r.Transitions(breaker.HalfOpen), r.Transitions(breaker.Open))
	})
}

// state prints the acceptor and the rights.
func (x *processScript) state() {
	x.driver.acceptor(func(a *quorum.Acceptor) {
		s := a.Status()
		why, _, _ := strings.Cut(s.Reason, ":")
		x.printf("layout %d, voting %v %s, %d keys, generation %v", s.Layout.Number, s.Voting, why, s.Keys, s.Generation != 0)
	})
	x.driver.agent(func(a *agent.Agent) {
		s := a.Status()
		x.printf("rights: holds %v %v, failing %v", s.Holds, s.Reason, s.Failing != "")
		for _, r := range processRules().Rules() {
			if r.Limit != nil && r.Limit.HasRights() {
				n, why := a.Allotment(r.Shared(), 1_000, x.window(), 0, false)
				x.printf("rights of %s: %v, allotment %d %v", r.Path, a.Weights(r.Shared()), n, why)
			}
		}
	})
}

// sent prints a frame of the process, and keeps what it asks its peer.
func (x *processScript) sent(to crdt.Incarnation, frame []byte) {
	name := x.name(to)
	switch {
	case wire.IsRights(frame):
		m, err := wire.DecodeRights(frame)
		x.must(err)
		if x.watch["rights"] {
			for _, e := range m.Regions.Epochs {
				x.printf("to %s: an epoch of %d regions, shares of rules %v", name, len(e.Members), e.Rules)
			}
			for _, d := range m.Demand {
				x.printf("to %s: demand of %d hits", name, d.Hits)
			}
		}
	case wire.IsStrict(frame):
		m, err := wire.DecodeStrict(frame)
		x.must(err)
		x.sentStrict(name, m)
	default:
		all, err := wire.Decode(frame)
		x.must(err)
		cells := 0
		var shards []int
		for i := range all {
			cells += len(all[i].Cells)
			shards = append(shards, all[i].Shard)
		}
		if x.watch["counts"] && cells > 0 {
			x.printf("to %s: counts of shards %v, %d cells", name, shards, cells)
		}
	}
}

func (x *processScript) sentStrict(name string, m *sticky.Message) {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	for _, r := range m.Requests {
		switch {
		case r.Key.Hi == 1:
			add("post %d", r.ID)
			continue
		case r.ID == 0: // returns depend on when the timers of shards run
			continue
		case slices.ContainsFunc(x.asked[name], func(o sticky.LeaseRequest) bool { return o.Key == r.Key }): // so do repetitions
		case r.Reserve:
			add("request of a reserve, want %d", r.Want)
		default:
			add("request %s, want %d", x.key(r.Key), r.Want)
		}
		x.asked[name] = append(x.asked[name], r)
	}
	for _, g := range m.Grants {
		add("grant %s, total %d, denied %v %v", x.key(g.Key), g.Total, g.Denied, g.Reason)
	}
	for _, a := range m.Accepts {
		if again := fmt.Sprint(name, a.Key, a.Ballot, a.Seq); !x.seen[again] {
			x.seen[again] = true
			add("accept %s", x.key(a.Key))
			x.offers[name] = append(x.offers[name], a)
		}
	}
	for _, a := range m.Accepted {
		add("accepted %s, %v %v", x.key(a.Key), a.OK, a.Reason)
	}
	for _, r := range m.SnapshotRequests {
		add("snapshot request")
		x.copies[name] = append(x.copies[name], r)
	}
	for _, c := range m.SnapshotChunks {
		add("snapshot of %d records %v", len(c.Records), c.Reason)
	}
	if x.watch["layouts"] {
		for _, l := range m.Layouts {
			add("layout %d, voting %v", l.Number, m.Voting)
		}
	}
	if len(parts) > 12 {
		parts = append(parts[:1], fmt.Sprintf("and %d more", len(parts)-1))
	}
	if off := m.Stamp.Millis() - x.driver.wall().UnixMilli(); (off < -100 || off > 100) && len(parts) > 0 {
		add("stamp off by %d ms", off)
	}
	if len(parts) > 0 {
		x.printf("to %s: %s", name, strings.Join(parts, "; "))
	}
}

// peerCommand lets a peer send something.
func (x *processScript) peerCommand(name string, p gossip.Peer, args []string) {
	m := sticky.Message{From: p.ID, To: x.driver.self(), Number: 1, Stamp: x.stamp()}
	switch name {
	case "rtt":
		d, err := time.ParseDuration(args[0])
		x.must(err)
		x.counts(p, d, 0, 0)
		return
	case "counts":
		var shards []int
		for _, s := range args {
			shards = append(shards, x.int(s))
		}
		x.counts(p, 0, 3, shards...)
		return
	case "rights":
		frame, err := wire.EncodeRights(nil, &agent.Message{From: p.ID, To: x.driver.self(), Region: p.Region, Name: p.Name, Stamp: x.stamp()})
		x.must(err)
		x.receive(p, frame)
		return
	case "bad":
		x.bad(p, args[0])
		return
	case "grant", "deny", "fail":
		x.answer(name, p, args, &m)
	case "accept":
		for _, a := range x.offers[p.Name] {
			m.Accepted = append(m.Accepted, sticky.Accepted{Key: a.Key, Ballot: a.Ballot, Seq: a.Seq, Voter: route.NameHash(p.Name), OK: true})
		}
		x.offers[p.Name] = nil
	case "ask":
		_, hits := x.resolve(args[:1])
		x.number++
		m.Requests = []sticky.LeaseRequest{{
			ID: x.number, Lessee: p.ID, Key: hits[0].Key, Rule: hits[0].Rule.Shared(), Window: x.window(), Want: 3, Need: 3, Within: 100,
		}}
	case "propose":
		_, hits := x.resolve(args[:1])
		x.number++
		m.Accepts = []sticky.Accept{{
			Key: hits[0].Key, Ballot: sticky.Ballot{Round: 1, Owner: p.ID, Term: 1}, Seq: x.number,
			Watermarks: sticky.Watermarks{{Window: x.window(), Amount: uint64(x.int(args[1])), End: x.window() + 60_000}},
		}}
	case "copy":
		m.SnapshotRequests = []sticky.SnapshotRequest{{Voter: route.NameHash(p.Name), Number: 1, Begin: true}}
		m.Layouts = []route.Layout{x.layout()}
	case "layout":
		m.Layouts, m.Voting = []route.Layout{x.layout()}, true
	case "chunk":
		_, hits := x.resolve(args[:1])
		for _, q := range x.copies[p.Name] {
			m.SnapshotChunks = append(m.SnapshotChunks[:0], sticky.SnapshotChunk{
				Voter: route.NameHash(p.Name), Number: q.Number, After: q.After, Begin: q.Begin, Last: true,
				Records: []sticky.Record{{Key: hits[0].Key, Ballot: sticky.Ballot{Round: 1, Owner: p.ID, Term: 1},
					Watermarks: sticky.Watermarks{{Window: x.window(), Amount: 9, End: x.window() + 60_000}}}},
			})
		}
		x.copies[p.Name] = nil
	default:
		x.t.Fatalf("no command %s", name)
	}
	frame, err := wire.EncodeStrict(nil, &m)
	x.must(err)
	x.receive(p, frame)
}

// answer adds the grants for all requests that a peer has got.
func (x *processScript) answer(name string, p gossip.Peer, args []string, m *sticky.Message) {
	for _, r := range x.asked[p.Name] {
		g := sticky.LeaseGrant{
			ID: r.ID, Owner: p.ID, Key: r.Key, Rule: r.Rule, Reserve: r.Reserve, Round: 1, Window: r.Window, Until: r.Window + 60_000, Remaining: 500,
		}
		total := fmt.Sprint(p.Name, r.Key, r.Window)
		switch name {
		case "grant":
			x.totals[total] += r.Want
		case "deny":
			g.Denied, g.Retry, g.Remaining = true, 1_000, 0
		case "fail":
			g = sticky.LeaseGrant{ID: r.ID, Owner: p.ID, Key: r.Key, Rule: r.Rule, Reserve: r.Reserve, Window: r.Window}
			for g.Reason = sticky.MaxReason; g.Reason.String() != args[0]; g.Reason-- {
			}
			m.Grants = append(m.Grants, g)
			continue
		}
		g.Total = x.totals[total]
		m.Grants = append(m.Grants, g)
	}
	x.asked[p.Name] = nil
}

// hexadecimal matches incarnations and checksums, which differ between drivers.
var hexadecimal = regexp.MustCompile("[0-9a-f]{8,}")

// receive hands a frame to the process, and prints why it rejects it.
func (x *processScript) receive(from gossip.Peer, frame []byte) {
	if err := x.driver.receive(from, frame); err != nil {
		x.printf("rejected: %s", hexadecimal.ReplaceAllString(err.Error(), "#"))
	}
}

// counts sends a message of some shards with cells, which measures a round trip
// unless that is 0.
func (x *processScript) counts(p gossip.Peer, rtt time.Duration, cells int, shards ...int) {
	x.receive(p, x.countsFrame(p, rtt, cells, shards...))
}

func (x *processScript) countsFrame(p gossip.Peer, rtt time.Duration, cells int, shards ...int) []byte {
	var all []gossip.Message
	if rtt != 0 {
		for i := range processShards {
			shards = append(shards[:i], i)
		}
	}
	x.number++
	now := uint64(x.driver.mono().Microseconds())
	for _, s := range shards {
		m := gossip.Message{From: p.ID, To: x.driver.self(), Shard: s, Shards: processShards}
		m.Header = gossip.Header{Stamp: x.stamp(), Rules: processRules().Hash(), Ready: true, Nonce: now + x.number}
		if rtt != 0 {
			m.Echo = now - uint64(rtt.Microseconds())
		}
		m.Complete = true
		_, hits := x.resolve([]string{"plain=1"})
		for i := range cells {
			key := crdt.Key{Hi: uint64(s)<<62 | uint64(i), Lo: 1}
			m.Hi = uint64(cells)
			m.Cells = append(m.Cells, gossip.Cell{
				CellID:   gossip.CellID{Key: key, Window: x.window(), Incarnation: p.ID},
				Value:    crdt.PN{P: 1},
				CellMeta: gossip.CellMeta{WindowLength: hits[0].Limit.Window()},
			})
		}
		all = append(all, m)
	}
	frame, err := wire.Encode(nil, all)
	x.must(err)
	return frame
}

// bad sends a frame that is not valid.
func (x *processScript) bad(p gossip.Peer, kind string) {
	m := sticky.Message{From: p.ID, To: x.driver.self(), Number: 1, Stamp: x.stamp()}
	encode := func() []byte {
		frame, err := wire.EncodeStrict(nil, &m)
		x.must(err)
		return frame
	}
	frame := encode()
	switch kind {
	case "cut":
		frame = frame[:len(frame)-1]
	case "empty":
		frame = nil
	case "damaged":
		frame[len(frame)/2] ^= 1
	case "version":
		frame[0] = 99
	case "large":
		frame = make([]byte, wire.MaxFrameBytes+1)
	case "elsewhere":
		m.To = 4_711
		frame = encode()
	case "foreign":
		m.From = 4_711
		frame = encode()
	case "foreign-counts":
		q := p
		q.ID = 4_711
		frame = x.countsFrame(q, 0, 1, 0)
	case "foreign-rights":
		var err error
		frame, err = wire.EncodeRights(nil, &agent.Message{From: 4_711, To: m.To, Region: p.Region, Name: p.Name, Stamp: x.stamp()})
		x.must(err)
	case "cells":
		frame = x.countsFrame(p, 0, gossip.DefaultFrameCells+1, 0)
	case "shards":
		frame = x.countsFrame(p, 0, 1, 0)
		all, err := wire.Decode(frame)
		x.must(err)
		all[0].Shards, all[0].Shard = 64, 63
		frame, err = wire.Encode(nil, all)
		x.must(err)
	default:
		x.t.Fatalf("no kind %s", kind)
	}
	x.receive(p, frame)
}
