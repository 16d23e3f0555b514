package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/georld/rld/node"
)

// Bounds of the headers that values are taken from, in bytes.
const (
	maxURI    = 8 << 10
	maxCookie = 16 << 10
	maxToken  = 16 << 10
)

// digestBytes is the part of a SHA-256 that stands for a value. Two of 2^40
// values have the same with a probability of 2^-49.
const digestBytes = 16

// one returns the value of a header that may come once.
func (r *Request) one(name string) (string, Reason) {
	switch values := r.Header[name]; len(values) {
	case 0:
		return "", noFault
	case 1:
		return values[0], noFault
	}
	return "", Repeated
}

// canonical returns the name of a header in the form of net/http, for names
// that are tokens.
func canonical(name string) string {
	b := []byte(name)
	upper := true
	for i, c := range b {
		switch {
		case upper && 'a' <= c && c <= 'z':
			b[i] = c - 'a' + 'A'
		case !upper && 'A' <= c && c <= 'Z':
			b[i] = c - 'A' + 'a'
		}
		upper = c == '-'
	}
	return string(b)
}

// checked returns a reader of values that may be keys: hashed, or short valid
// text without NUL.
func checked(s *Source) reader {
	read := s.reader()
	if s.Hash {
		return func(r *Request) (string, Reason) {
			value, fault := read(r)
			if fault != noFault || value == "" {
				return "", fault
			}
			return digest(value), noFault
		}
	}
	return func(r *Request) (string, Reason) {
		value, fault := read(r)
		switch {
		case fault != noFault:
			return "", fault
		case len(value) > node.MaxTextBytes:
			return "", TooLong
		case strings.IndexByte(value, 0) >= 0 || !utf8.ValidString(value):
			return "", BadText
		}
		return value, noFault
	}
}

// digest returns the value that stands for a secret. It has no key, so that it
// is the same at all daemons and after a restart, and an operator can write the
// digest of a value into limits.
func digest(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:digestBytes])
}

// reader returns the reader of a valid source, without Hash.
func (s *Source) reader() reader {
	switch {
	case s.Header != "":
		name := canonical(s.Header)
		return func(r *Request) (string, Reason) { return r.one(name) }
	case s.Client != nil:
		return newClient(s.Client).read
	case s.Method:
		return (*Request).method
	case len(s.Template) > 0:
		return newTemplates(s.Template).read
	case s.Host:
		return (*Request).host
	case s.Cookie != "":
		return func(r *Request) (string, Reason) { return r.cookie(s.Cookie) }
	case s.Claim != nil:
		return newClaim(s.Claim).read
	case s.Query != "":
		return func(r *Request) (string, Reason) { return r.query(s.Query) }
	case len(s.Join) > 0:
		return join(s.Join)
	}
	return func(*Request) (string, Reason) { return s.Constant, noFault }
}

// escape keeps two lists of parts from having the same joined value.
var escape = strings.NewReplacer(`\`, `\\`, `|`, `\|`)

// join returns the reader of the parts with | between them.
func join(parts []Source) reader {
	readers := make([]reader, len(parts))
	for i := range parts {
		readers[i] = checked(&parts[i])
	}
	return func(r *Request) (string, Reason) {
		var b strings.Builder
		for i, read := range readers {
			value, fault := read(r)
			if fault != noFault || value == "" {
				return "", fault
			}
			if i > 0 {
				b.WriteByte('|')
			}
			b.WriteString(escape.Replace(value))
		}
		return b.String(), noFault
	}
}
