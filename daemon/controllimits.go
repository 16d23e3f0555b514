package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/daemon/report"
	"github.com/georld/rld/internal/loglimit"
	"github.com/georld/rld/rules"
)

// activeLimits keeps the limits that decide calls equal to those of the control
// log, and of files in all domains that the log does not have. It is safe for
// concurrent use.
type activeLimits struct {
	engine *Engine
	put    func(*rules.Set, keyRules) // puts limits in force
	log    *slog.Logger
	news   chan struct{} // holds a token when a turn may be due
	faulty loglimit.Limiter
	none   *rules.Set // no rules
	shown  atomic.Pointer[report.LimitsState]

	mu sync.Mutex // held during a turn
	// control is nil for a daemon alone, and until the control log is known.
	control *controlLoop
	local   *rules.Set       // of files
	own     *control.RuleSet // these files, nil if they cannot be adopted
	// examples reports that local are those of the binary, which do not count
	// beside rules of the log.
	examples bool
	// held returns the end of this daemon's rights, nil for none; until is that
	// of the last turn.
	held  func() int64
	until int64

	of       *control.Node    // that the last turn read: another one has no files yet
	given    *rules.Set       // that it has as the rules of files
	revision control.Revision // that the last turn used
	next     int64            // when the limits change, in Unix milliseconds

	set   *rules.Set            // in force, nil before the first turn
	keys  []control.KeyOverride // likewise
	state report.LimitsState
	// overrides are those that have an effect, as text.
	overrides map[control.Version]string
}

// newActiveLimits returns limits without rules.
func newActiveLimits(e *Engine, put func(*rules.Set, keyRules), log *slog.Logger) *activeLimits {
	return &activeLimits{engine: e, put: put, log: log, news: make(chan struct{}, 1), none: e.Rules()}
}

// limitsPoll is the longest time between two looks at the clock while a change
// of limits is due: the clock of windows may jump.
const limitsPoll = time.Second

// limitsAgain is the time after which limits are read again that could not be
// used.
const limitsAgain = 10 * time.Second

// follow makes the control log supply limits, and puts those of its record in
// force. The error is that of rules that this daemon cannot read.
func (l *activeLimits) follow(c *controlLoop) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.control = c
	c.limits = l.news
	l.update()
	if l.state.Fault != "" {
		return fmt.Errorf("the rules of the control log cannot be used: %s", l.state.Fault)
	}
	return nil
}

// supplied reports whether rules of the control log are in force.
func (l *activeLimits) supplied() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.control != nil && l.set != nil && len(l.set.Rules()) > 0
}

// count returns the number of rules in force.
func (l *activeLimits) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.set.Rules())
}

// files sets the rules of files, or of the examples in the binary, and puts
// them in force as far as the control log leaves it to them. own are these
// files, nil if they cannot be adopted.
func (l *activeLimits) files(set *rules.Set, own *control.RuleSet, examples bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.local, l.own, l.examples = set, own, examples
	l.update()
}

// run follows the control log until ctx ends.
func (l *activeLimits) run(ctx context.Context) {
	takeTurns(ctx, l.engine, l.news, func() time.Duration {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.update()
		wait := limitsPoll
		if l.next != math.MaxInt64 {
			wait = min(wait, time.Duration(max(0, l.next-l.now()))*time.Millisecond)
		}
		return l.engine.Now().Mono + wait
	})
}

// now returns the time that windows are cut from, in Unix milliseconds.
func (l *activeLimits) now() int64 { return l.engine.Millis(l.engine.Now()) }

// update puts the limits in force that are due. The caller holds l.mu.
func (l *activeLimits) update() {
	defer func() { l.shown.Store(new(l.state)) }()
	set, keys := l.local, []control.KeyOverride(nil)
	if l.control != nil {
		var record *control.Record
		var due bool
		var err error
		open := l.control.peekLimits(func(n *control.Node) {
			record = n.Record()
			if due = l.due(n); due {
				set, keys, err = l.read(n)
			}
		})
		switch {
		case open && !due:
			return
		case err != nil:
			l.fail(err)
		case open:
			l.state.Fault = ""
			defer l.control.inUse(record)
		}
	}
	if set == nil || set == l.set && slices.Equal(keys, l.keys) {
		return
	}
	if l.set != nil {
		warnResets(l.log, l.set, set)
	}
	l.put(set, keyRulesOf(keys, l.engine.hashers()))
	l.set, l.keys = set, keys
}

