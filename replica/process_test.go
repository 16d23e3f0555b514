package replica

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
	"github.com/georld/rld/wire"
)

// TestTooManyWaiters decides the call that is one too many as if no owner
// answered, and looks through many calls less often.
func TestTooManyWaiters(t *testing.T) {
	x := newRig(t)
	x.p.Reach.Peers(0, []gossip.Peer{{ID: x.id("us-1"), Name: "us-1", Region: "us"}})
	for i := range maxWaiters {
		x.start(fmt.Sprint(i), []string{"us-1"}, false)
	}
	if x.p.Waiters.Len() != maxWaiters || x.p.Waiters.Refused() != 0 {
		t.Fatalf("%d calls wait, %d were refused", x.p.Waiters.Len(), x.p.Waiters.Refused())
	}
	x.out.Reset()
	x.start("more", []string{"us-1"}, false)
	if got := x.out.String(); got != "more: allowed false, degraded \"owner_unreachable\"\n" || x.p.Waiters.Refused() != 1 {
		t.Errorf("%q, %d refused", got, x.p.Waiters.Refused())
	}
	x.at = 45 * time.Millisecond
	if late := x.p.Waiters.tick(x.at); len(late) != 0 {
		t.Error("65,536 calls are looked through every 5 ms")
	}
	x.at = 70 * time.Millisecond
	late := x.p.Waiters.tick(x.at)
	if len(late) != maxWaiters {
		t.Fatalf("%d calls are late", len(late))
	}
	for i, c := range late {
		if c.ticket != uint64(i+1) {
			t.Fatalf("call %d is late in place %d", c.ticket, i)
		}
		x.round(c.Tag.(*rigCall))
	}
	if x.p.Waiters.Len() != 0 || len(x.calls) != 0 {
		t.Errorf("%d calls still wait", x.p.Waiters.Len())
	}
}

// TestLateCallIsWokenOnce: an answer that comes between the end of a call's
// time and its next round does not wake it a second time. A driver that keeps
// calls for reuse would go on with one that is over.
func TestLateCallIsWokenOnce(t *testing.T) {
	x := newRig(t)
	x.p.Reach.Peers(0, []gossip.Peer{{ID: x.id("us-1"), Name: "us-1", Region: "us"}})
	x.start("a", []string{"us-1"}, false)
	c := x.calls["a"]
	x.at = time.Second
	if late := x.p.Waiters.tick(x.at); len(late) != 1 || late[0] != &c.StrictCall {
		t.Fatalf("%d calls are late", len(late))
	}
	if x.p.Waiters.Answered(c.Ticket(), node.ShardOf(c.call.Hits()[0].Key, 64)) != nil {
		t.Error("an answer woke a call that was awake")
	}
	x.round(c)
	if got := x.p.Waiters.tick(2 * time.Second); len(got) != 0 || x.p.Waiters.Len() != 0 {
		t.Errorf("%d calls are late, %d wait", len(got), x.p.Waiters.Len())
	}
}

// TestPathsAreBounded has more daemons come and go than are remembered.
func TestPathsAreBounded(t *testing.T) {
	p := New(Config{Self: 1, Region: "us", Shards: 1})
	at := time.Second
	for i := range 3 * maxPaths / 100 {
		var live []gossip.Peer
		for j := range 100 {
			live = append(live, gossip.Peer{ID: crdt.Incarnation(100*i + j + 2), Name: fmt.Sprint("us-", j), Region: "us"})
		}
		p.Reach.Peers(at, live)
	}
	if n := len(p.Reach.paths); n > maxPaths {
		t.Errorf("%d paths are remembered, at most %d", n, maxPaths)
	}
	p.Reach.Peers(at+goneKept+1, nil)
	if n := len(p.Reach.paths); n != 100 {
		t.Errorf("%d paths are kept of 100 daemons that just left", n)
	}
	p.Reach.Peers(at+2*(goneKept+1), nil)
	if n := len(p.Reach.paths); n != 0 {
		t.Errorf("%d paths are kept forever", n)
	}
}

