package wire

import "encoding/binary"

// reader decodes the fields of one protobuf message in their canonical order
// and form. After the first fault, which it reports to its decoder, it finds no
// further fields.
type reader struct {
	d *Decoder
	b []byte
}

func (r *reader) fail(format string, args ...any) {
	r.d.fail(format, args...)
	r.b = nil
}

// next reports whether the next field is t, and if so advances to its value.
func (r *reader) next(t tag) bool {
	if len(r.b) == 0 || r.b[0] != byte(t) {
		return false
	}
	r.b = r.b[1:]
	return true
}

// end fails unless all fields were read. Fields are read in the order of their
// numbers, so a remaining one is unknown or out of place.
func (r *reader) end() {
	if len(r.b) > 0 {
		r.fail("field %d of type %d is unknown or out of place", r.b[0]>>3, r.b[0]&7)
	}
}

// uint returns the value of a field, 0 when it is absent.
func (r *reader) uint(t tag) uint64 {
	if !r.next(t) {
		return 0
	}
	v := r.varint()
	if v == 0 {
		r.fail("field %d is 0 or no number, want it left out", t.number())
	}
	return v
}

func (r *reader) flag(t tag) bool {
	v := r.uint(t)
	if v > 1 {
		r.fail("field %d is %d, want 1", t.number(), v)
	}
	return v == 1
}

// varint reads a number. After a fault no bytes remain, and it returns 0.
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

// word returns the value of a field of 8 bytes, 0 when it is absent. The name
// is for the fault.
func (r *reader) word(t tag, name string) uint64 {
	if !r.next(t) {
		return 0
	}
	if len(r.b) < 8 || binary.LittleEndian.Uint64(r.b) == 0 {
		r.fail("%s is 0 or cut, want it left out", name)
		return 0
	}
	v := binary.LittleEndian.Uint64(r.b)
	r.b = r.b[8:]
	return v
}

// content returns the content of a field with a length, nil only when the field
// is absent.
func (r *reader) content(t tag) []byte {
	if len(r.b) == 0 || r.b[0] != byte(t) { // as most are
		return nil
	}
	return r.present(t)
}

// present returns the content of a field that is there.
func (r *reader) present(t tag) []byte {
	r.b = r.b[1:]
	n := r.varint()
	if n > uint64(len(r.b)) {
		r.fail("field %d of %d bytes, want at most the %d that follow", t.number(), n, len(r.b))
		return nil
	}
	content := r.b[:n:n]
	r.b = r.b[n:]
	return content
}

// rows returns the content of a field of rows with the same size, and their
// number; nil when the field is absent.
func (r *reader) rows(t tag, size int) ([]byte, int) {
	content := r.content(t)
	if content != nil && (len(content) == 0 || len(content)%size != 0) {
		r.fail("field %d of %d bytes, want a multiple of %d", t.number(), len(content), size)
		return nil, 0
	}
	return content, len(content) / size
}

// column returns a field of packed numbers.
func (r *reader) column(t tag) column {
	content := r.content(t)
	if content != nil && len(content) == 0 {
		r.fail("field %d is empty, want it left out", t.number())
	}
	return column{b: content, left: content == nil, field: t}
}

// column is a list of numbers that is read in step with others.
type column struct {
	b     []byte
	field tag
	left  bool // the field is absent: each number is 0
	bad   bool
	any   uint64 // all numbers read, or-ed
}

// count returns the number of remaining numbers.
func (c *column) count() int {
	n := 0
	for _, b := range c.b {
		if b < 0x80 {
			n++
		}
	}
	return n
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
		r.fail("field %d does not hold the numbers of the rows, as short as can be", c.field.number())
	case c.any == 0:
		r.fail("field %d is all 0, want it left out", c.field.number())
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
