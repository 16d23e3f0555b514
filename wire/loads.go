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
	if len(m.Loads) == 0 {
		return nil
	}
	for i := range m.Loads {
		if fault := loadFault(&m.Loads[i]); fault != "" {
			return malformed("shard %d: load %d: %s", m.Shard, i, fault)
		}
	}
	at := e.open(partLoads)
	keys := e.open(loadsKeys)
	for i := range m.Loads {
		e.b = appendKey(e.b, m.Loads[i].Key)
	}
	e.close(keys)
	before := int64(0)
	e.loadColumn(loadsWindows, m, func(l *gossip.LoadReport) uint64 {
		distance := l.Window - before
		before = l.Window
		return zigzag(distance)
	})
	e.loadColumn(loadsOffered, m, func(l *gossip.LoadReport) uint64 { return l.Offered })
	e.loadColumn(loadsDoubted, m, func(l *gossip.LoadReport) uint64 { return l.Doubted })
	e.loadColumn(loadsOthers, m, func(l *gossip.LoadReport) uint64 {
		if l.Others {
			return 1
		}
		return 0
	})
	e.close(at)
	return nil
}

// loadColumn writes one number of each load.
func (e *Encoder) loadColumn(t tag, m *gossip.Message, of func(*gossip.LoadReport) uint64) {
	e.numbers = e.numbers[:0]
	for i := range m.Loads {
		e.numbers = append(e.numbers, of(&m.Loads[i]))
	}
	e.column(t, e.numbers)
}

// readLoads decodes the reports of loads.
func (d *Decoder) readLoads(from *reader, m *gossip.Message) {
	content := from.content(partLoads)
	if content == nil {
		return
	}
	r := reader{d: d, b: content}
	keys, n := r.rows(loadsKeys, keySize)
	windows, offered := r.column(loadsWindows), r.column(loadsOffered)
	doubted, others := r.column(loadsDoubted), r.column(loadsOthers)
	if r.end(); n == 0 {
		r.fail("loads without keys, want them left out")
	}
	if n > gossip.MaxLoads {
		d.exceed("loads", n, gossip.MaxLoads)
	}
	if d.err != nil {
		return
	}
	m.Loads = make([]gossip.LoadReport, n)
	window := int64(0)
	for i := range m.Loads {
		window += unzigzag(windows.next())
		l := &m.Loads[i]
		l.Key, l.Window = readKey(keys[keySize*i:]), window
		l.Load = prior.Load{Offered: offered.next(), Doubted: doubted.next()}
		kind := others.next()
		l.Others = kind == 1
		if fault := loadFault(l); fault != "" || kind > 1 {
			r.fail("load %d of kind %d: %s", i, kind, fault)
			return
		}
	}
	for _, c := range [...]*column{&windows, &offered, &doubted, &others} {
		r.ends(c)
	}
}

// loadFault returns what is wrong with a load, "" for nothing.
func loadFault(l *gossip.LoadReport) string {
	if l.Load != l.Bounded() {
		return "more hits than a load may have, or more doubted than offered"
	}
	return ""
}
