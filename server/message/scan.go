package message

import (
	"errors"
	"fmt"
)

// Wire types of the tags that a Scanner distinguishes. A tag is number<<3 |
// wire type.
const (
	Varint  = 0
	Fixed64 = 1
	Len     = 2 // texts, bytes and messages
	group   = 3
	endGrp  = 4
	Fixed32 = 5
)

const maxNumber = 1<<29 - 1 // the largest field number of the format

// maxGroups bounds the nesting of groups, which no message of ours has.
const maxGroups = 32

var errTruncated = errors.New("message ends in the middle of a field")

// Scanner walks over the fields of one message. It reads from a string, so
// that texts are parts of it and cost no copy. Use:
//
//	s := message.Scan(text)
//	for s.Next() {
//		switch s.Tag { ... }
//	}
//	return s.Err()
type Scanner struct {
	// Tag is number<<3 | wire type of the field Next found. A field of an
	// unexpected wire type has another tag and so is skipped as unknown, as
	// generated code does.
	Tag uint64
	// Uint is the value of a Varint field.
	Uint uint64
	// Text is the value of a Len field, a part of the scanned text.
	Text string

	rest string
	err  error
}

// Scan returns a scanner over the fields of a message.
func Scan(text string) Scanner { return Scanner{rest: text} }

// Next moves to the next field. It returns false at the end and at the first
// fault; Err distinguishes them.
func (s *Scanner) Next() bool {
	if s.rest == "" || s.err != nil {
		return false
	}
	if s.Tag = s.tag(); s.err == nil {
		s.value(0)
	}
	return s.err == nil
}

// tag reads a tag.
func (s *Scanner) tag() uint64 {
	tag := s.uvarint()
	if n := tag >> 3; s.err == nil && (n == 0 || n > maxNumber) {
		s.err = fmt.Errorf("field number %d, from 1 to %d are valid", n, maxNumber)
	}
	return tag
}

// Err returns what ended the scan, nil for a whole message.
func (s *Scanner) Err() error { return s.err }

// value reads the value that belongs to s.Tag.
func (s *Scanner) value(depth int) {
	switch s.Tag & 7 {
	case Varint:
		s.Uint = s.uvarint()
	case Len:
		if n := s.uvarint(); s.err == nil {
			s.Text = s.take(n)
		}
	case Fixed64:
		s.take(8)
	case Fixed32:
		s.take(4)
	case group:
		s.skipGroup(s.Tag>>3, depth+1)
	default:
		s.err = fmt.Errorf("field %d has the invalid wire type %d", s.Tag>>3, s.Tag&7)
	}
}

// skipGroup skips the fields of a group up to its end tag. The tag of the
// group stays in s.Tag.
func (s *Scanner) skipGroup(number uint64, depth int) {
	if depth > maxGroups {
		s.err = fmt.Errorf("groups nested more than %d deep", maxGroups)
		return
	}
	for s.err == nil {
		tag := s.tag()
		switch {
		case s.err != nil:
			return
		case tag&7 != endGrp:
			s.Tag = tag
			s.value(depth)
			continue
		case tag>>3 != number:
			s.err = fmt.Errorf("group %d is closed as %d", number, tag>>3)
		}
		s.Tag = number<<3 | group
		return
	}
}

// take cuts n bytes off the rest.
func (s *Scanner) take(n uint64) string {
	if n > uint64(len(s.rest)) {
		s.err = errTruncated
		return ""
	}
	t := s.rest[:n]
	s.rest = s.rest[n:]
	return t
}

// uvarint cuts a base-128 number of at most 64 bits off the rest.
func (s *Scanner) uvarint() uint64 {
	if len(s.rest) > 0 && s.rest[0] < 0x80 {
		v := uint64(s.rest[0])
		s.rest = s.rest[1:]
		return v
	}
	var v uint64
	for i := 0; i < len(s.rest); i++ {
		c := s.rest[i]
		if i == 9 && c > 1 {
			s.err = errors.New("number of more than 64 bits")
			return 0
		}
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			s.rest = s.rest[i+1:]
			return v
		}
	}
	s.err = errTruncated
	return 0
}
