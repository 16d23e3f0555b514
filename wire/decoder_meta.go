package wire

import "math"

// readDescription decodes a description and the window of its first cell.
func readDescription(r *reader) (cellMeta, int64) {
	var s cellMeta
	form := r.byte()
	s.Rule = r.optionalWord(form&formRule != 0, "rule of a description")
	s.WindowLength = readLength(r, form&formUnit)
	if r.d.err != nil {
		return s, 0
	}
	if form&(formCarry|formCarryMillis) != 0 {
		carry := r.optional(true, "carry")
		s.Carry = readMultiple(r, int64(carry), s.WindowLength, form&formCarryMillis != 0)
		if form&formCarry != 0 && form&formCarryMillis != 0 || s.Carry < 0 {
			r.fail("carry of %d in form %#x, want one form and 63 bits", int64(carry), form)
		}
	}
	s.Regional = form&formRegional != 0
	window := readMultiple(r, unzigzag(r.varint()), s.WindowLength, form&formWindowMillis != 0)
	number := r.optional(form&formNumber != 0, "number of a description")
	if number > math.MaxUint32 {
		r.fail("number %d of a description, want 32 bits", number)
	}
	s.Number = uint32(number)
	return s, window
}

// readLength reads a window length in a unit.
func readLength(r *reader, unit byte) int64 {
	n := r.varint()
	ms := int64(1)
	switch unit {
	case 1:
		ms = second
	case 2:
		ms = minute
	}
	if n > 0 && n <= uint64(math.MaxInt64/ms) {
		length := int64(n) * ms
		if best, _ := unitOf(length); best == unit {
			return length
		}
	}
	r.fail("window length of %d in unit %d, want the longest unit and 63 bits", n, unit)
	return 0
}

// readMultiple returns milliseconds that are a multiple of a window length, or
// none.
func readMultiple(r *reader, n, length int64, millis bool) int64 {
	switch {
	case millis && n%length != 0:
		return n
	case !millis && n <= math.MaxInt64/length && n >= math.MinInt64/length:
		return n * length
	}
	r.fail("%d of windows of %d ms (in ms: %v), want windows where possible, and 63 bits", n, length, millis)
	return 0
}
