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

// staleFile is a file whose content on disk differs from the generated one.
type staleFile struct {
	path    string // slash-separated, relative to the root
	fault   string // describes the file on disk
	content string // the generated one
	remove  bool   // nothing generates it: it must not be there
}

// compare returns the files below root that differ from want, by path.
func compare(root string, want map[string]string) ([]staleFile, error) {
	var stale []staleFile
	for _, name := range slices.Sorted(maps.Keys(want)) {
		have, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			stale = append(stale, staleFile{path: name, fault: "is missing", content: want[name]})
		case err != nil:
			return nil, err
		case string(have) != want[name]:
			stale = append(stale, staleFile{path: name, fault: "is stale", content: want[name]})
		}
	}
	have, err := find(root, generatedSuffix)
	if err != nil {
		return nil, err
	}
	for _, name := range have {
		if _, ok := want[name]; !ok {
			stale = append(stale, staleFile{path: name, fault: "is generated from no .proto file", remove: true})
		}
	}
	return stale, nil
}

// write brings the stale files below root up to date and logs their names.
func write(log io.Writer, root string, stale []staleFile) error {
	for _, s := range stale {
		path := filepath.Join(root, filepath.FromSlash(s.path))
		if s.remove {
			fmt.Fprintln(log, "removed", s.path)
			if err := os.Remove(path); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintln(log, "wrote", s.path)
		if err := os.WriteFile(path, []byte(s.content), 0o644); err != nil {
			return err
		}
	}
	return nil
}
