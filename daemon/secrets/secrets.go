// Package secrets follows the files of a cluster's secret, which hashes keys
// and lets daemons in: the secret, and the next one that takes its place.
package secrets

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"

	"github.com/georld/rld/config"
)

// NextSuffix is what the file of the next secret has behind the name of that of
// the secret.
const NextSuffix = ".next"

// Secrets are the secret of a cluster and the next one. Next is nil for one
// secret, and both for none.
type Secrets struct{ Current, Next []byte }

// Read reads the file of a secret, and that of the next one if there is one.
func Read(path string) (s Secrets, warnings []string, err error) {
	if s.Current, warnings, err = config.ReadSecret(path); err != nil {
		return Secrets{}, warnings, err
	}
	if _, err := os.Stat(path + NextSuffix); errors.Is(err, fs.ErrNotExist) {
		return s, warnings, nil
	}
	next, more, err := config.ReadSecret(path + NextSuffix)
	if err != nil {
		return Secrets{}, warnings, err
	}
	if !bytes.Equal(next, s.Current) {
		s.Next = next
	}
	return s, append(warnings, more...), nil
}

// All returns those that there are, the current one first.
func (s Secrets) All() [][]byte {
	switch {
	case s.Current == nil:
		return nil
	case s.Next == nil:
		return [][]byte{s.Current}
	}
	return [][]byte{s.Current, s.Next}
}

// Derive returns the values for one purpose: of the current secret, or of an
// empty one if there is none, and of the next one. They reveal nothing about
// those for another purpose.
func (s Secrets) Derive(purpose string) [][sha256.Size]byte {
	all := [][sha256.Size]byte{derive(s.Current, purpose)}
	if s.Next != nil {
		all = append(all, derive(s.Next, purpose))
	}
	return all
}

func derive(secret []byte, purpose string) [sha256.Size]byte {
	return sha256.Sum256(append([]byte("rld "+purpose+"\x00"), secret...))
}

func (s Secrets) equal(o Secrets) bool {
	return bytes.Equal(s.Current, o.Current) && bytes.Equal(s.Next, o.Next)
}
