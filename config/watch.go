package config

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/limits"
)

const (
	// settleTime is how long changed files must be unchanged before they count:
	// a read may occur in the middle of a write or of an update of a ConfigMap.
	settleTime  = 100 * time.Millisecond
	settleTries = 10
)

// Reading is the content of the files of limits at one time: the files with
// warnings, or the error of reading them.
type Reading struct {
	Files    []limits.File
	Warnings []string
	Err      error
	// Explain adds to diagnostics about the files where they come from, nil
	// where their position is enough.
	Explain func(yamlpos.Diagnostics)
}

// Watcher detects changes of the files of limits. It compares contents and not
// times, so that it detects files that are replaced behind a symbolic link (as
// Kubernetes does with a ConfigMap) and ignores a mere touch.
type Watcher struct {
	path     string
	names    Names
	onChange func(Reading)

	mu   sync.Mutex  // held during onChange
	last fingerprint // of the last Reading passed to onChange
}

// NewWatcher returns a watcher of Files(path, names) whose caller already has
// some files. It calls onChange, one call at a time, with each Reading that
// differs from the last one, valid or not, and with each error once.
func NewWatcher(path string, names Names, have []limits.File, onChange func(Reading)) *Watcher {
	return &Watcher{path: path, names: names, onChange: onChange, last: Reading{Files: have}.fingerprint()}
}

// Reload reads the files now and calls onChange even if nothing changed. It
// returns after onChange. Any goroutine may call it.
func (w *Watcher) Reload() { w.look(context.Background(), settleTime, true) }

// Run reads the files once every poll until ctx ends.
func (w *Watcher) Run(ctx context.Context, poll time.Duration) {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.look(ctx, min(poll, settleTime), false)
		}
	}
}

// look reads the files and calls onChange if they changed, or always.
func (w *Watcher) look(ctx context.Context, wait time.Duration, always bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, f := w.read()
	if f != w.last {
		r, f = w.settle(ctx, wait, r, f)
	}
	if ctx.Err() == nil && (f != w.last || always) {
		w.last = f
		w.onChange(r)
	}
}

func (w *Watcher) read() (Reading, fingerprint) {
	var r Reading
	r.Files, r.Warnings, r.Err = Files(w.path, w.names)
	return r, r.fingerprint()
}

// settle reads until two readings in a row agree.
func (w *Watcher) settle(
	ctx context.Context, wait time.Duration, r Reading, f fingerprint,
) (Reading, fingerprint) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for range settleTries {
		select {
		case <-ctx.Done():
			return r, f
		case <-timer.C:
		}
		again, g := w.read()
		if g == f {
			return again, g
		}
		r, f = again, g
		timer.Reset(wait)
	}
	r = Reading{Err: fmt.Errorf("%s: the files keep changing while they are read", w.path)}
	return r, r.fingerprint()
}

// fingerprint identifies the content of a Reading.
type fingerprint [sha256.Size]byte

// fingerprint covers names and contents, or the error. Lengths precede them, so
// that no two readings are equal by concatenation.
func (r Reading) fingerprint() fingerprint {
	h := sha256.New()
	put := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b)))) // a hash never fails
		h.Write(b)
	}
	if r.Err != nil {
		put([]byte(r.Err.Error()))
		return fingerprint(h.Sum(nil))
	}
	for _, f := range r.Files {
		put([]byte(f.Name))
		put(f.Data)
	}
	return fingerprint(h.Sum(nil))
}
