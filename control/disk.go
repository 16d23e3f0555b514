package control

import "time"

// disk holds the items to store, and the messages and steps that depend on
// them.
type disk struct {
	next   batch
	flight *batch // being stored, nil for none
	// failing is the latest error, nil after a success; retry is the time of
	// the next attempt.
	failing error
	retry   time.Duration
}

// batch holds items that are stored with one sync.
type batch struct {
	items    [][]byte
	messages []Message
	after    []func()
}

// retryStore is the time between two attempts to store.
const retryStore = time.Second

// queue stores an item with the next batch. A diskless daemon stores nothing.
func (n *Node) queue(s stored) {
	if n.cfg.Durable {
		n.disk.next.items = append(n.disk.next.items, s.encode())
	}
}

// hold sends a message once everything queued so far is stored.
func (n *Node) hold(p *peer, m Message) {
	m.To = p.Address
	if n.disk.idle() {
		n.out = append(n.out, m)
		return
	}
	n.disk.next.messages = append(n.disk.next.messages, m)
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
	b := d.next
	d.flight, d.next = &b, batch{}
	return b.items
}

// Stored reports that the items of Ready are stored and synced.
func (n *Node) Stored(at time.Duration) {
	n.clock(at)
	d := &n.disk
	if d.flight == nil {
		return
	}
	b := d.flight
	d.flight = nil
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
// depends on them is sent. Ready requests to store them again every second, or
// the driver replaces all that is stored by Snapshot.
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
	b.items = append(b.items, d.next.items...)
	b.messages = append(b.messages, d.next.messages...)
	b.after = append(b.after, d.next.after...)
	d.next, d.flight = *b, nil
	d.failing, d.retry = err, at+retryStore
}

// Snapshot returns items that replace all stored ones. It does not cover items
// that Ready returned and that are not stored yet.
func (n *Node) Snapshot() [][]byte {
	var items [][]byte
	add := func(s stored) { items = append(items, s.encode()) }
	self := n.self
	add(stored{Self: &self})
	if p := n.founding.promise; p != (promise{}) {
		add(stored{Founding: &p})
	}
	if n.record != nil {
		add(stored{Base: n.record.Encode()})
	}
	if n.raft != nil {
		n.raft.snapshot(add)
	}
	return items
}
