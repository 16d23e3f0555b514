package sticky

import (
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/georld/rld/crdt"
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
	n.old = slices.Clip(m.old)
	n.r = m.r.clone()
	n.disk = cloneStored(m.disk)
	n.keeper.cast = slices.Clone(m.keeper.cast)
	n.summed = false
	w.daemons[i] = &n
	return &n
}

func (r *Replica) clone() *Replica {
	c := *r
	c.records = make(map[crdt.Key]*ledger, len(r.records))
	for k, l := range r.records {
		n := *l
		c.records[k] = &n
	}
	c.heard, c.told, c.since = cloneMap(r.heard), cloneMap(r.told), cloneMap(r.since)
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
	c.ready, c.events = slices.Clone(r.ready), nil
	return &c
}

func cloneMap[K comparable, V any](m map[K]V) map[K]V {
	c := make(map[K]V, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

func (b *batch) clone() batch {
	c := batch{slices.Clone(b.dirty), slices.Clone(b.entries), slices.Clone(b.messages)}
	for i := range c.messages {
		m := &c.messages[i]
		m.Votes, m.Copies, m.Pages = slices.Clip(m.Votes), slices.Clip(m.Copies), slices.Clip(m.Pages)
	}
	return c
}

// key is a fingerprint of all that matters of a world.
func (w *world) key() sum {
	b := make([]byte, 0, 256)
	n := func(v uint64) { b = binary.LittleEndian.AppendUint64(b, v) }
	n(w.consumed)
	n(uint64(w.left.crash)<<24 | uint64(w.left.lose)<<16 | uint64(w.left.pokes)<<8 | uint64(w.left.rebirth))
	if w.changed {
		n(1)
	}
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
	n(uint64(m.slot))
	n(m.counted)
	n(uint64(m.wants))
	n(m.terms)
	n(uint64(m.at))
	m.keeper.print(n, flag, text)
	m.r.print(n, flag, text)
	n(m.disk.Layout.Number)
	n(m.disk.Meta.Life)
	flag(m.disk.Meta.Voting)
	flag(m.disk.Next != nil)
	text(livesText(m.disk.Meta.Lives))
	for _, r := range m.disk.Records {
		text(ballotText(r.Ballot) + amounts(r.Marks))
	}
	return sumOf(b)
}

func (k *Keeper) print(n func(uint64), flag func(bool), text func(string)) {
	n(k.number)
	n(k.seq)
	n(k.top)
	n(uint64(k.tries))
	flag(k.busy)
	flag(k.lost)
	text(ballotText(k.ballot) + amounts(k.held) + amounts(k.known) + amounts(k.flight.marks) + amounts(k.flight.known) + livesText(k.lives))
	votes := slices.Clone(k.cast)
	slices.SortFunc(votes, func(a, b cast) int {
		if a.voter < b.voter {
			return -1
		}
		return 1
	})
	for _, c := range votes {
		n(c.voter)
		n(c.life)
		n(uint64(c.why))
	}
}

func (r *Replica) print(n func(uint64), flag func(bool), text func(string)) {
	n(r.layout.Number)
	n(r.meta.Life)
	flag(r.meta.Voting)
	flag(r.next != nil)
	text(livesText(r.meta.Lives))
	if l := r.records[theKey]; l != nil {
		text(ballotText(l.ballot) + amounts(l.marks))
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
				text(ballotText(e.Record.Ballot) + amounts(e.Record.Marks))
			}
			if e.Meta != nil {
				n(e.Meta.Life)
				flag(e.Meta.Voting)
				text(livesText(e.Meta.Lives))
			}
		}
		// The same vote twice is one: else states would never end.
		var texts []string
		add := func(to crdt.Slot, m *Message) { texts = append(texts, strconv.FormatUint(uint64(to), 10)+describe(m)) }
		for i := range b.messages {
			m := &b.messages[i]
			for j := range m.Votes {
				add(m.To, &Message{Votes: m.Votes[j : j+1]})
			}
			for j := range m.Copies {
				add(m.To, &Message{Copies: m.Copies[j : j+1]})
			}
			for j := range m.Pages {
				add(m.To, &Message{Pages: m.Pages[j : j+1]})
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
			n(s.life)
			flag(s.ever)
			text(livesText(s.lives))
		}
	}
}
