package telemetry

import (
	"github.com/georld/rld/internal/connlimit"
)

// newConnectionCollector returns the collector of connectionFamilies.
func newConnectionCollector(read func() []connlimit.Stats) *collector {
	return newCollector(connectionFamilies, func(w *writer) {
		for _, s := range read() {
			put(w, "connections", s.Established, s.Name, "established")
			put(w, "connections", s.Unfinished, s.Name, "unfinished")
			put(w, "max_connections", s.Bounds.Established, s.Name, "established")
			put(w, "max_connections", s.Bounds.Unfinished, s.Name, "unfinished")
			for _, r := range connlimit.Reasons() {
				put(w, "closed_connections_total", s.Closed[r], s.Name, string(r))
			}
		}
	})
}
