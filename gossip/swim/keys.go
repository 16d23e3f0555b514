package swim

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/memberlist"
)

// maxKeys bounds the keyring, since each packet of an unknown sender is tried
// with all keys.
const maxKeys = 8

// Fingerprint returns eight digits that name a key and do not reveal a random
// one. From that of a key which is easy to guess it can be guessed.
func Fingerprint(key []byte) string {
	sum := sha256.Sum256(append([]byte("rld fingerprint of a membership key\x00"), key...))
	return hex.EncodeToString(sum[:4])
}

// Keys returns the fingerprints of the keys in force: the first one encrypts,
// all of them decrypt. It returns nil without encryption.
func (s *Swim) Keys() []string {
	if s.ring == nil {
		return nil
	}
	var out []string
	for _, k := range s.ring.GetKeys() {
		out = append(out, Fingerprint(k))
	}
	return out
}

// newKeyring returns the ring of the keys, nil for no keys.
func newKeyring(keys [][]byte) (*memberlist.Keyring, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	if err := checkKeys(keys); err != nil {
		return nil, err
	}
	keys = cloneKeys(keys)
	return memberlist.NewKeyring(keys, keys[0])
}

func checkKeys(keys [][]byte) error {
	if len(keys) == 0 {
		return errors.New("no key is left; list at least one")
	}
	if len(keys) > maxKeys {
		return fmt.Errorf("%d keys, at most %d are kept", len(keys), maxKeys)
	}
	for i, k := range keys {
		if n := len(k); n != 16 && n != 24 && n != 32 {
			return fmt.Errorf("key %d of %d: %d bytes, must be 16, 24 or 32", i+1, len(keys), n)
		}
	}
	return nil
}

func cloneKeys(keys [][]byte) [][]byte {
	out := make([][]byte, len(keys))
	for i, k := range keys {
		out[i] = bytes.Clone(k)
	}
	return out
}

// replaceKeys replaces the keys of ring, in this order. The caller keeps
// ownership of keys.
//
// RemoveKey moves the keys behind the removed one in the slice that GetKeys has
// returned, while a packet may be being tried with it. So the keys to remove
// are first moved to the end, where no key is behind them.
func replaceKeys(ring *memberlist.Keyring, keys [][]byte) error {
	if err := checkKeys(keys); err != nil {
		return err
	}
	keys = cloneKeys(keys)
	for _, k := range keys {
		if err := ring.AddKey(k); err != nil {
			return err
		}
	}
	for _, k := range slices.Backward(keys) { // the key that is used last is the first one
		if err := ring.UseKey(k); err != nil {
			return err
		}
	}
	for {
		have := ring.GetKeys()
		last := have[len(have)-1]
		if slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, last) }) {
			return nil
		}
		if err := ring.RemoveKey(last); err != nil {
			return err
		}
	}
}