// hashBy hashes keys by other secrets.
func (l *activeLimits) hashBy(all [][rules.SecretBytes]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.engine.hashBy(all); l.set != nil {
		l.put(l.set, keyRulesOf(l.keys, l.engine.hashers()))
	}
}

// due reports whether the limits may differ from those of the last turn. The
// caller holds l.mu.
func (l *activeLimits) due(n *control.Node) bool {
	now := l.now()
	return l.lapsed(now) != (now >= l.until) || l.set == nil || l.given == nil || l.of != n || l.given != l.filesFor(n.Record()) || n.Limits().Revision() != l.revision || now >= l.next
}

// end returns the end of the rights of this daemon.
func (l *activeLimits) end() int64 {
	if l.held == nil {
		return math.MaxInt64
	}
	return l.held()
}

// lapsed reports whether the rights of this daemon have ended at a time.
func (l *activeLimits) lapsed(now int64) bool { return now >= l.end() }

// filesFor returns the rules of files that count beside a record. The caller
// holds l.mu.
func (l *activeLimits) filesFor(r *control.Record) *rules.Set {
	if l.local == nil || l.examples && r != nil && len(r.Limits.Steps) > 0 {
		return l.none
	}
	return l.local
}

// read returns the limits of the control log and of files. With an error they
// are the former ones. The caller holds l.mu.
func (l *activeLimits) read(n *control.Node) (*rules.Set, []control.KeyOverride, error) {
	a := n.Limits()
	l.revision = a.Revision()
	if files := l.filesFor(n.Record()); files != l.given || n != l.of {
		a.Local(files)
		a.Files(l.own)
		l.given, l.of = files, n
	}
	now := l.now()
	l.until = l.end()
	e, err := a.Effective(now, l.until)
	var domains []control.DomainSource
	if err == nil {
		domains, err = a.Domains()
	}
	if err != nil { // keys are blocked nevertheless
		keys, next := a.Keys(now)
		l.next = min(next, now+limitsAgain.Milliseconds())
		return l.set, keys, err
	}
	l.next = e.Next
	l.describe(domains)
	l.ended(n.Record(), now)
	return e.Set, e.Keys, nil
}

// fail notes why the limits of the control log cannot be used. The former ones
// stay in force. The caller holds l.mu.
func (l *activeLimits) fail(err error) {
	l.state.Fault = err.Error()
	if l.faulty.Due(l.state.Fault, time.Now(), time.Minute) {
		l.log.Error("the limits of the control log cannot be used, the former ones stay in force", "event", "limits", "error", err)
	}
}

// describe notes the sources of domains, and logs the domains whose files do
// not count. The caller holds l.mu.
func (l *activeLimits) describe(domains []control.DomainSource) {
	for _, d := range domains {
		if d.Overruled && !slices.Contains(l.state.Domains, d) {
			do := "apply them with rld limits apply, or remove them"
			if d.From == control.SupplierLocal {
				do = "they are adopted when all daemons have them, or with rld limits adopt; what is lower acts"
			}
			l.log.Warn("files of limits differ from the control log in a domain, and do not count there: "+do,
				"event", "limits", "domain", d.Domain)
		}
	}
	l.state.Domains = domains
}

// ended logs the overrides that had an effect and have none any more. The
// caller holds l.mu.
func (l *activeLimits) ended(r *control.Record, now int64) {
	if r == nil {
		return
	}
	was := l.overrides
	l.overrides = map[control.Version]string{}
	for i := range r.Limits.Overrides {
		if o := &r.Limits.Overrides[i]; o.Acts(now) && !o.Reset {
			l.overrides[o.Version] = fmt.Sprintf("%v: %v by %s", &o.Target, &o.Setting, o.Author)
		}
	}
	for v, text := range was {
		if l.overrides[v] == "" {
			l.log.Info("an override ended", "event", "limits", "version", v.String(), "override", text)
		}
	}
}

// State is part of report.Limits. It does not wait for a turn.
func (l *activeLimits) State() report.LimitsState {
	if s := l.shown.Load(); s != nil {
		return *s
	}
	return report.LimitsState{}
}

var _ report.Limits = (*activeLimits)(nil)
