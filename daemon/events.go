package daemon

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// eventLog counts the events of replication and logs the important ones. One
// goroutine calls add; any may read the counts.
type eventLog struct {
	log  *slog.Logger
	name func(crdt.Incarnation) string // of a peer
	// leaving reports whether this daemon is leaving the cluster.
	leaving func() bool
	counts  [64]atomic.Uint64          // by kind
	logged  map[eventKey]time.Duration // when
}

// eventKey identifies events that are logged only once in eventQuiet: those of
// one daemon, under any of its incarnations.
type eventKey struct {
	kind   gossip.EventKind
	daemon uint32
}

const (
	// eventQuiet is the least time between two equal lines of the log.
	eventQuiet = 10 * time.Second
	// maxLogged bounds the remembered lines.
	maxLogged = 1_024
)

// eventTexts are the log messages of the logged kinds.
var eventTexts = map[gossip.EventKind]struct {
	level slog.Level
	text  string
}{
	gossip.PeerJoined:       {slog.LevelDebug, "a peer joined"},
	gossip.PeerLeft:         {slog.LevelDebug, "a peer left"},
	gossip.PeerSilent:       {slog.LevelWarn, "a peer is silent: its counts are unknown"},
	gossip.PeerResponding:   {slog.LevelInfo, "a silent peer responds again"},
	gossip.DriftRejected:    {slog.LevelWarn, "a peer's clock is too far ahead and is not followed"},
	gossip.ClockOutlier:     {slog.LevelError, "the clock of this daemon differs from most other clocks: correct it"},
	gossip.ClockAgrees:      {slog.LevelInfo, "the clock of this daemon agrees with the others again"},
	gossip.JumpHeld:         {slog.LevelWarn, "the wall clock jumped ahead and is not followed until others do"},
	gossip.JumpAdopted:      {slog.LevelInfo, "the jump of the wall clock is followed"},
	gossip.CellRefused:      {slog.LevelWarn, "counts of a peer are rejected"},
	gossip.CellForged:       {slog.LevelWarn, "a peer sends counts that it cannot know: they are ignored"},
	gossip.TransferRejected: {slog.LevelWarn, "a peer claims to have transferred more rights than it can hold: they are rejected"},
	gossip.SumExceeded:      {slog.LevelWarn, "other regions claim to have admitted more than all rights: they count what they can hold"},
	gossip.RulesDiverged:    {slog.LevelWarn, "a peer has other rules"},
	gossip.RulesAgree:       {slog.LevelInfo, "a peer has the same rules again"},
	gossip.CountsRestored:   {slog.LevelInfo, "counts were restored from other regions"},
}

// ofShard reports whether a kind concerns the cells of one shard. All shards
// report the other kinds, which concern the daemon.
func ofShard(k gossip.EventKind) bool {
	switch k {
	case gossip.CellRefused, gossip.CellStale, gossip.CellForged, gossip.TransferRejected, gossip.SumExceeded, gossip.RefusalReceived,
		gossip.RuleUnknown, gossip.Resent, gossip.BucketRepaired, gossip.CountsRestored:
		return true
	}
	return false
}

// add counts and logs the events of a shard.
func (l *eventLog) add(shard int, events []gossip.Event) {
	for _, e := range events {
		own := ofShard(e.Kind)
		if !own && shard != 0 || int(e.Kind) >= len(l.counts) {
			continue
		}
		if own {
			l.counts[e.Kind].Add(max(1, e.Amount))
		} else {
			l.counts[e.Kind].Add(1)
		}
		l.write(e)
	}
}

func (l *eventLog) write(e gossip.Event) {
	words, ok := eventTexts[e.Kind]
	if !ok {
		return
	}
	key := eventKey{e.Kind, gossip.DaemonOf(e.Peer)}
	if last, ok := l.logged[key]; ok && e.At-last < eventQuiet {
		return
	}
	if l.logged == nil || len(l.logged) >= maxLogged {
		l.logged = map[eventKey]time.Duration{}
	}
	l.logged[key] = e.At
	if e.Kind == gossip.PeerSilent && l.leaving() {
		return // peers stop sending to a leaving daemon
	}
	attrs := []any{"event", e.Kind.String()}
	if e.Peer != 0 {
		attrs = append(attrs, "peer", l.name(e.Peer))
	}
	if e.Reason != 0 {
		attrs = append(attrs, "reason", e.Reason.String())
	}
	if e.Amount != 0 {
		attrs = append(attrs, "amount", e.Amount)
	}
	l.log.Log(context.Background(), words.level, words.text, attrs...)
}

// counted returns the number of events of each kind, by name.
func (l *eventLog) counted() map[string]uint64 {
	out := make(map[string]uint64)
	for _, k := range gossip.EventKinds() {
		out[k.String()] = l.counts[k].Load()
	}
	return out
}
