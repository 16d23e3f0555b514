package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/georld/rld/demo"
	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/audit"
	"github.com/georld/rld/sim/report"
)

// simOutputs is where a result goes beside the summary: to files, or with "-"
// to standard output, which then holds nothing else.
type simOutputs struct {
	json, html string
	trace      traceOptions
}

func (o *simOutputs) flags(f *pflag.FlagSet) {
	f.StringVar(&o.json, "json", "", "write the result as JSON to this `file`, - for standard output")
	f.StringVar(&o.html, "report", "", "write the report, one HTML page, to this `file`, - for standard output")
	o.trace.flags(f)
}

// simulate plays a cluster and writes its result. again is the command line
// that does the same again.
func (o *simOutputs) simulate(
	p process, cfg *sim.Config, again string, play func(*sim.Config, sim.Options) (*sim.Result, error),
) error {
	if cfg.Daemons() > mostAudited {
		collectSeldom(p.environ, gcLarge)
	}
	t, err := o.trace.of(p, cfg)
	if err != nil {
		return exitWith(exitNoneOf, err)
	}
	r, err := play(cfg, sim.Options{Auditors: auditorsFor(cfg), Series: o.json != "" || o.html != "", Trace: t.selection(), Wall: stopwatch()})
	if err != nil {
		_ = t.end(0) // the failure counts
		return simFailure(p, err, again)
	}
	if err := t.end(r.VirtualSeconds); err != nil {
		return err
	}
	if err := o.write(p, r, cfg.Rules, again); err != nil {
		return err
	}
	return simVerdict(r)
}

// mostAudited is the number of daemons up to which all auditors run. Some keep
// records for each pair of daemons.
const mostAudited = 300

// auditorsFor returns the auditors that fit the size of a cluster.
func auditorsFor(cfg *sim.Config) func(*sim.World) []*sim.Auditor {
	if cfg.Daemons() <= mostAudited {
		return audit.All
	}
	return audit.Only("bounds", "decisions", "refunds", "rights", "admitted", "strict", "control")
}

// wanted reports whether more than the summary is asked for.
func (o *simOutputs) wanted() bool { return o.json != "" || o.html != "" || o.trace.span != "" }

// check finds before a run what would lose its result.
func (o *simOutputs) check() error {
	alone := []string{}
	for _, out := range []struct {
		name string
		is   bool
	}{{"--json -", o.json == "-"}, {"--report -", o.html == "-"}, {"--trace", o.trace.span != ""}} {
		if out.is {
			alone = append(alone, out.name)
		}
	}
	if len(alone) > 1 {
		return fmt.Errorf("%s: only one of them fits on standard output", suggest.List(alone))
	}
	if err := o.trace.check(); err != nil {
		return err
	}
	for _, path := range []string{o.json, o.html} {
		if path == "" || path == "-" {
			continue
		}
		folder, err := os.Stat(filepath.Dir(path))
		if err != nil {
			return fmt.Errorf("cannot write %s: %w", path, err)
		}
		if !folder.IsDir() {
			return fmt.Errorf("cannot write %s: %s is no folder", path, filepath.Dir(path))
		}
		if f, err := os.Stat(path); err == nil && f.IsDir() {
			return fmt.Errorf("cannot write %s: it is a folder", path)
		}
	}
	return nil
}

// write prints the summary and writes what else was asked for. set is the
// rules of the run, again its command.
func (o *simOutputs) write(p process, r *sim.Result, set *rules.Set, again string) error {
	windows(r.Series, set)
	summary := p.out
	if o.json == "-" || o.html == "-" || o.trace.span != "" {
		summary = p.err
	}
	err := simSummary(summary, r, again)
	if o.json != "" {
		err = errors.Join(err, writeOut(p, o.json, func(w io.Writer) error { return indented(w, r) }))
	}
	if o.html != "" {
		err = errors.Join(err, writeOut(p, o.html, func(w io.Writer) error { return report.HTML(w, r, again) }))
	}
	return exitWith(exitNo, err)
}

// windows notes in samples how long the limits of their rules are for.
func windows(s *sim.Series, set *rules.Set) {
	if s == nil {
		return
	}
	for _, rule := range set.Rules() {
		for i := range s.Rules {
			if l := rule.Limit; l != nil && !l.Unlimited && s.Rules[i].Rule == sim.RuleName(rule) {
				s.Rules[i].WindowSeconds = refill(l)
			}
		}
	}
}

// refill is the seconds in which as much as a limit holds comes back: its
// window, or what an empty bucket takes to be full; 0 when it never is.
func refill(l *rules.Limit) float64 {
	window := float64(l.Window()) / 1000
	switch {
	case !quota.Of(l).Drains():
		return window
	case l.Requests == 0:
		return 0
	}
	return window * float64(l.Burst) / float64(l.Requests)
}

// writeOut writes a document to a file, or to standard output for "-".
func writeOut(p process, path string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if path == "-" {
		_, err := p.out.Write(b.Bytes())
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// meter shows how far something is on standard error: on a terminal in one
// line that is written over, elsewhere in a line now and then.
type meter struct {
	w        io.Writer
	terminal bool
	ticker   *time.Ticker
	shown    bool
}

func newMeter(p process) *meter {
	m := &meter{w: p.err, terminal: isTerminal(p.err)}
	every := 10 * time.Second
	if m.terminal {
		every = 200 * time.Millisecond
	}
	m.ticker = time.NewTicker(every)
	return m
}

// due ticks when it is time to show something.
func (m *meter) due() <-chan time.Time { return m.ticker.C }

// The codes of terminals to go to the start of the line and to clear the rest
// of it.
const overwrite = "\r\x1b[K"

// show writes a line.
func (m *meter) show(line string) {
	if m.terminal {
		fmt.Fprint(m.w, overwrite+line)
	} else {
		fmt.Fprintln(m.w, line)
	}
	m.shown = true
}

// note writes a line that stays.
func (m *meter) note(line string) {
	if m.terminal {
		line = overwrite + line
	}
	fmt.Fprintln(m.w, line)
}

// end takes the line of a terminal away.
func (m *meter) end() {
	m.ticker.Stop()
	if m.terminal && m.shown {
		fmt.Fprint(m.w, overwrite)
	}
}

// isTerminal reports whether the output is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, ok = demo.TerminalRows(f)
	return ok
}
