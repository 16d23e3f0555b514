package swim

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/valid"
)

// Bounds of a daemon's metadata, in bytes. Together they stay below the 512
// that memberlist allows.
const (
	maxName   = 128 // travels beside the metadata
	maxRegion = 64
	maxAddr   = 255
	maxBuild  = 64
)

// metaVersion is the first byte of the metadata. A later release may append
// fields, which this one ignores. A release that changes the meaning of present
// fields needs another version, and daemons of both versions refuse each other.
const metaVersion = 1

// The flags of the metadata, the second byte. Unknown ones are ignored.
const (
	flagReady  = 1 << iota // accepts its share of work
	flagAsking             // asks for the holder of its name, and is no member yet
)

// metaFixed is the length of version, flags and incarnation.
const metaFixed = 2 + 8

// meta describes a daemon beside its name and its membership address.
type meta struct {
	gossip.Member // without the name
	asking        bool
}

// append appends the encoding of m to b: version, flags, incarnation (big
// endian), and region, addr and build with a length byte each. m must be valid.
func (m meta) append(b []byte) []byte {
	var flags byte
	if m.Ready {
		flags |= flagReady
	}
	if m.asking {
		flags |= flagAsking
	}
	b = append(b, metaVersion, flags)
	b = binary.BigEndian.AppendUint64(b, uint64(m.ID))
	for _, s := range []string{m.Region, m.Addr, m.Build} {
		b = append(b, byte(len(s)))
		b = append(b, s...)
	}
	return b
}

// decodeMeta decodes the output of append. It accepts any input, and a result
// without an error is valid.
func decodeMeta(b []byte) (meta, error) {
	if len(b) == 0 {
		return meta{}, errors.New("no metadata; is it a daemon of rld?")
	}
	if b[0] != metaVersion {
		return meta{}, fmt.Errorf("metadata of version %d, this daemon reads version %d", b[0], metaVersion)
	}
	if len(b) < metaFixed {
		return meta{}, fmt.Errorf("metadata of %d bytes, at least %d are needed", len(b), metaFixed)
	}
	m := meta{asking: b[1]&flagAsking != 0}
	m.ID, m.Ready = crdt.Incarnation(binary.BigEndian.Uint64(b[2:])), b[1]&flagReady != 0
	b = b[metaFixed:]
	for _, s := range []*string{&m.Region, &m.Addr, &m.Build} {
		if len(b) == 0 || len(b)-1 < int(b[0]) {
			return meta{}, errors.New("metadata cut short")
		}
		n := 1 + int(b[0])
		*s = string(b[1:n])
		b = b[n:]
	}
	if err := m.check(); err != nil {
		return meta{}, err
	}
	return m, nil
}

// check returns an error that names the first field out of bounds.
func (m meta) check() error {
	if m.ID == 0 {
		return errors.New("incarnation 0 is none")
	}
	if err := valid.Texts(
		valid.Text{Name: "region", Value: m.Region, Least: 1, Most: maxRegion},
		valid.Text{Name: "build", Value: m.Build, Most: maxBuild},
		valid.Text{Name: "stream address", Value: m.Addr, Least: 1, Most: maxAddr},
	); err != nil {
		return err
	}
	return valid.Address("stream address", m.Addr)
}

// checkName returns an error unless a daemon may have the name.
func checkName(name string) error {
	return valid.Texts(valid.Text{Name: "name", Value: name, Least: 1, Most: maxName})
}
