package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/georld/rld/limits"
)

// Bounds on the files of limits. They are far above real ones and keep a wrong
// path from filling the memory.
const (
	MaxFiles      = 1_000    // files of a folder
	MaxTotalBytes = 64 << 20 // bytes of all files
	maxVisited    = 20_000   // names looked at in a folder
)

// Names selects the files of a folder that hold limits.
type Names string

// The kinds of names. Names that begin with two dots never count: Kubernetes
// keeps the versions of a ConfigMap under them, and the same files would be
// read twice.
const (
	// NamesYAML is *.yaml and *.yml, without files and folders whose name
	// begins with a dot.
	NamesYAML Names = "yaml"
	// NamesVisible is every file whose name does not begin with a dot
	// (envoyproxy/ratelimit with RUNTIME_IGNOREDOTFILES=true).
	NamesVisible Names = "visible"
	// NamesAll is every file (envoyproxy/ratelimit).
	NamesAll Names = "all"
)

// Files reads the limits at path: the file itself, with any name, or the files
// of a folder and the folders in it, in the order of their names. Symbolic
// links to files are followed inside the folder, those to folders are not, and
// one that leaves the folder is an error: otherwise an author of limits could
// have any other file read. One warning names the files of a
// folder that do not count.
//
// It returns an error if there is nothing to read or if a file cannot be read,
// is no regular file, or exceeds the bounds above. Each file's Name is path, or
// path joined with the file's path in the folder.
func Files(path string, names Names) (files []limits.File, warnings []string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, pathProblem(path, err)
	}
	r := reader{names: names}
	if !info.IsDir() {
		if err := r.read(path); err != nil {
			return nil, nil, err
		}
		return r.files, nil, nil
	}
	if r.root, err = os.OpenRoot(path); err != nil {
		return nil, nil, pathProblem(path, err)
	}
	defer r.root.Close() // opened for reading: an error of closing has no effect
	r.path = path
	if err := r.folder("."); err != nil {
		return nil, nil, err
	}
	warnings = r.warnings()
	if len(r.files) == 0 {
		return nil, warnings, emptyFolder(path, names, r.skipped)
	}
	return r.files, warnings, nil
}

// reader gathers the files of one reading.
type reader struct {
	names   Names
	path    string   // of the folder
	root    *os.Root // nil for a single file
	files   []limits.File
	total   int
	visited int
	skipped []string // files that do not count
	links   []string // links to folders
}

// folder reads the files of a folder, by its path in the root.
func (r *reader) folder(dir string) error {
	entries, err := fs.ReadDir(r.root.FS(), dir)
	if err != nil {
		return fmt.Errorf("read the folder of limits: %s: %w", filepath.Join(r.path, dir), reason(err))
	}
	for _, e := range entries {
		if r.visited++; r.visited > maxVisited {
			return fmt.Errorf("%s: more than %d names below the folder of limits; "+
				"give a folder that holds only limits", filepath.Join(r.path, dir), maxVisited)
		}
		if err := r.entry(filepath.Join(dir, e.Name()), e); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) entry(name string, e fs.DirEntry) error {
	path := filepath.Join(r.path, name)
	name, inRoot := e.Name(), name
	if strings.HasPrefix(name, "..") || r.names != NamesAll && strings.HasPrefix(name, ".") {
		return nil
	}
	if e.IsDir() {
		return r.folder(inRoot)
	}
	if e.Type()&fs.ModeSymlink != 0 {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			r.links = append(r.links, path)
			return nil
		}
	}
	if r.names == NamesYAML && !YAMLName(name) {
		r.skipped = append(r.skipped, path)
		return nil
	}
	return r.read(inRoot)
}

// read adds one file, by its path in the root, or by its path without one.
func (r *reader) read(name string) error {
	path := filepath.Join(r.path, name)
	if len(r.files) == MaxFiles {
		return fmt.Errorf("%s: more than %d files of limits; join some", path, MaxFiles)
	}
	open := os.OpenFile
	if r.root != nil {
		open = r.root.OpenFile
	}
	data, err := readOpened(open, name, path, limits.MaxFileBytes)
	if errors.Is(err, errTooLarge) {
		return fmt.Errorf("%w: split it; with MERGE_DOMAIN_CONFIG=true a domain may be in several files", err)
	}
	if err != nil {
		return err
	}
	if r.total += len(data); r.total > MaxTotalBytes {
		return fmt.Errorf("%s: the files of limits are more than %d MiB together", path, MaxTotalBytes>>20)
	}
	r.files = append(r.files, limits.File{Name: path, Data: data})
	return nil
}

func (r *reader) warnings() []string {
	var out []string
	if len(r.skipped) > 0 {
		out = append(out, fmt.Sprintf("not read as limits, only *.yaml and *.yml are: %s", listNames(r.skipped)))
	}
	if len(r.links) > 0 {
		out = append(out, fmt.Sprintf("links to folders are not followed: %s", listNames(r.links)))
	}
	return out
}

// errLeaves is the error of a link that leaves the folder of limits.
var errLeaves = errors.New("is a link that leaves the folder of limits, and is not read")

// escapes reports whether an error of os.Root is about a path that leaves it.
// Package os has no variable for that error.
func escapes(err error) bool {
	var p *fs.PathError
	return errors.As(err, &p) && p.Err.Error() == "path escapes from parent"
}

// errTooLarge is the error of a file with more bytes than are read.
var errTooLarge = errors.New("read at most")

// readRegular reads a regular file of at most limit bytes. It opens without
// blocking, since opening a pipe waits for its writer.
func readRegular(path string, limit int64) ([]byte, error) {
	return readOpened(os.OpenFile, path, path, limit)
}

// readOpened is readRegular of a file that open opens by its name.
func readOpened(open func(string, int, fs.FileMode) (*os.File, error), name, path string, limit int64) ([]byte, error) {
	f, err := open(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if escapes(err) {
			return nil, fmt.Errorf("%s: %w: put the file itself into the folder, or a relative link to another file of it", path, errLeaves)
		}
		return nil, pathProblem(path, err)
	}
	defer f.Close() // opened for reading: an error of closing has no effect
	info, err := f.Stat()
	if err != nil {
		return nil, pathProblem(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: is a %s, not a regular file", path, kind(info.Mode()))
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, pathProblem(path, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: is larger than the %d bytes that are %w", path, limit, errTooLarge)
	}
	return data, nil
}

// YAMLName reports whether a file of this name or path counts under NamesYAML
// by its extension.
func YAMLName(name string) bool {
	ext := filepath.Ext(name)
	return ext == ".yaml" || ext == ".yml"
}

func emptyFolder(path string, names Names, skipped []string) error {
	switch {
	case len(skipped) > 0:
		return fmt.Errorf("%s: no limits in this folder: of its %d files none ends in .yaml or .yml",
			path, len(skipped))
	case names == NamesYAML:
		return fmt.Errorf("%s: no limits in this folder: put a *.yaml or *.yml file there", path)
	}
	return fmt.Errorf("%s: no limits in this folder: it holds no files", path)
}

func pathProblem(path string, err error) error { return fmt.Errorf("%s: %w", path, reason(err)) }

// reason strips the operation and the path from a file error.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "folder"
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

// listNames joins names for a message: a few, and how many more.
func listNames(names []string) string {
	const most = 5
	names = slices.Sorted(slices.Values(names))
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
