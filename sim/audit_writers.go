package sim

import (
	"time"

	"github.com/georld/rld/crdt"
)

// writer is one incarnation of a daemon: who counts under a slot. A daemon
// that counts on under the slot of the process before is the same writer.
type writer struct {
	index       int
	incarnation crdt.Incarnation
	daemon      *Daemon
	region      int
	born        time.Duration // where its monotonic clock was 0
	up          bool
}

// writers lists the incarnations of a run, in the order in which they came.
type writers struct {
	all           []*writer
	byIncarnation map[crdt.Incarnation]*writer
	now           []*writer // by Daemon.Index, nil when down
}

func newWriters(cfg *Config) writers {
	return writers{byIncarnation: make(map[crdt.Incarnation]*writer), now: make([]*writer, cfg.Daemons())}
}

// start notes a daemon's new process.
func (s *writers) start(w *World, d *Daemon) {
	born := w.Now() - d.Instant(w.Now()).Mono
	var is *writer
	for _, incarnation := range d.Incarnations() {
		if is == nil {
			is = s.byIncarnation[incarnation]
		}
		if is == nil {
			is = &writer{index: len(s.all), incarnation: incarnation, daemon: d, region: d.RegionIndex}
			s.all = append(s.all, is)
		}
		s.byIncarnation[incarnation] = is
	}
	if is != nil {
		is.born, is.up = born, true
	}
	s.now[d.Index] = is
}

func (s *writers) stop(d *Daemon) {
	if is := s.now[d.Index]; is != nil {
		is.up = false
	}
	s.now[d.Index] = nil
}

// of returns the incarnation a daemon runs, nil when it is down.
func (s *writers) of(d *Daemon) *writer { return s.now[d.Index] }

// sentAt is the virtual time of a monotonic reading, in microseconds.
func (s *writer) sentAt(nonce uint64) time.Duration {
	return s.born + time.Duration(nonce)*time.Microsecond
}
