package connlimit

import (
	"container/list"
	"net"
	"net/netip"
)

// pool holds connections by source. The zero value is empty.
type pool struct {
	count int
	conns map[netip.Prefix]*list.List // of *Conn, the oldest first; none is empty
}

// add appends a connection.
func (p *pool) add(c *Conn) {
	if p.conns == nil {
		p.conns = make(map[netip.Prefix]*list.List)
	}
	of := p.conns[c.source]
	if of == nil {
		of = list.New()
		p.conns[c.source] = of
	}
	c.place = of.PushBack(c)
	p.count++
}

// remove removes a connection of the pool.
func (p *pool) remove(c *Conn) {
	of := p.conns[c.source]
	of.Remove(c.place)
	if of.Len() == 0 {
		delete(p.conns, c.source)
	}
	p.count--
}

// of returns the number of connections of a source.
func (p *pool) of(source netip.Prefix) int {
	if of := p.conns[source]; of != nil {
		return of.Len()
	}
	return 0
}

// oldest returns the first connection of a source, or nil.
func (p *pool) oldest(source netip.Prefix) *Conn {
	if of := p.conns[source]; of != nil {
		return of.Front().Value.(*Conn)
	}
	return nil
}

// biggest returns the source with the most connections, of several that with
// the oldest connection; false for an empty pool.
func (p *pool) biggest() (netip.Prefix, bool) {
	var best *list.List
	var source netip.Prefix
	for s, of := range p.conns {
		if best == nil || of.Len() > best.Len() || of.Len() == best.Len() && older(of, best) {
			best, source = of, s
		}
	}
	return source, best != nil
}

// older reports whether the first connection of a list is older than that of
// another one.
func older(a, b *list.List) bool {
	return a.Front().Value.(*Conn).since < b.Front().Value.(*Conn).since
}

// The parts of an address that make a source, in bits.
const (
	source4 = 32
	source6 = 64
)

// sourceOf returns the source of an address, the zero Prefix for an address
// that is no IP address.
func sourceOf(a net.Addr) netip.Prefix {
	of, ok := a.(interface{ AddrPort() netip.AddrPort })
	if !ok {
		return netip.Prefix{}
	}
	ip := of.AddrPort().Addr().Unmap().WithZone("")
	bits := source6
	if ip.Is4() {
		bits = source4
	}
	source, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return source
}
