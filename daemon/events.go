package daemon

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// eventLog counts what happens to the shards of a replica, and logs what
// people should know of it. take belongs to one goroutine; the counts may be
// read by any.
type eventLog struct {
	log  *slog.Logger
	name func(crdt.Incarnation) string // of an incarnation, for people
	// leaving reports whether this daemon is about to go.
	leaving func() bool
	counts  [64]atomic.Uint64 // by kind
	said    map[eventKey]time.Duration
}

// eventKey identifies events of which one line is logged in a while.
type eventKey struct {
	kind gossip.EventKind
	peer crdt.Incarnation
}

const (
	// eventQuiet is the least time between two lines of one eventKey.
	eventQuiet = 10 * time.Second
	// maxSaid bounds the keys that are remembered for that.
	maxSaid = 1_024
)

// eventWords are the lines of the kinds that are logged.
var eventWords = map[gossip.EventKind]struct {
	level slog.Level
	text  string
}{
	gossip.PeerJoined:     {slog.LevelDebug, "a peer is there"},
	gossip.PeerLeft:       {slog.LevelDebug, "a peer is gone"},
	gossip.PeerSilent:     {slog.LevelWarn, "a peer is silent: what it admits is not seen"},
	gossip.PeerResponding: {slog.LevelInfo, "a silent peer is heard again"},
	gossip.DriftRejected:  {slog.LevelWarn, "a peer's clock is too far ahead and is not followed"},
	gossip.ClockOutlier:   {slog.LevelError, "this daemon's clock is off by most others': correct it"},
	gossip.ClockAgrees:    {slog.LevelInfo, "this daemon's clock agrees with the others again"},
	gossip.JumpHeld:       {slog.LevelWarn, "the wall clock jumped ahead and is not followed until others do"},
	gossip.JumpAdopted:    {slog.LevelInfo, "the jump of the wall clock is followed"},
	gossip.CellRefused:    {slog.LevelWarn, "counts of a peer are refused"},
	gossip.CellForged:     {slog.LevelWarn, "a peer tells counts that it cannot know: ignored"},
	gossip.RulesDiverged:  {slog.LevelWarn, "a peer has other rules"},
	gossip.RulesAgree:     {slog.LevelInfo, "a peer has the same rules again"},
	gossip.CountsRestored: {slog.LevelInfo,
		"other regions remembered counts that no daemon of this region knew"},
}

// ofShard reports whether a kind is of each shard's own cells; all others are
// of the daemon, and every shard has them.
func ofShard(k gossip.EventKind) bool {
	switch k {
	case gossip.CellRefused, gossip.CellStale, gossip.CellForged, gossip.RefusalReceived,
		gossip.RuleUnknown, gossip.Resent, gossip.BucketRepaired, gossip.CountsRestored:
		return true
	}
	return false
}

// take counts and logs the events of a shard.
func (l *eventLog) take(shard int, events []gossip.Event) {
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
		l.say(e)
	}
}

func (l *eventLog) say(e gossip.Event) {
	words, ok := eventWords[e.Kind]
	if !ok {
		return
	}
	key := eventKey{e.Kind, e.Peer}
	if last, ok := l.said[key]; ok && e.At-last < eventQuiet {
		return
	}
	if l.said == nil || len(l.said) >= maxSaid {
		l.said = map[eventKey]time.Duration{}
	}
	l.said[key] = e.At
	if e.Kind == gossip.PeerSilent && l.leaving() {
		return // they know that this daemon leaves
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

// counted returns how often each kind happened, by name.
func (l *eventLog) counted() map[string]uint64 {
	out := make(map[string]uint64)
	for _, k := range gossip.EventKinds() {
		out[k.String()] = l.counts[k].Load()
	}
	return out
}
