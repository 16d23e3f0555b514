package daemon

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/internal/loglimit"
)

// controlEvents counts and logs the events of the control log. One goroutine
// calls add; any may read.
type controlEvents struct {
	log    *slog.Logger
	logged loglimit.Limiter
	counts [64]atomic.Uint64 // by kind
	// differs describes a founder with other founders in its settings, nil for
	// none.
	differs atomic.Pointer[string]
}

// controlTexts are the log messages of the kinds.
var controlTexts = map[control.EventKind]struct {
	level slog.Level
	text  string
}{
	control.Begun:           {slog.LevelInfo, "the cluster has begun"},
	control.Applied:         {slog.LevelInfo, "a command changed the cluster"},
	control.CommandRefused:  {slog.LevelWarn, "a command was refused"},
	control.LeaderChanged:   {slog.LevelInfo, "the leader of the control log changed"},
	control.VoterAdded:      {slog.LevelInfo, "a voter was added to the control log"},
	control.VoterRemoved:    {slog.LevelInfo, "a voter was removed from the control log"},
	control.Diverged:        {slog.LevelError, "the record here differs from that of the leader, which replaces it: this is a defect of rld"},
	control.Recovered:       {slog.LevelWarn, "the control log was recovered here"},
	control.TailDropped:     {slog.LevelError, "a recovery dropped commands: rld cluster history --dropped lists them"},
	control.Split:           {slog.LevelError, "a peer follows another recovery: on the side to give up, run rld cluster recover --yield"},
	control.ForeignCluster:  {slog.LevelError, "a peer belongs to another cluster: correct its addresses, or give it a new state.dir"},
	control.FoundersDiffer:  {slog.LevelError, "cluster.founders or the regions differ: give all daemons the same"},
	control.OldDisk:         {slog.LevelError, "the control log on disk is older than it was, or has a copy elsewhere: this daemon goes on under a new id"},
	control.IDEnded:         {slog.LevelError, "an id of a daemon does not count any more"},
	control.Rejected:        {slog.LevelWarn, "content of the control log is rejected"},
	control.Abstains:        {slog.LevelError, "the voter of this daemon stopped until the next start: report it, and restart the daemon"},
	control.StoreFailed:     {slog.LevelError, "the control log cannot be stored: check the disk of state.dir"},
	control.StoreMended:     {slog.LevelInfo, "the control log can be stored again"},
	control.LimitsInForce:   {slog.LevelInfo, "limits of the control log come into force"},
	control.EmergencyTaken:  {slog.LevelWarn, "an emergency override counts"},
	control.QuorumLost:      {slog.LevelError, "the control log has no majority: start its voters, or if they are lost for good run rld cluster recover"},
	control.QuorumRegained:  {slog.LevelInfo, "the control log has a majority again"},
	control.GenerationBegun: {slog.LevelInfo, "a region was added"},
	control.GenerationEnded: {slog.LevelWarn, "a region was removed: none of its rights count any more"},
	control.OverrideExpired: {slog.LevelInfo, "an override ended"},
	control.FormatRaised:    {slog.LevelWarn, "the record of the cluster has a later format: older versions of rld cannot read it"},
	control.Resumed:         {slog.LevelWarn, "an operator states that this region was not removed: it goes on without the control log"},
}

// controlQuiet is the least time between two equal lines of the log.
const controlQuiet = 10 * time.Second

func (l *controlEvents) add(events []control.Event) {
	for i := range events {
		e := &events[i]
		if int(e.Kind) < len(l.counts) {
			l.counts[e.Kind].Add(1)
		}
		switch e.Kind {
		case control.FoundersDiffer:
			l.differs.Store(&e.Text)
		case control.Begun, control.Applied:
			l.differs.Store(nil)
		}
		words := controlTexts[e.Kind]
		if !l.logged.Due(e.Kind.String()+"\x00"+e.Peer+"\x00"+e.Text, time.Now(), controlQuiet) {
			continue
		}
		attrs := []any{"event", "control", "kind", eventName(e.Kind)}
		if e.Peer != "" {
			attrs = append(attrs, "peer", e.Peer)
		}
		l.log.Log(context.Background(), words.level, words.text, append(attrs, "detail", e.Text)...)
	}
}

// eventName returns the name of a kind for logs and metrics.
func eventName(k control.EventKind) string { return strings.ReplaceAll(k.String(), " ", "_") }

// counted returns the number of events of each kind, by name.
func (l *controlEvents) counted() map[string]uint64 {
	out := make(map[string]uint64)
	for _, k := range control.EventKinds() {
		out[eventName(k)] = l.counts[k].Load()
	}
	return out
}

// founders describes a difference in cluster.founders that a founding met, ""
// for none.
func (l *controlEvents) founders() string {
	if text := l.differs.Load(); text != nil {
		return *text
	}
	return ""
}
