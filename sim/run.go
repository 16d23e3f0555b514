package sim

import (
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/breaker"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/sticky/quorum"
)

// Options selects the findings of a run beside its result.
type Options struct {
	// Auditors returns the auditors of a world before it starts, nil for none.
	// audit.All returns all there are.
	Auditors func(*World) []*Auditor
	// Series fills in Result.Series.
	Series bool
	// Trace writes down some of the events, nil for none. RunTwice writes those
	// of the first run.
	Trace *Trace
	// Wall reads a monotonic clock of the caller's, for Result.WallSeconds
	// alone; nil leaves it 0.
	Wall func() time.Duration
}

// CrashError is a run that ended in a panic: a bug of ours.
type CrashError struct {
	Name  string // of the run
	Seed  uint64
	At    time.Duration // virtual
	Event string        // number, kind and place of the event
	Value any           // of the panic
	Stack []byte
}

// Error describes the place of the panic; the stack is in the field.
func (e *CrashError) Error() string {
	return fmt.Sprintf("sim: %s, seed %d: crash at %v, in %s: %v", e.Name, e.Seed, e.At, e.Event, e.Value)
}

// DivergenceError is a run that, run again, was another one.
type DivergenceError struct{ First, Second *Result }

// Error names both traces, and the events of both runs: a rough measure of how
// far apart they are.
func (e *DivergenceError) Error() string {
	return fmt.Sprintf("sim: %s, seed %d: two runs differ: trace %s of %d events, then %s of %d", e.First.Scenario,
		e.First.Seed, e.First.TraceHash, e.First.Events, e.Second.TraceHash, e.Second.Events)
}

// Run plays a configuration from its start to its end. The result is complete
// whatever the findings; Result.Code returns their exit code. An error is an
// invalid configuration, or a *CrashError.
func Run(cfg *Config, o Options) (result *Result, err error) {
	if err = cfg.Validate(); err != nil {
		return nil, err
	}
	start := o.now()
	if cfg.Grid != nil {
		result, err = cfg.Grid.Run(cfg, o)
	} else {
		_, result, err = run(cfg, o)
	}
	if err == nil {
		result.WallSeconds = (o.now() - start).Seconds()
	}
	return result, err
}

// now reads the caller's clock, 0 without one.
func (o *Options) now() time.Duration {
	if o.Wall == nil {
		return 0
	}
	return o.Wall()
}

// RunTwice is Run, twice: it returns the first result and a *DivergenceError
// when the second run was another one. The second run is without auditors,
// which only read.
func RunTwice(cfg *Config, o Options) (*Result, error) {
	first, err := Run(cfg, o)
	if err != nil {
		return nil, err
	}
	o.Wall, o.Trace, o.Auditors = nil, nil, nil
	second, err := Run(cfg, o)
	if err != nil {
		return nil, err
	}
	if first.TraceHash != second.TraceHash {
		return first, &DivergenceError{first, second}
	}
	return first, nil
}

// run is Run, and returns the world at its end too. rigs change the world
// before it starts.
func run(cfg *Config, o Options, rigs ...func(*World)) (w *World, r *Result, err error) {
	if err = cfg.Validate(); err != nil {
		return nil, nil, err
	}
	w = newWorld(cfg)
	if o.Auditors != nil {
		w.auditors = watching(o.Auditors(w))
	}
	for _, rig := range rigs {
		rig(w)
	}
	w.series.on = o.Series
	w.lines = newLines(o.Trace, w)
	r, err = guarded(w, w.play)
	return w, r, err
}

// guarded makes a *CrashError of a panic.
func guarded(w *World, f func() *Result) (r *Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			r, err = nil, &CrashError{
				Name: w.cfg.Name, Seed: w.cfg.Seed, At: w.now,
				Event: eventOf(w), Value: p, Stack: debug.Stack(),
			}
		}
	}()
	r = f()
	return r, w.failed
}

