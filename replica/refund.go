package replica

import (
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dchest/siphash"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// RefundToken is the content of a refund token: a receipt, and the incarnation
// that issued it.
type RefundToken struct {
	Incarnation crdt.Incarnation
	Receipt     node.Receipt
}

// On the wire a token is its version, nine numbers of eight bytes each, a byte
// of flags, and the seal over all of that. Numbers are little-endian.
const (
	tokenVersion = 2
	tokenAlone   = 1 << 0
	tokenReserve = 1 << 1
	sealBytes    = 16
	tokenBytes   = 1 + 9*8 + 1 + sealBytes
)

// TokenSealer signs refund tokens with a key that no other process has, so that
// a caller cannot make one up.
type TokenSealer struct{ k0, k1 uint64 }

// NewTokenSealer returns the sealer of a random key.
func NewTokenSealer(key [16]byte) TokenSealer {
	return TokenSealer{binary.LittleEndian.Uint64(key[:8]), binary.LittleEndian.Uint64(key[8:])}
}

// Append appends a token.
func (s TokenSealer) Append(b []byte, t *RefundToken) []byte {
	from, r := len(b), &t.Receipt
	b = append(b, tokenVersion)
	for _, v := range [...]uint64{
		uint64(t.Incarnation), r.Number, uint64(r.Key), uint64(r.ID), r.Rule,
		uint64(r.Window), uint64(r.Length), uint64(r.Until), r.Hits,
	} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	flags := byte(0)
	if r.Alone {
		flags |= tokenAlone
	}
	if r.Reserve {
		flags |= tokenReserve
	}
	b = append(b, flags)
	seal := s.seal(b[from:])
	return append(b, seal[:]...)
}

func (s TokenSealer) seal(b []byte) (seal [sealBytes]byte) {
	lo, hi := siphash.Hash128(s.k0, s.k1, b)
	binary.LittleEndian.PutUint64(seal[:8], lo)
	binary.LittleEndian.PutUint64(seal[8:], hi)
	return seal
}

// Open returns the token of a text that the process with an incarnation
// sealed. The error is a *ForeignTokenError for a token that names another
// incarnation: only that one can check its seal.
func (s TokenSealer) Open(text string, own crdt.Incarnation) (RefundToken, error) {
	t, err := readToken(text)
	switch {
	case err != nil:
		return t, err
	case t.Incarnation != own:
		return t, &ForeignTokenError{Incarnation: t.Incarnation}
	}
	seal := s.seal([]byte(text[:tokenBytes-sealBytes]))
	if subtle.ConstantTimeCompare([]byte(text[tokenBytes-sealBytes:]), seal[:]) != 1 {
		return t, errForged
	}
	return t, nil
}

// ForeignTokenError is the error for a token of another incarnation.
type ForeignTokenError struct{ Incarnation crdt.Incarnation }

// Error names the incarnation.
func (e *ForeignTokenError) Error() string {
	return fmt.Sprintf("the hits were charged by incarnation %v", e.Incarnation)
}

// errForged is the error for a token that names this incarnation without its
// seal.
var errForged = errors.New("refund token was not issued by this daemon: send one as an answer of Check carried it")

// readToken reads a token whose seal is still to be checked.
func readToken(text string) (t RefundToken, err error) {
	if len(text) != tokenBytes || text[0] != tokenVersion {
		return t, fmt.Errorf("malformed refund token of %d bytes: send one as an answer of Check carried it", len(text))
	}
	b := []byte(text[1:])
	next := func() uint64 {
		v := binary.LittleEndian.Uint64(b)
		b = b[8:]
		return v
	}
	r := &t.Receipt
	t.Incarnation, r.Number, r.Key = crdt.Incarnation(next()), next(), crdt.Key(next())
	r.ID, r.Rule = rules.ID(next()), next()
	r.Window, r.Length, r.Until = int64(next()), int64(next()), int64(next())
	r.Hits = next()
	r.Alone, r.Reserve = b[0]&tokenAlone != 0, b[0]&tokenReserve != 0
	return t, nil
}
