package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/georld/rld/config"
	"github.com/georld/rld/examples"
	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// limitsSource keeps the rules in force equal to the files, as long as these
// are right.
type limitsSource struct {
	d     *daemon
	have  []limits.File // what was read last, good or not
	wrong atomic.Pointer[string]
}

// fault returns why what was read last is refused, "" when it is in force.
func (s *limitsSource) fault() string {
	if text := s.wrong.Load(); text != nil {
		return *text
	}
	return ""
}

func newLimitsSource(d *daemon) *limitsSource { return &limitsSource{d: d} }

// loadFirst puts the first rules in force. The error lists every fault.
func (s *limitsSource) loadFirst() error {
	r := s.read()
	if r.Err != nil {
		if from := s.d.limitsFrom; from != "" {
			return fmt.Errorf("limits (%s): %w", from, r.Err)
		}
		return fmt.Errorf("limits: %w", r.Err)
	}
	if err := s.apply(r); err != nil {
		return fmt.Errorf("the limits are refused:\n%w", err)
	}
	return nil
}

func (s *limitsSource) read() config.Reading {
	c := &s.d.cfg.Limits
	if c.Path == "" {
		return embedded()
	}
	var r config.Reading
	r.Files, r.Warnings, r.Err = config.Files(c.Path, c.Names)
	return r
}

// embedded returns the examples that the binary carries.
func embedded() config.Reading {
	var r config.Reading
	r.Err = fs.WalkDir(examples.Limits(), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(examples.Limits(), path)
		r.Files = append(r.Files, limits.File{Name: "embedded:" + path, Data: data})
		return err
	})
	return r
}

// apply compiles files and puts their rules in force, or returns what is
// wrong with them and leaves the old ones.
func (s *limitsSource) apply(r config.Reading) error {
	for _, w := range r.Warnings {
		s.d.log.Warn(w)
	}
	s.have = r.Files
	c := &s.d.cfg
	set, found := limits.Parse(r.Files, limits.Options{
		MergeDomains: c.Limits.MergeDomains, ChargeDenied: c.Limits.ChargeDenied,
		Replicated: c.Region != "", Regions: c.RegionNames(), NoRights: c.NoRights(),
		Alone: c.Region == "", Replicas: len(c.StrictReplicas()),
		Daemons: len(c.RegionNames()) * len(c.Rights.Daemons), DaemonsOfRegion: len(c.Rights.Daemons),
	})
	if err := found.Err(); err != nil {
		return errors.Join(err, strangers(found, &c.Limits))
	}
	for _, w := range found.Warnings() {
		s.d.log.Warn(w.Message, "at", w.Position.String(), "hint", w.Hint)
	}
	for _, n := range found.Notes() {
		s.d.log.Info(n.Message, "at", n.Position.String(), "hint", n.Hint)
	}
	s.warnRestarts(s.d.engine.Rules(), set)
	if s.d.agent != nil {
		s.d.agent.rules(set)
	}
	s.d.engine.SetRules(set, node.MatcherOptions{
		AllQuotas: c.QuotaAll, ChargeDenied: c.Limits.ChargeDenied,
	})
	s.d.warnPins(set)
	s.d.metrics.Reloaded(time.Now())
	return nil
}

// strangers hints at files that were read although they may hold no limits, as
// upstream has it. It is nil when no fault is in one.
func strangers(found yamlpos.Diagnostics, c *config.Limits) error {
	if c.Names == config.NamesYAML {
		return nil
	}
	for i := range found {
		d := &found[i]
		inFolder := d.File != "" && d.File != c.Path
		if d.Severity == yamlpos.Error && inFolder && !config.YAMLName(d.File) {
			return fmt.Errorf("%s was read since every file of the folder counts; "+
				"RLD_LIMITS_NAMES=yaml (--limits-names yaml) reads only *.yaml and *.yml", d.File)
		}
	}
	return nil
}

// warnRestarts says which rules start empty because what their counters are
// laid out on changed, or what shares them.
func (s *limitsSource) warnRestarts(was, is *rules.Set) {
	old := make(map[rules.ID]*rules.Rule)
	for _, r := range was.Rules() {
		if limited(r) {
			old[r.ID] = r
		}
	}
	for _, r := range is.Rules() {
		o := old[r.ID]
		if o == nil || !limited(r) {
			continue
		}
		var what string
		switch {
		case o.Limit.Grid() != r.Limit.Grid():
			what = "the window or the kind of counter of a rule changed: its counters start empty"
		case !slices.Equal(o.Patterns, r.Patterns):
			what = "the share_threshold of a rule changed: its counters start empty"
		default:
			continue
		}
		s.d.log.Warn(what, "domain", r.Domain, "rule", r.Path, "at", r.Pos.String())
	}
}

// watch reloads when the files change, or when reload says so, until ctx
// ends.
func (s *limitsSource) watch(ctx context.Context, reload <-chan struct{}) {
	c := &s.d.cfg.Limits
	if c.Path == "" {
		s.refuseReloads(ctx, reload)
		return
	}
	w := config.NewWatcher(c.Path, c.Names, s.have)
	var asks sync.WaitGroup
	defer asks.Wait()
	asks.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case _, ok := <-reload:
				if !ok {
					return
				}
				w.Reload()
			}
		}
	})
	w.Run(ctx, c.Poll, s.reload)
}

// refuseReloads answers those who ask for the embedded examples again, which
// never change.
func (s *limitsSource) refuseReloads(ctx context.Context, reload <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-reload:
			if !ok {
				return
			}
			s.d.log.Info("nothing to read again, the limits are the embedded examples")
		}
	}
}

// reload is told of every new state of the files.
func (s *limitsSource) reload(r config.Reading) {
	err := r.Err
	if err == nil {
		err = s.apply(r)
	}
	if err != nil {
		s.wrong.Store(new(err.Error()))
		s.d.metrics.ReloadFailed()
		s.d.log.Error("the limits are refused, the old ones stay in force", "error", err)
		return
	}
	s.wrong.Store(nil)
	s.d.log.Info("limits reloaded", "rules", len(s.d.engine.Rules().Rules()))
}

// describe says where the limits come from, for the banner.
func (s *limitsSource) describe() string {
	set := s.d.engine.Rules()
	from := s.d.cfg.Limits.Path
	if from == "" {
		from = "the embedded examples"
	}
	return fmt.Sprintf("%s in %s from %s", plural(len(set.Rules()), "rule"),
		plural(len(set.Domains()), "domain"), from)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
