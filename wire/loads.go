package wire

import (
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/prior"
)

// loads encodes the reports of loads, in their order.
func (e *Encoder) loads(m *gossip.Message) error {
	if len(m.Loads) > gossip.MaxLoads {
		return &SizeError{What: "loads", Got: len(m.Loads), Max: gossip.MaxLoads}
	}
	e.optional(uint64(len(m.Loads)))
	before := int64(0)
	for i := range m.Loads {
		l := &m.Loads[i]
		if fault := loadFault(l); fault != "" {
			return malformed("shard %d: load %d: %s", m.Shard, i, fault)
		}
		e.uint(l.Offered<<loadBits | uint64(flag(loadOthers, l.Others)|
			flag(loadDoubts, l.Doubted != 0)|flag(loadMoved, l.Window != before)))
		e.key(l.Key)
		e.optional(zigzag(l.Window - before))
		e.optional(l.Doubted)
		before = l.Window
	}
	return nil
}

// readLoads decodes the reports of loads.
func (d *Decoder) readLoads(r *reader, m *gossip.Message) {
	n := r.number("loads", gossip.MaxLoads, keySize+1)
	if n == 0 {
		return
	}
	m.Loads = make([]gossip.LoadReport, n)
	window := int64(0)
	for i := range m.Loads {
		head := r.varint()
		l := &m.Loads[i]
		l.Key, l.Others = r.key(), head&loadOthers != 0
		window += unzigzag(r.optional(head&loadMoved != 0, "window of a load"))
		l.Window = window
		l.Load = prior.Load{Offered: head >> loadBits, Doubted: r.optional(head&loadDoubts != 0, "doubted hits")}
		if fault := loadFault(l); fault != "" {
			r.fail("load %d: %s", i, fault)
		}
		if d.err != nil {
			return
		}
	}
}

// loadFault returns what is wrong with a load, "" for nothing.
func loadFault(l *gossip.LoadReport) string {
	if l.Load != l.Bounded() {
		return "more hits than a load may have, or more doubted than offered"
	}
	return ""
}
