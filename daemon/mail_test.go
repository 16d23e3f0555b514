package daemon

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/wire"
)

// posted is the messages that a stream took.
type posted struct {
	mu   sync.Mutex
	shut bool // it takes none
	all  []*sticky.Message
}

func (p *posted) send(_ crdt.Incarnation, frame []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		return false
	}
	m, err := wire.DecodeStrict(frame)
	if err != nil {
		panic(err)
	}
	p.all = append(p.all, m)
	return true
}

func (p *posted) taken() []*sticky.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.all)
}

func (p *posted) open(is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut = !is
}

func asking(to crdt.Incarnation, ids ...uint64) sticky.Message {
	m := sticky.Message{From: 9, To: to, Number: 1, Stamp: 5}
	for _, id := range ids {
		m.Requests = append(m.Requests, sticky.LeaseRequest{ID: id, Lessee: 9, Want: 1, Need: 1})
	}
	return m
}

// waiting is how many items wait for a daemon, and whether somebody sends them.
func waiting(l *mail, to crdt.Incarnation) (items int, busy bool) {
	b := l.box(to)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.items, b.busy
}

// TestMailJoins puts what a stream had no room for into one frame, in its order.
func TestMailJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &posted{}
		l := newMail(p.send)
		l.post(asking(1, 1))
		p.open(false)
		l.post(asking(1, 2))
		l.post(asking(1, 3, 4))
		other := asking(1, 5)
		other.Number = 2 // another layout: not to be joined
		l.post(other)
		l.post(sticky.Message{From: 9, To: 1, Number: 2, Grants: []sticky.LeaseGrant{{ID: 6, Owner: 9}}})
		l.post(asking(2, 7))
		time.Sleep(3 * sendAgain)
		p.open(true)
		time.Sleep(2 * sendAgain)
		got := map[crdt.Incarnation][][]uint64{}
		for _, m := range p.taken() {
			var ids []uint64
			for _, a := range m.Requests {
				ids = append(ids, a.ID)
			}
			for _, g := range m.Grants {
				ids = append(ids, g.ID)
			}
			got[m.To] = append(got[m.To], ids)
		}
		one := got[1]
		if len(one) != 3 && len(one) != 4 || len(got[2]) != 1 {
			t.Fatalf("sent %v", got)
		}
		var all []uint64
		for _, ids := range one {
			all = append(all, ids...)
		}
		for i, id := range all {
			if id != uint64(i+1) {
				t.Fatalf("sent %v, want 1 to 6 in order", one)
			}
		}
		if l.dropped.Load() != 0 {
			t.Errorf("%d items were dropped", l.dropped.Load())
		}
	})
}

// TestMailGivesUp keeps nothing for a stream that does not come about.
func TestMailGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &posted{shut: true}
		l := newMail(p.send)
		items := 0
		for i := range 3 * maxQueued / 100 {
			ids := make([]uint64, 100)
			for j := range ids {
				ids[j] = uint64(100*i + j + 1)
			}
			l.post(asking(1, ids...))
			items += len(ids)
			if n, _ := waiting(l, 1); n > maxQueued {
				t.Fatalf("%d items wait, at most %d", n, maxQueued)
			}
		}
		time.Sleep(time.Second)
		if n := l.dropped.Load(); n != uint64(items) {
			t.Errorf("%d of %d items were dropped", n, items)
		}
		if n, busy := waiting(l, 1); busy || n != 0 {
			t.Errorf("%d items are kept, busy %v", n, busy)
		}
		p.open(true)
		l.post(asking(1, 1))
		if len(p.taken()) != 1 {
			t.Error("not sent when the stream is there")
		}
	})
}

// TestMailIsConcurrent has many send to one daemon: nothing is lost or sent twice.
func TestMailIsConcurrent(t *testing.T) {
	p := &posted{}
	l := newMail(p.send)
	herd(16, func(i int) {
		for j := range 200 {
			l.post(asking(1, uint64(200*i+j+1)))
		}
	})
	await(t, "all is sent", func() bool {
		_, busy := waiting(l, 1)
		return !busy
	})
	seen := map[uint64]int{}
	for _, m := range p.taken() {
		for _, a := range m.Requests {
			seen[a.ID]++
		}
	}
	for id := uint64(1); id <= 16*200; id++ {
		if seen[id] != 1 {
			t.Fatalf("item %d was sent %d times", id, seen[id])
		}
	}
	if n := l.sent.Load(); n != uint64(len(p.taken())) {
		t.Errorf("%d frames are counted, %d were sent", n, len(p.taken()))
	}
}
