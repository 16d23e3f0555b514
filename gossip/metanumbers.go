package gossip

import (
	"cmp"
	"slices"

	"github.com/georld/rld/crdt"
)

// Messages name descriptions of cells by number once the peer knows them: a
// description with its window would take more than the cell.

// MetaRef is the number of a cell's description in a message, 0 for none. A
// number stands for a description and a block of windows. A message describes
// it until the peer acknowledged one that did: then it is Known.
type MetaRef struct {
	Number uint32
	Known  bool
}

// BlockWindows is the number of windows of a block, aligned to multiples of it.
const BlockWindows = 64

// metaBlock is what a number stands for.
type metaBlock struct {
	CellMeta
	block int64
}

// blockOf returns the block of a window. It returns false for a window that is
// no multiple of its length, or so far that the block may end beyond an int64,
// and for logs, which have windows in many blocks at a time.
func blockOf(meta *CellMeta, window int64) (metaBlock, bool) {
	length := meta.WindowLength
	if length < 1 || length > crdt.Max/BlockWindows || window < 0 || window%length != 0 ||
		window > crdt.Max-BlockWindows*length || meta.Carry > BlockWindows*length {
		return metaBlock{}, false
	}
	return metaBlock{*meta, window / length / BlockWindows}, true
}

// window returns the start of a window from its place in the block.
func (b *metaBlock) window(place int64) int64 {
	return (b.block*BlockWindows + place) * b.WindowLength
}

// PlaceInBlock returns the place of the cell's window in the block of its
// number, below 64, if its description is known.
func (c *Cell) PlaceInBlock() int64 {
	if c.WindowLength < 1 { // from a frame, which has the place alone
		return c.Window
	}
	return c.Window / c.WindowLength % BlockWindows
}

// metaNumbers are the numbers of a sender. No number is used twice.
type metaNumbers struct {
	numbers map[metaBlock]uint32
	last    uint32
	latest  metaBlock // that was asked for, with its number
	number  uint32
}

// maxMetaNumbers bounds the descriptions that have a number, knownMetas those
// that a peer knows: of more it knows the latest.
const (
	maxMetaNumbers = 4_096
	knownMetas     = 256
)

// of returns the number of a description and a window, 0 for none.
func (n *metaNumbers) of(meta *CellMeta, window int64) uint32 {
	b, ok := blockOf(meta, window)
	if !ok {
		return 0
	}
	if n.number != 0 && n.latest == b {
		return n.number
	}
	number, ok := n.numbers[b]
	if !ok {
		if n.last == 1<<32-1 {
			return 0
		}
		if n.numbers == nil || len(n.numbers) == maxMetaNumbers {
			n.numbers = make(map[metaBlock]uint32)
		}
		n.last++
		number = n.last
		n.numbers[b] = number
	}
	n.latest, n.number = b, number
	return number
}

// sentMetas are the numbers that a peer was sent descriptions of, ascending.
type sentMetas []sentMeta

// sentMeta is a number, and the version up to which the first message that
// describes it goes: once that is acknowledged, the peer knows it. The number
// stays when that message was lost: the receiver forgets the same ones.
type sentMeta struct {
	number uint32
	hi     uint64
}

// known reports whether the peer, which acknowledged everything up to a
// version, knows a number.
func (s sentMetas) known(number uint32, acked uint64) bool {
	i, ok := s.find(number)
	return ok && s[i].hi <= acked
}

func (s sentMetas) find(number uint32) (int, bool) {
	return slices.BinarySearchFunc(s, number, func(m sentMeta, n uint32) int { return cmp.Compare(m.number, n) })
}

// describes reports whether a cell of a message makes its number known once the
// message is acknowledged: estimates have no versions, and another message with
// the same versions lacks them.
func (c *Cell) describes(m *Message) bool {
	return c.Number != 0 && !c.Known && c.Kind != Others && m.Hi > m.Lo
}

// sent notes the numbers that a message describes.
func (s *sentMetas) sent(m *Message) {
	last := uint32(0)
	for i := range m.Cells {
		ref := m.Cells[i].MetaRef
		if ref.Number == last || !m.Cells[i].describes(m) {
			continue
		}
		last = ref.Number
		switch at, ok := s.find(last); {
		case !ok:
			*s = slices.Insert(*s, at, sentMeta{last, m.Hi})
		case (*s)[at].hi == undescribed:
			(*s)[at].hi = m.Hi
		}
	}
	if more := len(*s) - knownMetas; more > 0 {
		*s = slices.Delete(*s, 0, more)
	}
}

// undescribed is the version of a number that no message describes.
const undescribed = 1<<64 - 1

// forget makes the next messages describe all numbers.
func (s sentMetas) forget() {
	for i := range s {
		s[i].hi = undescribed
	}
}

// receivedMetas are the numbers that a peer described, ascending.
type receivedMetas []receivedMeta

type receivedMeta struct {
	number uint32
	is     metaBlock
}

func (r receivedMetas) find(number uint32) (int, bool) {
	return slices.BinarySearchFunc(r, number, func(m receivedMeta, n uint32) int { return cmp.Compare(m.number, n) })
}

// note notes a description of a peer.
func (r *receivedMetas) note(c *Cell) {
	b, ok := blockOf(&c.CellMeta, c.Window)
	at, noted := r.find(c.Number)
	switch {
	case !ok || noted:
		return
	case len(*r) < knownMetas:
		*r = slices.Insert(*r, at, receivedMeta{c.Number, b})
	case at > 0: // the least goes
		copy((*r)[:at-1], (*r)[1:at])
		(*r)[at-1] = receivedMeta{c.Number, b}
	}
}

