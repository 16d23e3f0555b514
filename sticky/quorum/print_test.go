package quorum

import (
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/eventlog"
	"github.com/georld/rld/sticky"
)

func cloneStored(s *Stored) *Stored {
	c := *s
	c.Records, c.index = slices.Clone(s.Records), nil
	return &c
}

// clone returns a copy that shares the daemons, until one of them changes.
func (w *world) clone() *world {
	c := *w
	c.net, c.daemons = slices.Clip(w.net), slices.Clone(w.daemons)
	return &c
}

// own returns a daemon that may be changed.
func (w *world) own(i int) *machine {
	m := w.daemons[i]
	n := *m
	n.old, n.unsaved = slices.Clip(m.old), slices.Clip(m.unsaved)
	n.r = m.r.clone()
	n.disk = cloneStored(m.disk)
	n.proposer.cast = slices.Clone(m.proposer.cast)
	n.summed = false
	w.daemons[i] = &n
	return &n
}

func (r *Acceptor) clone() *Acceptor {
	c := *r
	c.records = make(map[crdt.Key]*keyState, len(r.records))
	for k, l := range r.records {
		n := *l
		c.records[k] = &n
	}
	c.batch = r.batch.clone()
	if r.flight != nil {
		f := r.flight.clone()
		c.flight = &f
	}
	if r.copying != nil {
		n := *r.copying
		n.sources = slices.Clone(n.sources)
		c.copying = &n
	}
	c.ready, c.events = slices.Clone(r.ready), eventlog.Log[EventKind]{}
	return &c
}

func (b *batch) clone() batch {
	c := *b
	c.dirty, c.entries, c.messages = slices.Clone(b.dirty), slices.Clone(b.entries), slices.Clone(b.messages)
	for i := range c.messages {
		m := &c.messages[i]
		m.Accepted, m.SnapshotRequests, m.SnapshotChunks = slices.Clip(m.Accepted), slices.Clip(m.SnapshotRequests), slices.Clip(m.SnapshotChunks)
	}
	return c
}

// key is a fingerprint of all that matters of a world.
func (w *world) key() sum {
	b := make([]byte, 0, 256)
	n := func(v uint64) { b = binary.LittleEndian.AppendUint64(b, v) }
	n(w.consumed)
	n(uint64(w.left.crash)<<24 | uint64(w.left.lose)<<16 | uint64(w.left.pokes)<<8 | uint64(w.left.rebirth))
	n(uint64(len(w.log)))
	for _, m := range w.daemons {
		if !m.summed {
			m.sum, m.summed = m.print(), true
		}
		n(m.sum[0])
		n(m.sum[1])
	}
	var net sum
	for _, l := range w.net {
		net[0], net[1] = net[0]+l.sum[0], net[1]+l.sum[1]
	}
	n(net[0])
	n(net[1])
	return sumOf(b)
}

func (m *machine) print() sum {
	b := make([]byte, 0, 256)
	n := func(v uint64) { b = binary.AppendUvarint(b, v) }
	flag := func(v bool) {
		if v {
			n(1)
		} else {
			n(0)
		}
	}
	text := func(s string) { b = append(append(b, s...), 0) }
	n(uint64(m.incarnation))
	n(m.counted)
	n(uint64(m.wants))
	n(uint64(m.knows))
	n(m.terms)
	n(uint64(m.at))
	m.proposer.print(n, flag, text)
	m.r.print(n, flag, text)
	n(m.disk.Layout.Number)
	n(m.disk.Meta.Generation)
	flag(m.disk.Meta.Voting)
	flag(m.disk.Next != nil)
	text(generationsText(m.disk.Meta.Generations))
	for _, r := range m.disk.Records {
		text(ballotText(r.Ballot) + amounts(r.Watermarks))
	}
	return sumOf(b)
}

func (k *Proposer) print(n func(uint64), flag func(bool), text func(string)) {
	n(k.number)
	n(k.seq)
	n(k.top)
	n(uint64(k.tries))
	flag(k.Busy())
	flag(k.lost)
	text(ballotText(k.ballot) + amounts(k.held) + amounts(k.known) + amounts(k.flight.watermarks) + amounts(k.flight.known) + generationsText(k.generations))
	votes := slices.Clone(k.cast)
	slices.SortFunc(votes, func(a, b cast) int {
		if a.voter < b.voter {
			return -1
		}
		return 1
	})
	for _, c := range votes {
		n(c.voter)
		n(c.generation)
		n(uint64(c.why))
	}
}

func (r *Acceptor) print(n func(uint64), flag func(bool), text func(string)) {
	n(r.layout.Number)
	n(r.meta.Generation)
	flag(r.meta.Voting)
	flag(r.next != nil)
	flag(r.stored.copied)
	n(r.stored.Number)
	text(generationsText(r.meta.Generations))
	if l := r.records[theKey]; l != nil {
		text(ballotText(l.Ballot) + amounts(l.Watermarks))
	}
	for _, b := range [...]*batch{&r.batch, r.flight} {
		if b == nil {
			continue
		}
		n(uint64(len(b.dirty)))
		for _, e := range b.entries {
			flag(e.Record != nil)
			flag(e.Meta != nil)
			if e.Record != nil {
				text(ballotText(e.Record.Ballot) + amounts(e.Record.Watermarks))
			}
			if e.Meta != nil {
				n(e.Meta.Generation)
				flag(e.Meta.Voting)
				text(generationsText(e.Meta.Generations))
			}
		}
		// The same vote twice is one: else states would never end.
		var texts []string
		add := func(to crdt.Incarnation, m *sticky.Message) {
			texts = append(texts, strconv.FormatUint(uint64(to), 10)+describe(m))
		}
		for i := range b.messages {
			m := &b.messages[i]
			for j := range m.Accepted {
				add(m.To, &sticky.Message{Accepted: m.Accepted[j : j+1]})
			}
			for j := range m.SnapshotRequests {
				add(m.To, &sticky.Message{SnapshotRequests: m.SnapshotRequests[j : j+1]})
			}
			for j := range m.SnapshotChunks {
				add(m.To, &sticky.Message{SnapshotChunks: m.SnapshotChunks[j : j+1]})
			}
		}
		slices.Sort(texts)
		for _, t := range slices.Compact(texts) {
			text(t)
		}
	}
	if c := r.copying; c != nil {
		for i := range c.sources {
			s := &c.sources[i]
			flag(s.done)
			n(s.generation)
			flag(s.requested)
			text(generationsText(s.generations))
		}
	}
}
