package epoch

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

func (w *world) clone() *world {
	c := *w
	c.tables = make([]*Table, len(w.tables))
	for i, t := range w.tables {
		c.tables[i] = t.clone()
	}
	c.now, c.stored, c.dead = slices.Clone(w.now), slices.Clone(w.stored), slices.Clone(w.dead)
	c.acks, c.grants, c.star = slices.Clone(w.acks), slices.Clone(w.grants), slices.Clone(w.star)
	c.cur, c.past, c.left = slices.Clone(w.cur), slices.Clone(w.past), slices.Clone(w.left)
	for i := range c.cur {
		c.cur[i], c.past[i] = slices.Clone(c.cur[i]), slices.Clone(c.past[i])
	}
	return &c
}

func (t *Table) clone() *Table {
	c := *t
	c.entries = slices.Clone(t.entries)
	for i := range c.entries {
		c.entries[i].acks = slices.Clone(c.entries[i].acks)
		c.entries[i].held = slices.Clone(c.entries[i].held)
	}
	c.horizons, c.extensions = slices.Clone(t.horizons), slices.Clone(t.extensions)
	return &c
}

// key identifies the state; sent items count as a set.
func (w *world) key() [16]byte {
	b := make([]byte, 0, 512)
	for i, t := range w.tables {
		b = t.appendKey(b)
		b = binary.AppendVarint(b, w.now[i])
		b = append(b, fmt.Sprint(w.dead[i])...)
		r := w.stored[i]
		b = binary.AppendVarint(binary.AppendVarint(b, r.Bounds.Window), r.SettledFrom)
		b = append(b, byte(len(r.Mine)), byte(len(r.Acks)), byte(len(r.Epochs)))
		b = append(b, fmt.Sprint(w.left[i].there)...)
		for x := range w.cur[i] {
			b = append(b, byte(w.cur[i][x]), byte(w.past[i][x]))
		}
	}
	sent := make([]string, len(w.acks))
	for i, a := range w.acks {
		sent[i] = string(appendAck(nil, a))
	}
	slices.Sort(sent)
	b = append(b, strings.Join(sent, "|")...)
	late := make([]string, len(w.grants))
	for i, g := range w.grants {
		late[i] = fmt.Sprint(g)
	}
	slices.Sort(late)
	b = append(b, strings.Join(late, "|")...)
	for _, id := range w.star {
		b = appendID(b, id)
	}
	b = append(b, byte(w.crashes), byte(w.stops), byte(w.resumes), byte(w.lapses))
	h := sha256.Sum256(b)
	return [16]byte(h[:16])
}

func (t *Table) appendKey(b []byte) []byte {
	b = append(b, byte(t.owner), byte(len(t.entries)))
	for i := range t.entries {
		e := &t.entries[i]
		b = appendID(b, e.ID)
		b = binary.AppendVarint(b, e.from)
		b = append(b, fmt.Sprint(e.mine, e.kept)...)
		b = binary.AppendVarint(b, e.extended)
		for _, a := range e.acks {
			b = appendAck(b, a)
		}
	}
	for _, p := range t.past {
		b = fmt.Append(b, p)
	}
	b = appendID(appendID(b, t.top), t.pruned)
	for _, v := range [...]int64{t.used, t.fence, t.unknown, t.stopped, t.floor, t.durable.Window, t.durable.Horizon} {
		b = binary.AppendVarint(b, v)
	}
	for _, r := range t.horizons {
		b = binary.AppendVarint(append(b, 'r', byte(r.ID)), r.Until)
	}
	for _, g := range t.extensions {
		b = binary.AppendVarint(appendID(append(b, 'g', byte(g.By)), g.Under), g.Until)
	}
	return b
}

func appendID(b []byte, id ID) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(id.Stamp)), id.Proposer)
}

func appendAck(b []byte, a Ack) []byte {
	b = appendID(append(b, 'a', byte(a.By)), a.ID)
	b = binary.AppendVarint(binary.AppendVarint(b, a.From), a.Floor)
	for _, id := range a.Before {
		b = appendID(b, id)
	}
	for _, r := range a.Horizons {
		b = binary.AppendVarint(append(b, byte(r.ID)), r.Until)
	}
	return b
}
