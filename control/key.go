package control

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
)

// Seed is the secret that the keys and the run of one start of a daemon are
// derived from. Its zero value is none: New refuses it. It is not printed: a
// pointer hides it also inside of other values.
type Seed struct{ secret *[ed25519.SeedSize]byte }

// NewSeed reads a seed from a source of secure randomness: crypto/rand.Reader.
func NewSeed(random io.Reader) (Seed, error) {
	s := Seed{new([ed25519.SeedSize]byte)}
	if _, err := io.ReadFull(random, s.secret[:]); err != nil {
		return Seed{}, fmt.Errorf("control: a seed for the key of this daemon: %w", err)
	}
	if *s.secret == ([ed25519.SeedSize]byte{}) {
		return Seed{}, errors.New("control: a seed of zeros: want secure randomness")
	}
	return s, nil
}

// InsecureSeed draws a seed that can be guessed, for simulations and tests:
// internal/lint allows it nowhere else.
func InsecureSeed(rng *rand.Rand) Seed {
	s := Seed{new([ed25519.SeedSize]byte)}
	for i := 0; i < len(s.secret); i += 8 {
		binary.BigEndian.PutUint64(s.secret[i:], rng.Uint64())
	}
	return s
}

// String hides the secret.
func (Seed) String() string { return "secret" }

// derive returns the secret number n for a use.
func (s Seed) derive(use string, n uint64) (out [ed25519.SeedSize]byte) {
	b := append([]byte("rld "+use+"\x00"), s.secret[:]...)
	return sha256.Sum256(binary.BigEndian.AppendUint64(b, n))
}

// Key derives a key, another one for each n.
func (s Seed) Key(n uint64) *Key { return keyOf(s.derive("key", n)) }

// Run derives the run.
func (s Seed) Run() Run {
	sum := s.derive("run", 0)
	return Run(sum[:len(Run{})])
}

// Key is the key pair of a daemon: ed25519. It is immutable and safe for
// concurrent use. It is not printed.
type Key struct {
	private ed25519.PrivateKey
	id      ID
}

// Identity is the key and the run that a daemon proves to others.
type Identity struct {
	Key *Key
	Run Run
}

func keyOf(seed [ed25519.SeedSize]byte) *Key {
	k := &Key{private: ed25519.NewKeyFromSeed(seed[:])}
	k.id = IDOf(k.Public())
	return k
}

// String returns the id.
func (k *Key) String() string { return k.id.String() }

// ID returns the id of the daemon that has the key.
func (k *Key) ID() ID { return k.id }

// Public returns the public part. The caller must not change it.
func (k *Key) Public() []byte { return k.private[ed25519.SeedSize:] }

// IDOf returns the id of the daemon with a public key: the first half of its
// SHA-256.
func IDOf(public []byte) ID {
	sum := sha256.Sum256(public)
	return ID(sum[:len(ID{})])
}

// Purpose is the purpose of a signature. A signature for one is not valid for
// another one.
type Purpose string

// The purposes. Acknowledgements, votes and resignations are relayed, so each
// one is signed.
const (
	ForStream          Purpose = "stream"          // the hello of a stream
	ForNonce           Purpose = "nonce"           // a run is live
	ForAcknowledgement Purpose = "acknowledgement" // of an epoch
	ForVote            Purpose = "vote"            // for a watermark, or a layout
	ForResignation     Purpose = "resignation"     // of a run
)

// Signature is a signature, and the public key that it is checked with.
type Signature struct {
	Public []byte `json:"public"`
	Value  []byte `json:"value"`
}

// Sign signs a message for a purpose.
func (k *Key) Sign(p Purpose, message []byte) Signature {
	return Signature{Public: k.Public(), Value: ed25519.Sign(k.private, signed(p, message))}
}

// signed returns the bytes that are signed: no purpose contains a zero byte.
func signed(p Purpose, message []byte) []byte {
	return append([]byte("rld "+string(p)+"\x00"), message...)
}

// Verify returns an error unless the daemon with an id signed a message for a
// purpose.
func Verify(d ID, p Purpose, message []byte, s Signature) error {
	switch {
	case len(s.Public) != ed25519.PublicKeySize || len(s.Value) != ed25519.SignatureSize:
		return fmt.Errorf("a signature of %d bytes by a key of %d: want %d and %d", len(s.Value), len(s.Public), ed25519.SignatureSize, ed25519.PublicKeySize)
	case IDOf(s.Public) != d:
		return fmt.Errorf("a key of the id %v: want that of %v", IDOf(s.Public), d)
	case !ed25519.Verify(s.Public, signed(p, message), s.Value):
		return fmt.Errorf("a signature for %q that the key of %v did not make", p, d)
	}
	return nil
}

// keys makes the keys of one start.
type keys struct {
	seed Seed
	made uint64
}

// next returns a key that is new.
func (k *keys) next() storedKey {
	k.made++
	return storedKey{k.seed.Key(k.made)}
}

// storedKey is a key in an item on disk. It alone has a text with the secret.
type storedKey struct{ *Key }

// MarshalText implements encoding.TextMarshaler.
func (k storedKey) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, k.private.Seed()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *storedKey) UnmarshalText(text []byte) error {
	var seed [ed25519.SeedSize]byte
	if err := readHex("key", seed[:], text); err != nil { // which does not name the text
		return err
	}
	k.Key = keyOf(seed)
	return nil
}