// eventOf describes the event that happens.
func eventOf(w *World) string {
	text := fmt.Sprintf("event %d, %s", w.count, eventKinds[w.doing.kind].name)
	switch {
	case w.count == 0:
		return "the start of the run"
	case w.doing.kind == evFault || w.doing.kind == evRecover:
		text += ": " + w.faults.all[w.doing.arg].String()
	case w.acting != nil:
		text += " at " + w.acting.Name
	}
	return text
}

// play lets a world run from its start to its end.
func (w *World) play() *Result {
	w.prepare()
	w.runUntil(w.cfg.Duration + 1)
	healed := w.settle()
	if healed {
		w.auditors.settled()
	}
	w.recovery.wait(w)
	if w.failed != nil {
		return nil
	}
	w.lines.end(w)
	w.auditors.ended(healed)
	return w.result()
}

// result puts the findings of the run together.
func (w *World) result() *Result {
	t := &w.tallies
	r := &Result{
		Scenario: w.cfg.Name, Seed: w.cfg.Seed, Regions: len(w.regions), Daemons: len(w.daemons),
		VirtualSeconds: w.now.Seconds(), Events: w.count,
		Decisions: t.decisions, Admitted: t.admitted, Denied: t.denied, Refunded: w.load.refunded,
		Degraded: t.degraded, Unanswered: w.load.Unanswered,
		Staleness: w.views.staleness(), Seen: make(map[string]uint64), Situations: w.met.result(w.cfg),
	}
	for i := range t.rules {
		rt := &t.rules[i]
		r.Rules = append(r.Rules, RuleResult{
			Rule: rt.name, Algorithm: rt.limit.Algorithm.String(), Limit: quota.Of(rt.limit).Capacity(),
			Admitted: rt.admitted, Denied: rt.denied,
		})
	}
	if t.decisions > 0 {
		r.BytesPerDecision = float64(w.network.traffic.Bytes) / float64(t.decisions)
	}
	w.addSeen(r.Seen)
	r.Rights = w.rightsResult()
	r.Strict = w.strictResult()
	if w.series.on {
		r.Series = &w.series.out
	}
	r.Traffic = w.network.traffic
	r.Pending = w.pending
	r.Auditors = w.auditors.report(r)
	if w.rights || w.owners || w.cfg.Control != nil {
		r.Auditors = append(r.Auditors, w.storage)
	}
	r.Auditors = append(r.Auditors, w.network.traffic.audit(), w.cfg.Expect.audit(w, r))
	r.TraceHash = w.trace.sum()
	return r
}

// addSeen adds the numbers of all events of replicas, rights agents, acceptors
// and breakers by name.
func (w *World) addSeen(seen map[string]uint64) {
	add := func(counts []uint64, prefix string, name func(kind int) string) {
		for k, n := range counts {
			if n > 0 {
				seen[prefix+strings.ReplaceAll(name(k), " ", "_")] = n
			}
		}
	}
	add(w.seen[:], "", func(k int) string { return gossip.EventKind(k).String() })
	add(w.agents[:], ofRights, func(k int) string { return agent.EventKind(k).String() })
	add(w.acceptors[:], ofStrict, func(k int) string { return quorum.EventKind(k).String() })
	add(w.controls[:], ofControl, func(k int) string { return control.EventKind(k).String() })
	add(w.breakers[:], ofBreakers, func(k int) string { return breaker.State(k).String() })
}

// audit reports on the codec: damaged frames are refused, others are not.
func (t *Traffic) audit() Audit {
	a := Audit{Name: "frames", Checks: t.Frames, Violations: t.Accepted + t.Unsendable + t.Unreadable}
	switch {
	case t.Accepted > 0:
		a.First = fmt.Sprintf("%d damaged frames were taken for whole", t.Accepted)
	case t.Unsendable > 0:
		a.First = fmt.Sprintf("%d frames could not be encoded", t.Unsendable)
	case t.Unreadable > 0:
		a.First = fmt.Sprintf("%d undamaged frames could not be decoded", t.Unreadable)
	}
	return a
}
