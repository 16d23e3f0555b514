package control

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"strconv"
)

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
func (n Number) String() string { return fmt.Sprintf("%016x", uint64(n)) }

// MarshalText implements encoding.TextMarshaler.
func (n Number) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

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