// named replaces the numbers of a message by descriptions. It drops the cells
// whose number the peer never described, and returns how many these are. If
// they have versions, the peer will describe all numbers again.
func (r *receivedMetas) named(m *Message) (unknown int) {
	for i := range m.Cells {
		c := &m.Cells[i]
		switch {
		case c.Number == 0:
			continue
		case !c.Known:
			if c.describes(m) {
				r.note(c)
			}
			continue
		}
		at, ok := r.find(c.Number)
		place := c.PlaceInBlock()
		if !ok || place < 0 || place >= BlockWindows {
			c.WindowLength = 0
			unknown++
			continue
		}
		b := &(*r)[at].is
		c.CellMeta, c.Window = b.CellMeta, b.window(place)
	}
	if unknown > 0 {
		if m.Hi > m.Lo {
			*r = nil
		}
		m.Cells = slices.DeleteFunc(slices.Clone(m.Cells), func(c Cell) bool { return c.Known && c.WindowLength == 0 })
	}
	return unknown
}

// Of a key that the peer knows, messages have the first two bytes alone. Both
// ends of a link note the keys that were sent whole, in a table where each key
// has one place: the latest one there stays. The sender shortens a key once the
// peer acknowledged the message that it was noted from.

const (
	// ShortKeyBits is the number of first bits of a key that a short one has.
	ShortKeyBits = 16
	// keyPlaces bounds the keys that a link knows, over all shards.
	// leastKeyPlaces is the number of places of a shard at least.
	keyPlaces      = 4_096
	leastKeyPlaces = 64
	// maxShortened is the greatest number of cells of a message whose keys are
	// noted or shortened: a resync would replace all keys that are known.
	maxShortened = 256
)

// keyTable is the keys that one end of a link noted, by their places.
type keyTable map[uint16]notedKey

// notedKey is a key and the version up to which the message with it goes.
type notedKey struct {
	key crdt.Key
	hi  uint64
}

// keyPlace returns the place of a key, which depends on its first bits.
func keyPlace(k crdt.Key, shards int) uint16 {
	return uint16(uint64(k) >> (64 - ShortKeyBits) & uint64(max(keyPlaces/max(shards, 1), leastKeyPlaces)-1))
}

// notes reports whether both ends note the keys of a message: it covers
// versions, and all up to the latest one.
func notes(m *Message) bool {
	return m.Hi > m.Lo && m.Complete && len(m.Cells) <= maxShortened
}

// note notes the keys of a message that are not short. Later versions replace
// former ones, in whatever order messages arrive; of two keys of one message
// and place the lesser one stays.
func (t *keyTable) note(m *Message) {
	if *t == nil {
		*t = keyTable{}
	}
	for i := range m.Cells {
		c := &m.Cells[i]
		if c.Short {
			continue
		}
		place := keyPlace(c.Key, m.Shards)
		if is, ok := (*t)[place]; !ok || m.Hi > is.hi || m.Hi == is.hi && c.Key < is.key {
			(*t)[place] = notedKey{c.Key, m.Hi}
		}
	}
}

// shorten shortens the keys of a message that the peer knows, which
// acknowledged everything up to a version, and notes the others. reached is the
// greatest version of the messages so far: an acknowledgement of no more may be
// for another message, and the peer may know other keys.
func (t *keyTable) shorten(m *Message, acked, reached uint64) {
	if m.Hi == m.Lo || len(m.Cells) > maxShortened {
		return
	}
	for i := range m.Cells {
		c := &m.Cells[i]
		is, ok := (*t)[keyPlace(c.Key, m.Shards)]
		c.Short = ok && is.key == c.Key && is.hi <= acked
	}
	shortFirst(m.Cells)
	switch {
	case !notes(m):
	case m.Hi > reached:
		t.note(m)
	default:
		*t = nil
	}
}

// shortFirst puts the cells in the order of frames: of one kind and incarnation
// those with short keys come first.
func shortFirst(cells []Cell) {
	for start, i := 0, 1; i <= len(cells); i++ {
		if first := &cells[start]; i < len(cells) && cells[i].Kind == first.Kind && cells[i].Incarnation == first.Incarnation {
			continue
		}
		slices.SortStableFunc(cells[start:i], func(a, b Cell) int { return cmp.Compare(shortRank(&a), shortRank(&b)) })
		start = i
	}
}

func shortRank(c *Cell) int {
	if c.Short {
		return 0
	}
	return 1
}

// restore makes the short keys of a message whole. It drops the cells whose key
// it does not know, and returns how many these are. The sender shortens keys of
// acknowledged messages, which are up to contiguous. So a key that the table
// has from a later message, or from one after this one, is another one. Unless
// the sender is known to have received a message of this link (kept), it may
// mean acknowledgements of a former link; then no version before the message
// may be lacking.
func (t keyTable) restore(m *Message, contiguous uint64, kept bool) (unknown int) {
	known := kept || m.Lo <= contiguous
	lacks := func(c Cell) bool {
		is, ok := t[keyPlace(c.Key, m.Shards)]
		return c.Short && (!ok || !known || is.hi > contiguous || is.hi >= m.Hi || (is.key^c.Key)>>(64-ShortKeyBits) != 0)
	}
	for i := range m.Cells {
		switch c := &m.Cells[i]; {
		case !c.Short:
		case lacks(*c):
			unknown++
		default:
			c.Key = t[keyPlace(c.Key, m.Shards)].key
		}
	}
	if unknown > 0 {
		m.Cells = slices.DeleteFunc(slices.Clone(m.Cells), lacks)
	}
	return unknown
}
