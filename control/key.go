package control

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
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

// ID is the id of a daemon: the hash of its public key, which it makes at its
// first start and keeps for as long as its state folder is intact.
type ID [16]byte

// String returns the 32 hexadecimal digits of the id.
func (d ID) String() string { return hex.EncodeToString(d[:]) }

// MarshalText implements encoding.TextMarshaler.
func (d ID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *ID) UnmarshalText(text []byte) error {
	return readHex("id", d[:], text)
}

// readHex reads the hexadecimal digits of a value of a kind. The error does not
// repeat them: some are secret.
func readHex(kind string, into, text []byte) error {
	if len(text) != hex.EncodedLen(len(into)) {
		return fmt.Errorf("%s of %d digits: want %d hexadecimal ones", kind, len(text), hex.EncodedLen(len(into)))
	}
	if _, err := hex.Decode(into, text); err != nil {
		return fmt.Errorf("%s: want %d hexadecimal digits", kind, len(text))
	}
	return nil
}

// Compare orders ids.
func (d ID) Compare(o ID) int { return cmp.Compare(string(d[:]), string(o[:])) }

// text returns the hexadecimal digits of an id, or of a half.
func (d ID) text() string {
	if d == d.half() {
		return hex.EncodeToString(d[:len(d)/2])
	}
	return d.String()
}

// half returns the half of an id that epochs of daemons name, as an id with
// zeros for the rest. No daemon has such an id.
func (d ID) half() ID {
	clear(d[len(d)/2:])
	return d
}

// Run names one start of a daemon. Two runs of one id at a time are two daemons
// with copies of one disk.
type Run [16]byte

// String returns the 32 hexadecimal digits of the run.
func (r Run) String() string { return hex.EncodeToString(r[:]) }

// MarshalText implements encoding.TextMarshaler.
func (r Run) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, r[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Run) UnmarshalText(text []byte) error { return readHex("run", r[:], text) }

// Number is a random number that names something for ever: a cluster, a
// recovery, a voter. It is text in JSON, where numbers are not exact.
type Number uint64

// String returns the 16 hexadecimal digits of the number.
func (n Number) String() string { text, _ := n.MarshalText(); return string(text) }

// MarshalText implements encoding.TextMarshaler.
func (n Number) MarshalText() ([]byte, error) {
	return hex.AppendEncode(nil, binary.BigEndian.AppendUint64(nil, uint64(n))), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *Number) UnmarshalText(text []byte) error {
	v, err := strconv.ParseUint(string(text), 16, 64)
	if err != nil || len(text) != 16 {
		return fmt.Errorf("number %q: want 16 hexadecimal digits", text)
	}
	*n = Number(v)
	return nil
}

// Recovery names a log. The founding begins recovery 0, and each recovery of a
// cluster begins the next one. Its Random part tells two recoveries of one
// number apart.
type Recovery struct {
	Number uint32 `json:"number"`
	Random Number `json:"random"`
}

// Version is the place of a record in the history of its cluster: the entries
// of a recovery up to an index. Versions of two recoveries with the same number
// do not belong to one history: see Recovery.
type Version struct {
	Recovery Recovery `json:"recovery"`
	Index    uint64   `json:"index"`
}

// String returns the version as commands print it: the index, and the recovery
// if there was one.
func (v Version) String() string {
	if v.Recovery.Number == 0 {
		return strconv.FormatUint(v.Index, 10)
	}
	return fmt.Sprintf("%d.%d", v.Recovery.Number, v.Index)
}

// Compare orders versions by the number of their recovery and their index.
func (v Version) Compare(o Version) int {
	return cmp.Or(cmp.Compare(v.Recovery.Number, o.Recovery.Number), cmp.Compare(v.Index, o.Index))
}

// DaemonID returns the id of a daemon by its name, by the id itself, or by the
// half of it that epochs of daemons name, in hexadecimal digits. A name means
// the id that its daemon has now, the latest heard one. It returns an error for
// a name that this daemon never heard, or that may mean several ids. Of a half
// that no id here has, it returns that with zeros for the rest.
func (x *Rights) DaemonID(name string) (ID, error) {
	n := x.node
	var d ID
	if d.UnmarshalText([]byte(name)) == nil {
		return d, nil
	}
	if name == n.cfg.Name {
		return n.self.id(), nil
	}
	var all []ID
	for id, k := range x.known {
		if k.name == name && !n.Dead(id) {
			all = append(all, id)
		}
	}
	if len(all) > 0 {
		return x.current(name, all)
	}
	if d = (ID{}); readHex("id", d[:len(d)/2], []byte(name)) == nil {
		return x.whole(d), nil
	}
	return ID{}, fmt.Errorf("daemon %q is not known here: want the name of one that was heard since this daemon started, or an id", name)
}

// current returns the id that a daemon has now, of all that were heard under
// its name. The name does not mean a former one while the daemon runs.
func (x *Rights) current(name string, all []ID) (ID, error) {
	n := x.node
	slices.SortFunc(all, func(a, b ID) int {
		return cmp.Or(cmp.Compare(x.known[b].at, x.known[a].at), a.Compare(b))
	})
	ago := func(id ID) string {
		return fmt.Sprintf("%v, last heard %v ago", id, (n.at - x.known[id].at).Round(time.Second))
	}
	var former []string
	for _, id := range all[1:] {
		former = append(former, ago(id))
	}
	latest := x.known[all[0]].at
	switch {
	case slices.ContainsFunc(n.peers, func(p *peer) bool { return p.Name == name && p.heardAt < 0 && p.metAt > latest }):
		return ID{}, fmt.Errorf("a daemon %s is live, and %s does not know its id yet: try again, or give the id of a former one: %s",
			name, n.cfg.Name, strings.Join(append([]string{ago(all[0])}, former...), "; "))
	case len(former) > 0 && n.at-latest < n.cfg.RemoveAfter:
		return ID{}, fmt.Errorf("daemon %s was heard in the last %v: stop it first, or give the id of a former one; its current id is %s; formerly %s",
			name, n.cfg.RemoveAfter, ago(all[0]), strings.Join(former, "; "))
	}
	return all[0], nil
}

// whole returns the id that the record or a message names, of its half. Other
// ids, and halves that nothing here names, stay as they are.
func (x *Rights) whole(d ID) ID {
	n := x.node
	if n.record != nil {
		if dead := n.record.DeadID(d); dead != nil {
			return dead.ID
		}
	}
	all := append(slices.Collect(maps.Keys(x.known)), n.self.id())
	all = slices.AppendSeq(all, maps.Keys(n.runs.latest))
	for _, p := range n.peers {
		all = append(all, p.sender.ID)
	}
	if n.record != nil {
		for i := range n.record.Regions {
			all = append(all, n.record.Regions[i].Founders...)
		}
		for i := range n.record.Voters {
			all = append(all, n.record.Voters[i].Daemon)
		}
		for i := range n.record.Dead {
			all = append(all, n.record.Dead[i].ID)
		}
	}
	if i := slices.IndexFunc(all, func(id ID) bool { return id.half() == d }); i >= 0 {
		return all[i]
	}
	return d
}
