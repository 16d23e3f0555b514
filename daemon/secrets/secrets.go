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
// It reads that first: it may take the place of the other one meanwhile.
func Read(path string) (s Secrets, warnings []string, err error) {
	var next []byte
	if _, err := os.Stat(path + NextSuffix); !errors.Is(err, fs.ErrNotExist) {
		next, warnings, err = config.ReadSecret(path + NextSuffix)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Secrets{}, warnings, err
		}
	}
	current, more, err := config.ReadSecret(path)
	if warnings = append(warnings, more...); err != nil {
		return Secrets{}, warnings, err
	}
	if s.Current = current; !bytes.Equal(next, current) {
		s.Next = next
	}
	return s, warnings, nil
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
