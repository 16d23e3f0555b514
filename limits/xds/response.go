package xds

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
)

// checkLengths returns an error for a version or a nonce that is too long to
// repeat.
func checkLengths(r *discovery.DiscoveryResponse) error {
	for _, l := range []struct{ field, text string }{{"version_info", r.GetVersionInfo()}, {"nonce", r.GetNonce()}} {
		if len(l.text) > maxVersionBytes {
			return fmt.Errorf("%s of %d bytes: want at most %d", l.field, len(l.text), maxVersionBytes)
		}
	}
	return nil
}

// hashOf returns the hash of the limits and the version of a response.
func hashOf(r *discovery.DiscoveryResponse) (sum [sha256.Size]byte) {
	h := sha256.New()
	put := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b)))) // a hash never fails
		h.Write(b)
	}
	put([]byte(r.GetVersionInfo()))
	put([]byte(r.GetTypeUrl()))
	for _, a := range r.GetResources() {
		put([]byte(a.GetTypeUrl()))
		put(a.GetValue())
	}
	h.Sum(sum[:0])
	return sum
}

// storedKind begins a stored response.
const storedKind = "rld xds 1\n"

// Pack returns a response in the form of a file that Unpack reads.
func Pack(r *discovery.DiscoveryResponse) ([]byte, error) {
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("store the limits of the xDS server: %w", plain(err))
	}
	sum := sha256.Sum256(body)
	return append(append([]byte(storedKind), sum[:]...), body...), nil
}

// Unpack returns the response of a file. The error is that of a file that Pack
// did not return, or of one that was damaged.
func Unpack(data []byte) (*discovery.DiscoveryResponse, error) {
	const head = len(storedKind) + sha256.Size
	if len(data) < head || string(data[:len(storedKind)]) != storedKind {
		return nil, fmt.Errorf("is no file of limits of an xDS server: want one that begins with %q", storedKind)
	}
	body := data[head:]
	if sum := sha256.Sum256(body); string(sum[:]) != string(data[len(storedKind):head]) {
		return nil, fmt.Errorf("is damaged: its checksum is another one; remove it")
	}
	r := &discovery.DiscoveryResponse{}
	if err := proto.Unmarshal(body, r); err != nil {
		return nil, fmt.Errorf("is damaged: %w; remove it", plain(err))
	}
	return r, nil
}
