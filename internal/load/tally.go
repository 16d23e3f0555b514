package load

import (
	"sync"
	"time"

	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// Tally counts the answers of one window.
type Tally struct {
	Allowed, Refused int64
}

// tallies are those of all pipelines, by window of the wall clock. It is safe
// for concurrent use.
type tallies struct {
	window time.Duration
	mu     sync.Mutex
	all    map[int64]Tally // by number of the window
}

func newTallies(window time.Duration) *tallies {
	return &tallies{window: window, all: make(map[int64]Tally)}
}

// add counts the answers of a frame. A decision just before the end of a window
// counts in the next one, so limits must be used up before a window ends.
func (t *tallies) add(at time.Time, answers []*rldv1.CheckResponse) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n := at.UnixNano() / int64(t.window)
	w := t.all[n]
	for _, a := range answers {
		if a.Code == rldv1.Code_ALLOWED {
			w.Allowed++
		} else {
			w.Refused++
		}
	}
	t.all[n] = w
}

// whole returns the windows that lie between two instants, empty ones too.
func (t *tallies) whole(from, to time.Time) []Tally {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Tally
	size := int64(t.window)
	for n := (from.UnixNano() + size - 1) / size; (n+1)*size <= to.UnixNano(); n++ {
		out = append(out, t.all[n])
	}
	return out
}
