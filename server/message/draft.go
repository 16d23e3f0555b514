package message

import (
	"fmt"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
)

// Fields of an entry, the same in the RLS and in the native API.
const (
	entryKey   = 1<<3 | Len
	entryValue = 2<<3 | Len
)

// keepEntries bounds the memory a Draft keeps for its next call.
const keepEntries = 256

// Draft collects a call while its message is read. What goes beyond the
// bounds of package node is counted and not kept, so that a hostile message
// costs its own length and no more. A Draft is used by one goroutine at a
// time: Start, then the call's parts in order, then Finish; Start again for
// the next call, or Free. The zero value is ready for Start.
type Draft struct {
	// Call is the call, owned by the Draft from Start to Free.
	Call *node.Call

	entries []rules.Entry // of all descriptors, one after the other
	own     []bool        // per descriptor: it has hits of its own
	first   int           // where the open descriptor's entries start

	descriptors, excess int // seen in the call; entries too many in a descriptor
	err                 error
}

// Start begins a new call and forgets the one before.
func (d *Draft) Start() {
	d.forget()
	if d.Call == nil {
		d.Call = server.NewCall()
	}
}

// Free forgets the call and gives its memory back.
func (d *Draft) Free() {
	d.forget()
	if d.Call != nil {
		server.FreeCall(d.Call)
		d.Call = nil
	}
	if cap(d.entries) > keepEntries {
		d.entries = nil
	}
}

func (d *Draft) forget() {
	if d.Call != nil {
		d.Call.Reset()
	}
	clear(d.entries)
	d.entries, d.own = d.entries[:0], d.own[:0]
	d.first, d.descriptors, d.excess, d.err = 0, 0, 0, nil
}

// Fail records a fault of the call; the first one stays.
func (d *Draft) Fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// Malformed records the fault of a scan of the message, or of a part of it, if
// there is one.
func (d *Draft) Malformed(message string, scan error) {
	if scan != nil {
		d.Fail(&node.InputError{Descriptor: -1, Entry: -1, Problem: fmt.Sprintf("malformed %s: %v", message, scan)})
	}
}

// FailHere records a fault of the open descriptor.
func (d *Draft) FailHere(problem string) {
	d.Fail(&node.InputError{Descriptor: d.Index(), Entry: -1, Problem: problem})
}

// Index returns the index of the open descriptor.
func (d *Draft) Index() int { return d.descriptors - 1 }

// Open starts the next descriptor. It returns nil when the call has more than
// it may have; the descriptor is to be skipped then.
func (d *Draft) Open() *rules.Descriptor {
	d.descriptors++
	if d.descriptors > node.MaxDescriptors {
		return nil
	}
	d.Call.Descriptors = append(d.Call.Descriptors, rules.Descriptor{})
	d.own = append(d.own, false)
	d.first, d.excess = len(d.entries), 0
	return &d.Call.Descriptors[len(d.Call.Descriptors)-1]
}

// Entry reads an entry of the open descriptor.
func (d *Draft) Entry(text string) {
	if len(d.entries)-d.first == node.MaxEntries {
		d.excess++
		return
	}
	var e rules.Entry
	s := Scan(text)
	for s.Next() {
		switch s.Tag {
		case entryKey:
			e.Key = s.Text
		case entryValue:
			e.Value = s.Text
		}
	}
	if err := s.Err(); err != nil {
		d.FailHere("malformed entry: " + err.Error())
	}
	d.entries = append(d.entries, e)
}

// Hits records that the open descriptor has hits of its own.
func (d *Draft) Hits(n uint64) {
	last := len(d.own) - 1
	d.own[last] = true
	d.Call.Descriptors[last].Hits = n
}

// OwnHits reports whether descriptor i has hits of its own.
func (d *Draft) OwnHits(i int) bool { return d.own[i] }

// Close ends the open descriptor.
func (d *Draft) Close() {
	last := len(d.Call.Descriptors) - 1
	d.Call.Descriptors[last].Entries = d.entries[d.first:len(d.entries):len(d.entries)]
	if d.excess > 0 {
		d.FailHere(fmt.Sprintf("%d entries, at most %d", node.MaxEntries+d.excess, node.MaxEntries))
	}
}

// Finish gives hits to every descriptor without hits of its own and returns the
// first fault of the call, or nil when it can be decided.
func (d *Draft) Finish(hits uint64) error {
	if d.err != nil {
		return d.err
	}
	if n := d.descriptors; n > node.MaxDescriptors {
		return &node.InputError{
			Descriptor: -1, Entry: -1,
			Problem: fmt.Sprintf("%d descriptors in one call, at most %d", n, node.MaxDescriptors),
		}
	}
	if err := d.Call.CheckText(); err != nil {
		return err
	}
	for i, own := range d.own {
		if !own {
			d.Call.Descriptors[i].Hits = hits
		}
	}
	return nil
}
