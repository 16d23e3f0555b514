package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// generatedSuffix is how the plugins end the names of their files.
const generatedSuffix = ".pb.go"

// compare returns the files below root that differ from want, each with its
// fault. Paths are slash-separated and relative to root.
func compare(root string, want map[string]string) (faults map[string]string, err error) {
	faults = make(map[string]string)
	for name, content := range want {
		have, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			faults[name] = "is missing"
		case err != nil:
			return nil, err
		case string(have) != content:
			faults[name] = "is stale"
		}
	}
	have, err := find(root, generatedSuffix)
	for _, name := range have {
		if _, ok := want[name]; !ok {
			faults[name] = "is generated from no .proto file"
		}
	}
	return faults, err
}

// write brings the files below root that have faults up to date and logs their
// names.
func write(log io.Writer, root string, want, faults map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		path := filepath.Join(root, filepath.FromSlash(name))
		var err error
		if content, ok := want[name]; ok {
			fmt.Fprintln(log, "wrote", name)
			err = os.WriteFile(path, []byte(content), 0o644)
		} else {
			fmt.Fprintln(log, "removed", name)
			err = os.Remove(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
