package control

import (
	"cmp"
	"slices"
	"time"
)

// disk holds the items to store, and the messages and steps that depend on
// them.
type disk struct {
	next   batch
	flight *batch // being stored, nil for none
	// number is that of the latest batch that is stored.
	number uint64
	began  uint64 // number before this run
	// failing is the latest error, nil after a success; retry is the time of
	// the next attempt.
	failing error
	retry   time.Duration
}

// batch holds items that are stored with one sync.
type batch struct {
	items    []stored
	messages []Message
	after    []func()
}

// maxHeld bounds the items, and the messages, that wait for the disk.
const maxHeld = 1_024

// retryStore is the time between two attempts to store.
const retryStore = time.Second

// queue stores an item with the next batch. A diskless daemon stores nothing.
func (n *Node) queue(s stored) {
	if n.cfg.Durable {
		b := &n.disk.next
		if b.items = append(b.items, s); len(b.items) > maxHeld {
			ofVoter := slices.DeleteFunc(b.items, func(s stored) bool { return !s.ofVoter() })
			b.items = append(n.state(), ofVoter...) // a voter needs the record
		}
	}
}

// state returns items with all that is not of a voter. Those of a voter are
// few: it waits for its disk.
func (n *Node) state() []stored {
	self := n.self
	items := []stored{{Self: &self}}
	if p := n.founding.promise; p != (promise{}) {
		items = append(items, stored{Founding: &p})
	}
	if n.record != nil {
		items = append(items, stored{Base: n.form.encoded(n.record)})
	}
	if r := n.recovering; r != nil && r.Version.Compare(n.record.Version) > 0 {
		items = append(items, stored{Base: r.Encode()})
	}
	if all := n.dropped.all; len(all) > 0 {
		items = append(items, stored{Dropped: &all})
	}
	if all := n.emergencies.all; len(all) > 0 {
		items = append(items, stored{Emergencies: &all})
	}
	if all := n.limits.former; len(all) > 0 {
		items = append(items, stored{Former: &all})
	}
	if all := n.runs.ofVoters(); all != nil {
		items = append(items, stored{Written: all})
	}
	return items
}

// hold sends a message once everything queued so far is stored.
func (n *Node) hold(p *peer, m Message) {
	m.To = p.Address
	if n.disk.idle() {
		n.out = append(n.out, m)
		return
	}
	b := &n.disk.next
	b.messages = append(b.messages[max(0, len(b.messages)+1-maxHeld):], m)
}

// afterStore calls a function once everything queued so far is stored.
func (n *Node) afterStore(do func()) {
	if n.disk.idle() {
		do()
		return
	}
	n.disk.next.after = append(n.disk.next.after, do)
}

// idle reports whether everything is stored.
func (d *disk) idle() bool { return d.flight == nil && len(d.next.items) == 0 }

// toStore returns the items to store now.
func (n *Node) toStore() [][]byte {
	d := &n.disk
	if d.flight != nil || d.failing != nil && n.at < d.retry || len(d.next.items) == 0 {
		return nil
	}
	n.self.Store++
	self := n.self
	n.queue(stored{Self: &self})
	if all := n.runs.changed(); all != nil {
		n.queue(stored{Written: all})
	}
	b := d.next
	d.flight, d.next = &b, batch{}
	return encodeAll(b.items)
}

func encodeAll(items []stored) [][]byte {
	out := make([][]byte, len(items))
	for i := range items {
		out[i] = items[i].encode()
	}
	return out
}

// Stored reports that the items of Ready are stored and synced.
func (n *Node) Stored(at time.Duration) {
	n.clock(at)
	d := &n.disk
	if d.flight == nil {
		return
	}
	b := d.flight
	d.flight, d.number = nil, n.self.Store
	if d.failing != nil {
		d.failing = nil
		n.events.Add(StoreMended, "", "")
	}
	n.release(b)
	if d.idle() { // what waited for nothing but the batch before
		b, d.next = &batch{messages: d.next.messages, after: d.next.after}, batch{}
		n.release(b)
	}
	n.turnRaft()
}

// release sends and does what waited for a batch.
func (n *Node) release(b *batch) {
	n.out = append(n.out, b.messages...)
	for _, do := range b.after {
		do()
	}
}

// Failed reports that the items of Ready could not be stored. Nothing that
// depends on them is sent. Ready requests to store them again every second.
func (n *Node) Failed(at time.Duration, err error) {
	n.clock(at)
	d := &n.disk
	if d.flight == nil {
		return
	}
	if d.failing == nil {
		n.events.Add(StoreFailed, "", err.Error())
	}
	b := d.flight
	for i := len(b.items) - 1; i > 0; i-- {
		if b.items[i].Self != nil { // of toStore, which adds a later one
			b.items = slices.Delete(b.items, i, i+1)
			break
		}
	}
	b.items = append(b.items, d.next.items...)
	b.messages = append(b.messages, d.next.messages...)
	b.after = append(b.after, d.next.after...)
	d.next, d.flight = *b, nil
	d.failing, d.retry = err, at+retryStore
}

// Snapshot returns items that replace all stored ones. With the items that
// Ready returned, and that are not stored yet, it covers them.
func (n *Node) Snapshot() [][]byte {
	items := n.state()
	if v := cmp.Or(n.raft, n.stopped); v != nil {
		v.snapshot(func(s stored) { items = append(items, s) })
	}
	if n.disk.flight != nil {
		items = append(items, n.disk.flight.items...)
	}
	return encodeAll(items)
}
