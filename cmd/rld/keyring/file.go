package keyring

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/georld/rld/config"
	"github.com/georld/rld/gossip/swim"
)

// keyBytes is the length of a new key: AES-256.
const keyBytes = 32

// ring is a file of keys. Its comments stay where they are, and those behind a
// key move with it.
type ring struct {
	config.Keyring
	path string
	info os.FileInfo // of a file that open has read
}

// open reads a file to change it. A symbolic link is refused: replacing it
// would leave its target as it is.
func open(warn io.Writer, path string) (*ring, error) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		target, _ := filepath.EvalSymlinks(path) // "" is no worse
		return nil, fmt.Errorf("%s is a symbolic link, and nothing was written: name the file itself, %s", path, target)
	}
	r, err := read(warn, path)
	if err != nil {
		return nil, err
	}
	r.info = info
	return r, nil
}

// name returns the fingerprint of a key, and at its place in the file.
func (r *ring) name(i int) string { return swim.Fingerprint(r.Keys[i]) }
func (r *ring) at(i int) string   { return fmt.Sprintf("%s:%d", r.path, r.Lines[i]) }

// find returns the key with a fingerprint, -1 for none.
func (r *ring) find(fingerprint string) int {
	return slices.IndexFunc(r.Keys, func(k []byte) bool { return swim.Fingerprint(k) == fingerprint })
}

// lines returns the lines of the file. The last one ends with a newline, too.
func (r *ring) lines() []string {
	return slices.Collect(strings.Lines(strings.TrimSuffix(string(r.Data), "\n") + "\n"))
}

// with returns the lines with a key at the end.
func (r *ring) with(key string) []string { return append(r.lines(), key+"\n") }

// without returns the lines without a key.
func (r *ring) without(i int) []string { return slices.Delete(r.lines(), r.Lines[i]-1, r.Lines[i]) }

// first returns the lines with a key before all others.
func (r *ring) first(i int) []string {
	return slices.Insert(r.without(i), r.Lines[0]-1, r.lines()[r.Lines[i]-1])
}

// write replaces the file at once, so that no reader finds half of it. Mode and
// owner stay. It refuses what a daemon would not take.
func (r *ring) write(lines []string) error {
	data := []byte(strings.Join(lines, ""))
	if _, err := config.ParseKeys(r.path, data); err != nil {
		return fmt.Errorf("%w; nothing was written", err)
	}
	f, err := os.CreateTemp(filepath.Dir(r.path), ".new-*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if s, ok := r.info.Sys().(*syscall.Stat_t); ok && err == nil {
		err = f.Chown(int(s.Uid), int(s.Gid)) // before Chmod, which may let the group read
	}
	if err == nil {
		err = f.Chmod(r.info.Mode().Perm())
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), r.path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("%s was not changed: %w", r.path, err)
	}
	return nil
}

// create writes a file that is not there yet, for its owner alone.
func create(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already, and nothing was written: name another file, or add a key with rld keyring add %s", path, path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(path)
	}
	return err
}

// fresh returns a new key as text, and its fingerprint.
func fresh() (text, fingerprint string) {
	key := make([]byte, keyBytes)
	rand.Read(key) // never fails
	return encode(key), swim.Fingerprint(key)
}

func encode(key []byte) string { return base64.StdEncoding.EncodeToString(key) }
