package secrets

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/georld/rld/disk"
	"github.com/georld/rld/journal"
	"github.com/georld/rld/replica"
)

// maxFile bounds the file, in bytes.
const maxFile = 64 << 10

// stored is the content of replica.SecretFile.
type stored struct {
	// Names are those that the files of the folder have for the cluster, by
	// purpose. They stay as they were under its first secret.
	Names map[string]uint64 `json:"names"`
	// Secrets are hashes of the secrets that were in force last.
	Secrets []string `json:"secrets"`
}

// prints returns hashes of the secrets that are in force.
func (s Secrets) prints() (all []string) {
	for _, sum := range s.Derive("state of a cluster") {
		all = append(all, hex.EncodeToString(sum[:16]))
	}
	return all
}

// OpenNames returns the names that the files of a folder have for the cluster,
// for each purpose. The error is a *journal.ForeignError if the cluster had
// other secrets when the folder was used last. The folder is nil for a daemon
// without one.
func OpenNames(folder disk.Folder, s Secrets, purposes ...string) (map[string]uint64, error) {
	names := make(map[string]uint64)
	for _, purpose := range purposes {
		sum := derive(s.Current, purpose)
		for _, b := range sum[:8] {
			names[purpose] = names[purpose]<<8 | uint64(b)
		}
	}
	if folder == nil {
		return names, nil
	}
	file := folder.Path(replica.SecretFile)
	size, err := folder.Size(replica.SecretFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return names, nil
	case err == nil && size > maxFile:
		err = fmt.Errorf("it has %d bytes, want at most %d", size, maxFile)
	}
	var data []byte
	var found stored
	if err == nil {
		data, err = folder.ReadFile(replica.SecretFile)
	}
	if err == nil {
		err = json.Unmarshal(data, &found)
	}
	for _, purpose := range purposes {
		if _, ok := found.Names[purpose]; err == nil && !ok {
			err = fmt.Errorf("it has no name for the %s", purpose)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("state.dir: %s: %w: restore the file, or start this daemon without its state", file, err)
	}
	if !slices.ContainsFunc(s.prints(), func(p string) bool { return slices.Contains(found.Secrets, p) }) {
		return nil, fmt.Errorf("state.dir: %w", &journal.ForeignError{
			File: file, What: "the cluster had another secret when this folder was used last: give cluster.secret_file that secret, " +
				"or start this daemon without its state",
		})
	}
	return found.Names, nil
}

// StoreNames keeps the names for a daemon that starts with any of the secrets.
func StoreNames(folder disk.Folder, s Secrets, names map[string]uint64) error {
	if folder == nil {
		return nil
	}
	data, err := json.Marshal(stored{Names: names, Secrets: s.prints()})
	if err != nil {
		return err
	}
	return disk.ReplaceFile(folder, replica.SecretFile, append(data, '\n'))
}
