package message

import (
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// AppendUint appends a Varint field; 0 is the default and left out.
func AppendUint(b []byte, tag, v uint64) []byte {
	if v == 0 {
		return b
	}
	b = appendVarint(b, tag)
	return appendVarint(b, v)
}

// AppendBool appends a Varint field; false is the default and left out.
func AppendBool(b []byte, tag uint64, v bool) []byte {
	if !v {
		return b
	}
	return append(appendVarint(b, tag), 1)
}

// AppendText appends a Len field; "" is the default and left out. Bytes that
// are not valid UTF-8 become U+FFFD, since a reader would refuse the whole
// message.
func AppendText(b []byte, tag uint64, s string) []byte {
	if s == "" {
		return b
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\ufffd")
	}
	return protowire.AppendString(appendVarint(b, tag), s)
}

// AppendBytes appends a Len field, an empty one too.
func AppendBytes(b []byte, tag uint64, v []byte) []byte {
	return protowire.AppendBytes(appendVarint(b, tag), v)
}

// AppendDuration appends a google.protobuf.Duration, a zero one too.
func AppendDuration(b []byte, tag uint64, d time.Duration) []byte {
	b, at := Open(b, tag)
	b = AppendUint(b, 1<<3|Varint, uint64(d/time.Second))
	b = AppendUint(b, 2<<3|Varint, uint64(d%time.Second))
	return Close(b, at)
}

// Open starts a message in a Len field. Bytes appended until Close with the
// same position are the message.
func Open(b []byte, tag uint64) (_ []byte, at int) {
	b = append(appendVarint(b, tag), 0)
	return b, len(b)
}

// Close ends the message that Open started at a position: it writes the
// length, for which Open left one byte, and moves the message up where one is
// not enough.
func Close(b []byte, at int) []byte {
	n := uint64(len(b) - at)
	if n < 0x80 {
		b[at-1] = byte(n)
		return b
	}
	var room [9]byte
	more := protowire.SizeVarint(n) - 1
	b = append(b, room[:more]...)
	copy(b[at+more:], b[at:])
	protowire.AppendVarint(b[:at-1], n)
	return b
}

// appendVarint is protowire's, with most numbers and all tags in one step.
func appendVarint(b []byte, v uint64) []byte {
	if v < 0x80 {
		return append(b, byte(v))
	}
	return protowire.AppendVarint(b, v)
}
