package replica

import (
	"errors"
	"fmt"
	"testing"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// echo is the parts of process 1. Each message to it is answered by one to
// itself, of the next number, and one to process 10 and its number.
type echo struct {
	*Process
	taken  []int
	posted []crdt.Incarnation
}

func (e *echo) Routes() *Routes        { return e.Reach.Routes() }
func (e *echo) With(do func(*Process)) { do(e.Process) }

func (e *echo) StepStrict(m *sticky.Message) []sticky.Message {
	n := int(m.Number)
	e.taken = append(e.taken, n)
	return []sticky.Message{{To: 1, Number: m.Number + 1}, {To: crdt.Incarnation(10 + n)}}
}

func (e *echo) Flush(to crdt.Incarnation) {
	for m, ok := e.Outbox.Next(0, to); ok; m, ok = e.Outbox.Next(0, to) {
		e.posted = append(e.posted, m.To)
		e.Outbox.Done(0, &m, true, nil)
	}
}

// TestRoute lets the parts of a process answer each other a bounded number of
// times.
func TestRoute(t *testing.T) {
	e := &echo{Process: New(Config{Self: 1, Shards: 1})}
	Route([]sticky.Message{{To: 2}, {To: 1}}, e)
	if fmt.Sprintf("%v %d", e.taken, e.posted) != "[0 1 2 3] [2 10 11 12]" {
		t.Errorf("taken %v, posted %v", e.taken, e.posted)
	}
}

// TestDeliverStrict delivers a message about strict keys to a process that
// serves them, to one that does not know its peers yet, to another process, and
// to one that serves none.
func TestDeliverStrict(t *testing.T) {
	e := &echo{Process: New(Config{Self: 1, Shards: 1})}
	b := inbox{strict: e}
	in := Inbound{Strict: &sticky.Message{To: 1, Number: 2}}
	if err := in.Deliver(&b); err != nil || len(e.taken) != 0 {
		t.Errorf("%v taken before the peers are known, %v", e.taken, err)
	}
	e.Reach.Peers(0, nil)
	if err := in.Deliver(&b); err != nil || fmt.Sprintf("%v %d", e.taken, e.posted) != "[2 3 4 5 6] [12 13 14 15]" {
		t.Errorf("taken %v, posted %v, %v", e.taken, e.posted, err)
	}
	other := Inbound{Strict: &sticky.Message{To: 2}}
	if err := other.Deliver(&b); !errors.Is(err, ErrOther) || len(e.taken) != 5 {
		t.Errorf("%v taken after a message for another process, %v", e.taken, err)
	}
	if err := in.Deliver(&inbox{}); err != nil {
		t.Errorf("%v without strict keys", err)
	}
}

// TestRecipients finds the shards and the acceptor of each kind of item.
func TestRecipients(t *testing.T) {
	key := crdt.Key(1 << 63)
	for name, c := range map[string]struct {
		m        sticky.Message
		shards   bool
		acceptor bool
	}{
		"nothing":           {},
		"requests":          {m: sticky.Message{Requests: []sticky.LeaseRequest{{Key: key}}}, shards: true},
		"grants":            {m: sticky.Message{Grants: []sticky.LeaseGrant{{Key: key}}}, shards: true},
		"accepted":          {m: sticky.Message{Accepted: []sticky.Accepted{{Key: key}}}, shards: true},
		"accepts":           {m: sticky.Message{Accepts: make([]sticky.Accept, 1)}, acceptor: true},
		"snapshot requests": {m: sticky.Message{SnapshotRequests: make([]sticky.SnapshotRequest, 1)}, acceptor: true},
		"snapshot chunks":   {m: sticky.Message{SnapshotChunks: make([]sticky.SnapshotChunk, 1)}, acceptor: true},
		"layouts":           {m: sticky.Message{Layouts: make([]route.Layout, 1)}, acceptor: true},
	} {
		set, acceptor := Recipients(&c.m, 2)
		if (set != 0) != c.shards || acceptor != c.acceptor {
			t.Errorf("%s: shards %b, acceptor %v", name, set, acceptor)
		}
	}
}

// inbox counts the messages that it receives, up to its limit.
type inbox struct {
	counts, rights, control, limit int
	strict                         Parts
}

var errInbox = errors.New("full")

func (b *inbox) StepCounts(*gossip.Message) error {
	if b.counts == b.limit {
		return errInbox
	}
	b.counts++
	return nil
}

func (b *inbox) StepControl(*control.Message) error { b.control++; return errInbox }

func (b *inbox) StepRights(*agent.Message) error { b.rights++; return errInbox }
func (b *inbox) Strict() Parts                   { return b.strict }
