package callers

import (
	"bytes"
	"log/slog"
	"sync"

	"github.com/georld/rld/config"
	"github.com/georld/rld/server/auth"
)

// tokensFile follows a tokens file. An invalid one is refused whole, and the
// former tokens stay in force.
type tokensFile struct {
	kind       config.TokensOf
	path       string
	log        *slog.Logger
	authorizer *auth.Authorizer

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

func openTokens(kind config.TokensOf, path string, log *slog.Logger) (*tokensFile, error) {
	f := &tokensFile{kind: kind, path: path, log: log}
	r, tokens, err := f.read()
	if err != nil {
		return nil, err
	}
	f.applied, f.before = r, r
	f.authorizer = auth.NewAuthorizer(tokens, log)
	return f, nil
}

// read returns the content and its tokens.
func (f *tokensFile) read() (r reading, tokens auth.Tokens, err error) {
	if r.data, err = f.kind.ReadFile(f.path); err == nil {
		tokens, err = f.kind.Parse(f.path, r.data)
	}
	if err != nil {
		r.err = err.Error()
	}
	return r, tokens, err
}

// look applies a changed file once two readings in a row agree, since a read
// may occur in the middle of a write, or at once.
func (f *tokensFile) look(now bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, tokens, err := f.read()
	settled := r.equal(f.before)
	f.before = r
	if r.equal(f.applied) || !settled && !now {
		return
	}
	f.applied, f.fault = r, err
	if err != nil {
		f.log.Error("the tokens file is invalid: the former tokens stay in force", "event", "auth", "setting", string(f.kind), "error", err)
		return
	}
	f.authorizer.Replace(tokens)
	f.log.Info("tokens changed", "event", "auth", "setting", string(f.kind), "tokens", len(tokens))
}

// stale reports whether the file is invalid.
func (f *tokensFile) stale() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fault != nil
}
