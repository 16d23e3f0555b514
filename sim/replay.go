package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// ReplayOptions says what cluster recorded traffic is played to.
type ReplayOptions struct {
	// Regions are the regions of the trace to run, each with Daemons daemons;
	// what it names beyond them is spread over them. None is one region of
	// one daemon that gets everything.
	Regions []string
	Daemons int
	Options
}

// Replay plays recorded traffic against limits: what would they have admitted
// and denied, and how far over would they have gone.
func Replay(t *Trace, set *rules.Set, o ReplayOptions) (*Result, error) {
	cfg, err := ReplayConfig(t, set, o)
	if err != nil {
		return nil, err
	}
	return Run(cfg, o.Options)
}

// ReplayConfig is the run that Replay makes.
func ReplayConfig(t *Trace, set *rules.Set, o ReplayOptions) (*Config, error) {
	cfg := Default()
	cfg.Name, cfg.Settle = "replay", 0
	cfg.Node.MaxKeys = node.Default().MaxKeys
	cfg.Trace, cfg.Rules = t, set
	cfg.Regions = []Region{{"all", max(1, o.Daemons)}}
	if len(o.Regions) > 0 {
		cfg.Regions = nil
		for _, name := range o.Regions {
			cfg.Regions = append(cfg.Regions, Region{name, max(1, o.Daemons)})
		}
	}
	if n := len(t.Entries); n > 0 {
		cfg.Duration = max(time.Second, t.Entries[n-1].At+1)
	}
	cfg.Epoch = t.Start // so that windows are what they were
	if err := cfg.checkTrace(); err != nil {
		return nil, err
	}
	return &cfg, nil
}

// checkTrace refuses a trace without domains for limits that have several.
func (c *Config) checkTrace() error {
	domains := c.Rules.Domains()
	for _, k := range c.Trace.Keys {
		if k.Domain == "" && len(domains) != 1 {
			return fmt.Errorf("sim: the limits have %d domains, so the trace needs a column domain", len(domains))
		}
	}
	return nil
}

// play makes the recorded calls that are due.
func (l *load) play(w *World) {
	t := w.cfg.Trace
	for l.trace < len(t.Entries) && t.Entries[l.trace].At <= w.now && w.failed == nil {
		l.recorded(w, &t.Entries[l.trace])
		l.trace++
	}
	if l.trace < len(t.Entries) && !l.stopped {
		w.events.push(t.Entries[l.trace].At, evArrival, traceSource)
	}
}

func (l *load) recorded(w *World, e *TraceEntry) {
	region := slices.Index(w.regions, w.cfg.Trace.Regions[e.Region])
	if region < 0 {
		region = int(e.Region) % len(w.regions)
	}
	d := w.pick(region, true)
	if d == nil {
		l.Unanswered++
		return
	}
	k := &w.cfg.Trace.Keys[e.Key]
	c := w.newCall()
	c.Domain = k.Domain
	if c.Domain == "" {
		c.Domain = l.domain
	}
	work := Workload{Descriptors: k.Descriptors}
	c.Descriptors = work.descriptors(c.Descriptors[:0], Drawn, e.Hits)
	if err := w.ask(d, c, attempt{source: traceSource}); err != nil {
		w.failed = fmt.Errorf("sim: trace entry %d: %w", l.trace, err)
	}
}
