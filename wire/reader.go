package wire

import (
	"encoding/binary"
	"math/bits"

	"github.com/georld/rld/crdt"
)

// reader decodes the content of a frame in its canonical form. After the first
// fault, which it reports to its decoder, it finds no further bytes.
type reader struct {
	d *Decoder
	b []byte
}

func (r *reader) fail(format string, args ...any) {
	r.d.fail(format, args...)
	r.b = nil
}

// byte reads a byte.
func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail("it is cut")
		return 0
	}
	b := r.b[0]
	r.b = r.b[1:]
	return b
}

// varint reads a number. After a fault it returns 0.
func (r *reader) varint() uint64 {
	if b := r.b; len(b) > 0 && b[0] < 0x80 {
		r.b = b[1:]
		return uint64(b[0])
	}
	v, n := uvarint(r.b)
	if n == 0 {
		r.fail("number is cut, too large or longer than it must be")
		return 0
	}
	r.b = r.b[n:]
	return v
}

// optional reads a number, which is 0 unless its flag is set. The name is for
// the fault.
func (r *reader) optional(set bool, name string) uint64 {
	if !set {
		return 0
	}
	v := r.varint()
	if v == 0 {
		r.fail("%s is 0 or no number, want it left out", name)
	}
	return v
}

// bytes reads n bytes, nil after a fault.
func (r *reader) bytes(n int, name string) []byte {
	if n > len(r.b) {
		r.fail("%s of %d bytes, want at most the %d that follow", name, n, len(r.b))
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// word reads 8 bytes, 0 after a fault.
func (r *reader) word(name string) uint64 {
	b := r.bytes(8, name)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

// optionalWord reads 8 bytes, which are 0 unless their flag is set.
func (r *reader) optionalWord(set bool, name string) uint64 {
	if !set {
		return 0
	}
	v := r.word(name)
	if v == 0 {
		r.fail("%s is 0 or cut, want it left out", name)
	}
	return v
}

// key reads a key, 0 after a fault.
func (r *reader) key() crdt.Key {
	b := r.bytes(keySize, "key")
	if b == nil {
		return 0
	}
	return readKey(b)
}

// incarnation reads the number of an incarnation and, the first time, its
// value. After a fault it returns 0.
func (r *reader) incarnation() crdt.Incarnation {
	d := r.d
	n := r.varint()
	switch {
	case n == 0:
		return d.head.From
	case n == 1:
		return d.head.To
	case n-2 < uint64(len(d.incarnations.values)):
		return d.incarnations.values[n-2]
	case n-2 > uint64(len(d.incarnations.values)):
		r.fail("incarnation %d is named before incarnation %d", n, len(d.incarnations.values)+2)
		return 0
	}
	s := crdt.Incarnation(r.word("incarnation"))
	if d.err != nil {
		return 0
	}
	if d.incarnations.find(&s) >= 0 || s == d.head.From || s == d.head.To {
		r.fail("incarnation %v is there twice", s)
		return 0
	}
	d.incarnations.add(&s)
	return s
}

// number reads the number of rows of a list that is there. Each has least bytes
// or more.
func (r *reader) number(name string, limit, least int) int {
	n := r.optional(true, "number of "+name)
	switch {
	case n > uint64(limit):
		r.d.exceed(name, int(min(n, maxClaim)), limit)
		r.b = nil
	case n > uint64(len(r.b)/least):
		r.fail("%d %s, want at most the %d that fit the rest", n, name, len(r.b)/least)
	default:
		return int(n)
	}
	return 0
}

// maxClaim bounds the numbers of rows in errors.
const maxClaim = 1 << 40

// column reads n numbers if their flag is set.
func (r *reader) column(set bool, n int, name string) column {
	if !set {
		return column{left: true, name: name}
	}
	size := sizeOf(r.b, n)
	if size < 0 {
		r.fail("%s of %d cells are cut", name, n)
		return column{left: true, name: name}
	}
	c := column{b: r.b[:size:size], name: name}
	r.b = r.b[size:]
	return c
}

// sizeOf returns the size of the first n numbers of b, -1 if there are fewer.
func sizeOf(b []byte, n int) int {
	at := 0
	for n >= 8 && len(b)-at >= 8 {
		n -= bits.OnesCount64(^binary.LittleEndian.Uint64(b[at:]) & 0x8080_8080_8080_8080)
		at += 8
	}
	for ; n > 0; at++ {
		if at == len(b) {
			return -1
		}
		if b[at] < 0x80 {
			n--
		}
	}
	return at
}

// column is a list of numbers that is read in step with others.
type column struct {
	b    []byte
	name string
	left bool // the column is absent: each number is 0
	bad  bool
	any  uint64 // all numbers read, or-ed
}

// next returns the next number. Most columns are left out.
func (c *column) next() uint64 {
	if c.left {
		return 0
	}
	return c.read()
}

func (c *column) read() uint64 {
	if b := c.b; len(b) > 0 && b[0] < 0x80 {
		c.b = b[1:]
		c.any |= uint64(b[0])
		return uint64(b[0])
	}
	v, n := uvarint(c.b)
	if n == 0 {
		c.b, c.bad = nil, true
		return 0
	}
	c.b = c.b[n:]
	c.any |= v
	return v
}

// ends fails unless c was read completely and was necessary.
func (r *reader) ends(c *column) {
	if !c.left {
		r.complete(c)
	}
}

// complete fails unless a column that is there was read completely and was
// necessary.
func (r *reader) complete(c *column) {
	switch {
	case c.bad || len(c.b) > 0:
		r.fail("%s are not as short as can be, or too large", c.name)
	case c.any == 0:
		r.fail("%s are all 0, want them left out", c.name)
	}
}

// uvarint returns the number that b starts with and its size, which is 0 when
// b is cut, the number does not fit 64 bits, or it could be shorter.
func uvarint(b []byte) (uint64, int) {
	v, n := binary.Uvarint(b)
	if n <= 0 || n > 1 && b[n-1] == 0 {
		return 0, 0
	}
	return v, n
}

func readKey(b []byte) crdt.Key {
	return crdt.Key(binary.BigEndian.Uint64(b))
}