// TestOutboxOfOne sends each message with more items than may wait, and drops
// one that would wait behind it.
func TestOutboxOfOne(t *testing.T) {
	o := newOutbox(1)
	m := sticky.Message{From: 1, To: 2, Requests: make([]sticky.LeaseRequest, 2)}
	for range 2 {
		o.Post(m)
		o.Post(m)
		got, ok := o.Next(0, 2)
		if !ok || len(got.Requests) != 2 {
			t.Fatalf("%d requests are sent, want 2", len(got.Requests))
		}
		o.Done(0, &got, true, nil)
		if _, more := o.Next(0, 2); more {
			t.Fatal("a message waited beside another one")
		}
	}
	if o.Sent() != 2 || o.Dropped() != 4 {
		t.Errorf("%d messages sent and %d items dropped, want 2 and 4", o.Sent(), o.Dropped())
	}
}

// TestOutboxIsBounded keeps a bounded number of items for a peer, and of peers.
func TestOutboxIsBounded(t *testing.T) {
	o := newOutbox(maxQueued)
	message := func(to crdt.Incarnation, n int) sticky.Message {
		return sticky.Message{From: 1, To: to, Requests: make([]sticky.LeaseRequest, n)}
	}
	if !o.Post(message(2, 100)) || o.Post(message(2, 100)) {
		t.Error("not the first message makes the caller the sender")
	}
	for o.Dropped() == 0 {
		o.Post(message(2, 100))
	}
	if b := o.boxes[2]; b.items > maxQueued || b.items+100 <= maxQueued || o.Dropped() != 100 {
		t.Errorf("%d items wait, at most %d; %d were dropped", b.items, maxQueued, o.Dropped())
	}
	for to := range crdt.Incarnation(2 * maxBoxes) {
		o.Post(message(to+3, 1))
	}
	if len(o.boxes) != maxBoxes {
		t.Errorf("%d boxes are kept, at most %d", len(o.boxes), maxBoxes)
	}
	for { // an idle box makes room
		if _, ok := o.Next(0, 3); !ok {
			break
		}
	}
	if !o.Post(message(1<<40, 1)) {
		t.Error("an idle box makes no room")
	}
	m := message(4, 1)
	if o.Next(0, 4); o.boxes[4].items != 0 {
		t.Error("a message is still counted that is being sent")
	}
	dropped := o.Dropped()
	if o.Done(0, &m, false, errors.New("too large")); o.Dropped() != dropped+1 {
		t.Error("a message that cannot be encoded is not dropped")
	}
}

// TestMerge merges what belongs into one frame and nothing else.
func TestMerge(t *testing.T) {
	base := func() sticky.Message {
		return sticky.Message{
			From: 1, To: 2, Number: 3, Stamp: 4, Requests: make([]sticky.LeaseRequest, 1), Grants: make([]sticky.LeaseGrant, 1),
			Accepts: make([]sticky.Accept, 1), Accepted: make([]sticky.Accepted, 1), SnapshotRequests: make([]sticky.SnapshotRequest, 1),
		}
	}
	to, m := base(), base()
	m.Stamp = 9
	if !merge(&to, &m) || itemsOf(&to) != 10 || to.Stamp != 9 {
		t.Errorf("merged %+v", to)
	}
	for name, change := range map[string]func(*sticky.Message){
		"layout":            func(m *sticky.Message) { m.Number++ },
		"snapshot":          func(m *sticky.Message) { m.SnapshotChunks = make([]sticky.SnapshotChunk, 1) },
		"layouts":           func(m *sticky.Message) { m.Layouts = make([]route.Layout, 1) },
		"requests":          func(m *sticky.Message) { m.Requests = make([]sticky.LeaseRequest, sticky.MaxItems) },
		"grants":            func(m *sticky.Message) { m.Grants = make([]sticky.LeaseGrant, sticky.MaxItems) },
		"accepts":           func(m *sticky.Message) { m.Accepts = make([]sticky.Accept, sticky.MaxItems) },
		"accepted":          func(m *sticky.Message) { m.Accepted = make([]sticky.Accepted, sticky.MaxItems) },
		"snapshot requests": func(m *sticky.Message) { m.SnapshotRequests = make([]sticky.SnapshotRequest, sticky.MaxItems) },
	} {
		to, m := base(), base()
		if change(&m); merge(&to, &m) {
			t.Errorf("%s: merged", name)
		}
	}
}

