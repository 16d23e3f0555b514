// Package follow puts changed files of a daemon in force without a restart. An
// invalid file is refused whole, and its former content stays in force.
package follow

import (
	"bytes"
	"context"
	"sync"
	"time"
)

// Source is a file with a value, such as tokens.
type Source[T any] struct {
	// Read returns the content of the file and its value.
	Read func() (data []byte, value T, err error)
	// Apply puts a value in force, and Refused reports a fault. Each is called
	// once for a change, one call at a time.
	Apply   func(T)
	Refused func(error)
}

// File follows one file. It is safe for concurrent use.
type File[T any] struct {
	source Source[T]

	mu      sync.Mutex
	applied reading // the last one that was applied or refused
	before  reading // the last one
	fault   error   // of applied
}

// reading is the content of a file, or the text of the error.
type reading struct {
	data []byte
	err  string
}

func (r reading) equal(o reading) bool { return r.err == o.err && bytes.Equal(r.data, o.data) }

// Open reads a file for the first time and returns its value, which the caller
// puts in force.
func Open[T any](s Source[T]) (*File[T], T, error) {
	f := &File[T]{source: s}
	r, value, err := f.read()
	f.applied, f.before = r, r
	return f, value, err
}

func (f *File[T]) read() (reading, T, error) {
	data, value, err := f.source.Read()
	if err != nil {
		return reading{err: err.Error()}, value, err
	}
	return reading{data: data}, value, nil
}

// Look reads the file. A change counts once two readings in a row agree, since
// a read may occur in the middle of a write, or at once if now is true.
func (f *File[T]) Look(now bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, value, err := f.read()
	settled := r.equal(f.before)
	f.before = r
	if r.equal(f.applied) || !settled && !now {
		return
	}
	f.applied, f.fault = r, err
	if err != nil {
		f.source.Refused(err)
		return
	}
	f.source.Apply(value)
}

// Fault returns why the file is invalid, nil if it is valid.
func (f *File[T]) Fault() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fault
}

// Every calls do once every poll until ctx ends.
func Every(ctx context.Context, poll time.Duration, do func()) {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do()
		}
	}
}
