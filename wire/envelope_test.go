package wire

import (
	"errors"
	"testing"

	"github.com/georld/rld/gossip"
)

// A frame whose version was changed to that of another kind is refused: the
// checksum covers the version. One bit lies between some of them.
func TestChecksumCoversVersion(t *testing.T) {
	strict, err := EncodeStrict(nil, exampleRequest())
	if err != nil {
		t.Fatal(err)
	}
	rights := sealedRights(strict[sealSize:])
	control := sealedControl(strict[sealSize:])
	counts, err := Encode(nil, []gossip.Message{example()})
	if err != nil {
		t.Fatal(err)
	}
	decoders := map[byte]func([]byte) error{
		Version:        func(b []byte) error { _, err := new(Decoder).Decode(example().From, example().To, b); return err },
		RightsVersion:  func(b []byte) error { _, err := DecodeRights(b); return err },
		StrictVersion:  func(b []byte) error { _, err := DecodeStrict(b); return err },
		ControlVersion: func(b []byte) error { _, err := decodeExample(b); return err },
	}
	for _, frame := range [][]byte{counts, rights, strict, control} {
		was := frame[0]
		for version, decode := range decoders {
			frame[0] = version
			var sum *ChecksumError
			if err := decode(frame); errors.As(err, &sum) == (version == was) {
				t.Errorf("a frame of version %#x taken for %#x: %v", was, version, err)
			}
		}
	}
}