// TestAdmit rejects messages for other processes, and drops those that arrive
// before the peers are known.
func TestAdmit(t *testing.T) {
	p := New(Config{Self: 1, Region: "us", Shards: 1})
	m := sticky.Message{From: 2, To: 1}
	if ok, err := p.Reach.Routes().Admit(&m); ok || err != nil {
		t.Errorf("before the peers are known: %v, %v", ok, err)
	}
	p.Reach.Peers(0, nil)
	if ok, err := p.Reach.Routes().Admit(&m); !ok || err != nil {
		t.Errorf("after: %v, %v", ok, err)
	}
	m.To = 3
	if ok, err := p.Reach.Routes().Admit(&m); ok || !errors.Is(err, ErrOther) {
		t.Errorf("for another process: %v, %v", ok, err)
	}
}

// countsOf returns messages of shards to peers, each with cells.
func countsOf(cells int, to ...crdt.Incarnation) []gossip.Message {
	var all []gossip.Message
	for i, id := range to {
		m := gossip.Message{}
		m.From, m.To, m.Stamp, m.Shard, m.Shards = 7, id, hlc.Timestamp(i+1), i, 64
		m.Lo, m.Hi = 0, uint64(cells)
		for k := range cells {
			m.Cells = append(m.Cells, gossip.Cell{
				CellID: gossip.CellID{Key: crdt.Key(k + 1), Incarnation: 7}, Value: crdt.PN{P: 1},
				CellMeta: gossip.CellMeta{WindowLength: 1_000},
			})
		}
		all = append(all, m)
	}
	return all
}

// TestFrames encodes the counts of shards, decodes the frames and delivers the
// messages.
func TestFrames(t *testing.T) {
	var frames [][]byte
	var sizes []int
	CountFrames(new(wire.Encoder), countsOf(1, 3, 2, 3, 2, 2), func() []byte { return nil }, func(msgs []gossip.Message, frame []byte, err error) {
		if err != nil {
			t.Error(err)
		}
		frames, sizes = append(frames, frame), append(sizes, len(msgs))
		for i := range msgs {
			if msgs[i].To != msgs[0].To || msgs[i].Stamp != msgs[0].Stamp {
				t.Errorf("a frame has messages to %v with stamp %v and to %v with %v", msgs[0].To, msgs[0].Stamp, msgs[i].To, msgs[i].Stamp)
			}
		}
	})
	if fmt.Sprint(sizes) != "[3 2]" {
		t.Fatalf("frames of %v messages", sizes)
	}
	in, err := Decode(new(wire.Decoder), Origin{Incarnation: 7, To: 2}, frames[0])
	if err != nil || len(in.Counts) != 3 {
		t.Fatalf("%+v, %v", in, err)
	}
	var b inbox
	if b.limit = 9; in.Deliver(&b) != nil || b.counts != 3 {
		t.Errorf("delivered %+v", b)
	}
	if b = (inbox{limit: 2}); !errors.Is(in.Deliver(&b), errInbox) || b.counts != 2 {
		t.Errorf("delivered %+v after an error", b)
	}

	rights, err := wire.EncodeRights(nil, &agent.Message{From: 7, To: 1, Region: "us", Name: "us-1"})
	if err != nil {
		t.Fatal(err)
	}
	strict, err := wire.EncodeStrict(nil, &sticky.Message{From: 7, To: 1})
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{Process: New(Config{Self: 1, Shards: 1})}
	e.Reach.Peers(0, nil)
	b.strict = e
	for i, frame := range [][]byte{rights, strict} {
		if in, err = Decode(new(wire.Decoder), Origin{Incarnation: 7}, frame); err != nil {
			t.Fatal(err)
		}
		if err := in.Deliver(&b); (err != nil) != (i == 0) {
			t.Errorf("frame %d: %v", i, err)
		}
	}
	if b.rights != 1 || len(e.taken) == 0 {
		t.Errorf("delivered %+v, strict %v", b, e.taken)
	}

	for i, frame := range [][]byte{frames[0], rights, strict} {
		_, foreign := Decode(new(wire.Decoder), Origin{Incarnation: 8, To: 2}, frame)
		other := "foreign_sender"
		if i == 0 { // counts do not name their sender, and their checksum covers it
			other = "checksum"
			_, misplaced := Decode(new(wire.Decoder), Origin{Incarnation: 7, To: 3}, frame)
			if bad, ok := errors.AsType[*FrameError](misplaced); !ok || bad.Reason != other {
				t.Errorf("counts for another incarnation: %v", misplaced)
			}
		}
		_, cut := Decode(new(wire.Decoder), Origin{Incarnation: 7, To: 2}, frame[:len(frame)-1])
		flipped := append([]byte(nil), frame...)
		flipped[len(flipped)/2] ^= 1
		_, damaged := Decode(new(wire.Decoder), Origin{Incarnation: 7, To: 2}, flipped)
		for _, tt := range []struct {
			want string
			err  error
		}{{other, foreign}, {"", cut}, {"checksum", damaged}} {
			var bad *FrameError
			if !errors.As(tt.err, &bad) || tt.want != "" && bad.Reason != tt.want || bad.Error() == "" {
				t.Errorf("%v, want reason %q", tt.err, tt.want)
			}
		}
	}
	if _, err = Decode(new(wire.Decoder), Origin{Incarnation: 7}, nil); err == nil {
		t.Error("an empty frame was decoded")
	}
}

