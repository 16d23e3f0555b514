package api

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dchest/siphash"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// token is the content of a refund token: a receipt, the incarnation that
// issued it, and its number there.
type token struct {
	incarnation crdt.Incarnation
	number      uint64
	receipt     node.Receipt
}

// On the wire a token is its version, ten numbers of eight bytes each, a flag,
// and the seal over all of that. Numbers are little-endian.
const (
	tokenVersion = 1
	sealBytes    = 16
	tokenBytes   = 1 + 10*8 + 1 + sealBytes
)

// sealer signs tokens with a key that no other process has, so that a caller
// cannot make one up.
type sealer struct{ k0, k1 uint64 }

func newSealer() sealer {
	var key [16]byte
	rand.Read(key[:]) // never fails
	return sealer{binary.LittleEndian.Uint64(key[:8]), binary.LittleEndian.Uint64(key[8:])}
}

// append appends a token.
func (s sealer) append(b []byte, t *token) []byte {
	from, r := len(b), &t.receipt
	b = append(b, tokenVersion)
	for _, v := range [...]uint64{
		uint64(t.incarnation), t.number, r.Key.Hi, r.Key.Lo, uint64(r.ID), r.Rule,
		uint64(r.Window), uint64(r.Length), uint64(r.Until), r.Hits,
	} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	alone := byte(0)
	if r.Alone {
		alone = 1
	}
	b = append(b, alone)
	seal := s.seal(b[from:])
	return append(b, seal[:]...)
}

func (s sealer) seal(b []byte) (seal [sealBytes]byte) {
	lo, hi := siphash.Hash128(s.k0, s.k1, b)
	binary.LittleEndian.PutUint64(seal[:8], lo)
	binary.LittleEndian.PutUint64(seal[8:], hi)
	return seal
}

// errForged is the error for a token that names this incarnation without its
// seal.
var errForged = errors.New("refund token was not issued by this daemon: send one as an answer of Check carried it")

// readToken reads a token whose seal is still to be checked: only the process
// that it names can do that.
func readToken(text string) (t token, err error) {
	if len(text) != tokenBytes || text[0] != tokenVersion {
		return t, fmt.Errorf("malformed refund token of %d bytes: send one as an answer of Check carried it", len(text))
	}
	b := []byte(text[1:])
	next := func() uint64 {
		v := binary.LittleEndian.Uint64(b)
		b = b[8:]
		return v
	}
	r := &t.receipt
	t.incarnation, t.number = crdt.Incarnation(next()), next()
	r.Key = crdt.Key{Hi: next(), Lo: next()}
	r.ID, r.Rule = rules.ID(next()), next()
	r.Window, r.Length, r.Until = int64(next()), int64(next()), int64(next())
	r.Hits = next()
	r.Alone = b[0] == 1
	return t, nil
}

// issued reports whether this process sealed a token of the right length.
func (s sealer) issued(text string) bool {
	body, is := text[:tokenBytes-sealBytes], text[tokenBytes-sealBytes:]
	seal := s.seal([]byte(body))
	return subtle.ConstantTimeCompare([]byte(is), seal[:]) == 1
}
