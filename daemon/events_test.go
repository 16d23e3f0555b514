package daemon

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// TestEventsOfOneDaemon: a peer does not make a new line of the log with each
// new incarnation, and another daemon has a line of its own.
func TestEventsOfOneDaemon(t *testing.T) {
	var out lockedBuffer
	l := eventLog{
		log: slog.New(slog.NewTextHandler(&out, nil)), leaving: func() bool { return false },
		name: func(id crdt.Incarnation) string { return id.String() },
	}
	for i := range uint32(100) {
		l.add(0, []gossip.Event{{Kind: gossip.CellForged, Peer: gossip.DaemonIncarnation("eu", "eu-0", i)}})
	}
	l.add(0, []gossip.Event{{Kind: gossip.CellForged, Peer: gossip.DaemonIncarnation("eu", "eu-1", 0)}})
	if n := strings.Count(out.String(), "event=cell_forged"); n != 2 {
		t.Errorf("%d lines for 101 events of two daemons:\n%s", n, out.String())
	}
	if n := l.counted()["cell_forged"]; n != 101 {
		t.Errorf("%d events are counted", n)
	}
}