// TestFrameIsBounded splits what does not fit, and rejects a message with more
// cells than a shard handles at once.
func TestFrameIsBounded(t *testing.T) {
	var frames [][]byte
	CountFrames(new(wire.Encoder), countsOf(gossip.DefaultFrameCells, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2), func() []byte { return nil },
		func(_ []gossip.Message, frame []byte, _ error) { frames = append(frames, frame) })
	if len(frames) < 2 {
		t.Errorf("%d frames", len(frames))
	}
	n := 0
	for _, frame := range frames {
		in, err := Decode(new(wire.Decoder), Origin{Incarnation: 7, To: 2}, frame)
		if err != nil {
			t.Fatal(err)
		}
		n += len(in.Counts)
	}
	if n != 12 {
		t.Errorf("%d messages of 12 were sent", n)
	}
	CountFrames(new(wire.Encoder), countsOf(gossip.DefaultFrameCells+1, 2), func() []byte { return nil }, func(_ []gossip.Message, frame []byte, _ error) {
		var bad *FrameError
		if _, err := Decode(new(wire.Decoder), Origin{Incarnation: 7, To: 2}, frame); !errors.As(err, &bad) || bad.Reason != "size" {
			t.Errorf("%v, want reason size", err)
		}
	})
}

// acceptorOf returns the acceptor of us-0, one of three strict voters, and its
// peers.
func acceptorOf(t *testing.T, start quorum.Start) (*AcceptorLoop, []gossip.Peer) {
	t.Helper()
	names := []string{"us-0", "us-1", "us-2"}
	a, err := quorum.NewAcceptor(quorum.Config{Region: "us", Name: "us-0"}, start)
	if err != nil {
		t.Fatal(err)
	}
	var live []gossip.Peer
	for i, name := range names {
		live = append(live, gossip.Peer{ID: crdt.Incarnation(i + 1), Name: name, Region: "us", Ready: true})
	}
	l := &AcceptorLoop{Acceptor: a}
	l.Follow(0, threeVoters(0), nil)
	l.Peers(0, 1, live)
	return l, live
}

// acceptOf is a request of us-1 to accept a watermark.
func acceptOf(amount uint64) *sticky.Message {
	return &sticky.Message{From: 2, To: 1, Number: 1, Accepts: []sticky.Accept{{
		Key: 5, Ballot: sticky.Ballot{Round: 1, Owner: 2, Term: 1}, Seq: amount,
		Watermarks: sticky.Watermarks{{Window: 60_000, Amount: amount, End: 120_000}},
	}}}
}

var now = hlc.New(70_000, 0)

// votes returns how many accepts messages answer, and fails for a stamp that is
// not now.
func votes(t *testing.T, r *quorum.Ready) (n int) {
	for i := range r.Messages {
		n += len(r.Messages[i].Accepted)
		if r.Messages[i].Stamp != now {
			t.Errorf("a message has stamp %v", r.Messages[i].Stamp)
		}
	}
	return n
}

