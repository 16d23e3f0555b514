package certs

import (
	"bytes"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Store follows the files of a Set. While changed files are invalid, the former
// ones stay in force. It is safe for concurrent use.
type Store struct {
	files Files
	log   *slog.Logger

	mu    sync.Mutex
	tried content // the last content, valid or not
	good  *Set
	err   error // the fault of the last content
}

// Load reads the files. The error names the invalid file. The logger receives
// later faults and changes, each once.
func Load(f Files, log *slog.Logger) (*Store, error) {
	s := &Store{files: f, log: log}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reloadLocked()
	if s.err != nil {
		return nil, s.err
	}
	return s, nil
}

// Read returns the set of the files, without following them.
func Read(f Files) (*Set, error) {
	read, err := f.read()
	if err != nil {
		return nil, err
	}
	return f.parse(read, time.Now())
}

// Current returns the set in force without reading the files.
func (s *Store) Current() *Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.good
}

// Fault returns the fault of the files as they were last read, nil for none.
func (s *Store) Fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Reload reads the files, which are small, and returns the set in force.
func (s *Store) Reload() *Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.err
	if !s.reloadLocked() {
		return s.good
	}
	switch {
	case s.err == nil:
		s.log.Info(s.files.What+" changed", "cert", s.files.Cert, "names", List(s.good.Names), "expires", s.good.NotAfter)
	case before == nil || before.Error() != s.err.Error():
		s.log.Error(s.files.What+" changed and are broken: the former ones stay in force", "error", s.err)
	}
	return s.good
}

// reloadLocked reads the files and reports whether anything changed.
func (s *Store) reloadLocked() bool {
	read, err := s.files.read()
	if err != nil {
		changed := s.err == nil || s.err.Error() != err.Error()
		s.err, s.tried = err, content{}
		return changed
	}
	if slices.EqualFunc(read[:], s.tried[:], func(a, b []byte) bool { return b != nil && bytes.Equal(a, b) }) {
		return false
	}
	s.tried = read
	set, err := s.files.parse(read, time.Now())
	s.err = err
	if err == nil {
		s.good = set
	}
	return true
}