// TestAcceptorStoresBeforeItSends answers an accept after the store that it
// depends on, and never when that fails.
func TestAcceptorStoresBeforeItSends(t *testing.T) {
	l, _ := acceptorOf(t, quorum.Start{})
	r := l.Turn(0, now)
	log := Records(r.Store)
	if len(log) == 0 {
		t.Fatal("a start without a journal stores nothing")
	}
	if err := l.Receive(0, now, acceptOf(5)); err != nil {
		t.Fatal(err)
	}
	if r = l.Turn(0, now); len(r.Store) != 0 || votes(t, &r) != 0 {
		t.Errorf("%d entries to store during a store, %d votes", len(r.Store), votes(t, &r))
	}
	if r = l.Stored(0, now, nil); len(r.Store) == 0 || votes(t, &r) != 0 {
		t.Errorf("%d entries to store, %d votes before they are stored", len(r.Store), votes(t, &r))
	}
	log = append(log, Records(r.Store)...)
	if r = l.Stored(0, now, nil); votes(t, &r) != 1 {
		t.Errorf("%d votes after the store", votes(t, &r))
	}
	for name, records := range map[string][][]byte{"log": log, "snapshot": l.Snapshot()} {
		stored, err := Recover(records)
		if err != nil || len(stored.Records) != 1 || stored.Layout.Number != 1 {
			t.Fatalf("the %s recovers %+v, %v", name, stored, err)
		}
		again, _ := acceptorOf(t, quorum.Start{Stored: stored})
		again.Turn(5*time.Second, now) // no other voter answers
		if status := again.Acceptor.Status(); !status.Voting || status.Keys != 1 {
			t.Errorf("the %s: %+v", name, status)
		}
	}
	if _, err := Recover([][]byte{log[0], {1, 2, 3}}); err == nil {
		t.Error("a record that cannot be decoded was recovered")
	}

	if err := l.Receive(0, now, acceptOf(9)); err != nil {
		t.Fatal(err)
	}
	if r = l.Turn(0, now); len(r.Store) == 0 {
		t.Fatal("nothing to store")
	}
	r = l.Stored(0, now, errors.New("disk on fire"))
	if votes(t, &r) != 0 || l.Acceptor.Status().Voting {
		t.Error("an acceptor votes that could not store")
	}
}

// TestRightsAreStoredBeforeTheyAreUsed lets an agent use its rights after the
// record of them is stored, and not when that fails.
func TestRightsAreStoredBeforeTheyAreUsed(t *testing.T) {
	agentOf := func() *RightsLoop {
		a, err := agent.New(aloneConfig(), agent.Start{Found: true})
		if err != nil {
			t.Fatal(err)
		}
		a.Confirm()
		a.Peers(0, 1, []gossip.Peer{{ID: 1, Name: "us-0", Region: "us", Ready: true}})
		return &RightsLoop{Agent: a}
	}
	rights := func(l *RightsLoop) uint64 {
		n, _ := l.Agent.Allotment(1, 100, now.Millis()+1_000, 0, false)
		return n
	}
	l := agentOf()
	if !l.CountDue(0) || l.CountDue(time.Second-1) || !l.CountDue(time.Second) {
		t.Error("hits are not counted once a second")
	}
	r := l.Turn(0, now, false)
	if r.Store == nil || rights(l) != 0 {
		t.Errorf("holds %d before the record is stored", rights(l))
	}
	if r.Wake > 2*time.Second {
		t.Errorf("wakes at %v, and the next count is due", r.Wake)
	}
	if r = l.Stored(0, nil); r.Store != nil || rights(l) != 100 {
		t.Errorf("holds %d of 100 after the record is stored", rights(l))
	}
	l = agentOf()
	l.Turn(0, now, false)
	if r = l.Stored(0, errors.New("disk on fire")); rights(l) != 0 || len(r.Events) == 0 {
		t.Errorf("holds %d after the record was not stored; events %v", rights(l), r.Events)
	}
}

// TestRightsRules passes the rules on that have rights, with their weights.
func TestRightsRules(t *testing.T) {
	limit := rules.Limit{
		Unit: rules.Minute, Multiplier: 1, Requests: 5, Consistency: rules.Partition,
		Weights: []rules.Weight{{Region: "us", Share: 7}},
	}
	set, err := rules.NewSet([]rules.DomainNode{{Name: "edge", Children: []rules.Node{
		{Key: "a", Limit: &limit}, {Key: "b", Limit: &rules.Limit{Unlimited: true}}, {Key: "c"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	all := RightsRules(set)
	if len(all) != 1 {
		t.Fatalf("%d rules have rights", len(all))
	}
	r := all[0]
	if r.Window != time.Minute || r.Lookback != 3*time.Minute || len(r.Pins) != 1 || r.Pins[0] != (rules.Weight{Region: "us", Share: 7}) ||
		r.ID != set.Rules()[0].Shared() {
		t.Errorf("%+v", r)
	}
}
