package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/georld/rld/config"
	"github.com/georld/rld/control"
	"github.com/georld/rld/examples"
	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/telemetry"
)

// limitsSource reads the limits on disk, and hands them over while they are
// valid.
type limitsSource struct {
	cfg     *config.Config
	log     *slog.Logger
	metrics *telemetry.Metrics
	active  *activeLimits
	watcher *config.Watcher // nil for the embedded examples
	invalid atomic.Value    // of string
}

// fault returns why the limits on disk are invalid, "" if they are in force.
func (s *limitsSource) fault() string {
	text, _ := s.invalid.Load().(string)
	return text
}

// loadFirst puts the first rules in force. Its error lists every fault, and is
// only logged if the control log has rules: these start the daemon without its
// files. from is the origin of the path.
func (s *limitsSource) loadFirst(from config.Origin) error {
	c := &s.cfg.Limits
	r := ReadLimits(c)
	err := s.first(r, from)
	switch {
	case err != nil && !s.active.supplied():
		return err
	case err != nil:
		s.invalid.Store(err.Error())
		s.metrics.ReloadFailed()
		s.log.Error("the limits on disk are missing or invalid: the rules of the control log are in force", "event", "limits", "error", err)
	}
	if c.Path != "" {
		s.watcher = config.NewWatcher(c.Path, c.Names, r.Files, s.changed)
	}
	return nil
}

// first applies the first reading.
func (s *limitsSource) first(r config.Reading, from config.Origin) error {
	switch {
	case r.Err != nil && from != "":
		return fmt.Errorf("limits (%s): %w", from, r.Err)
	case r.Err != nil:
		return fmt.Errorf("limits: %w", r.Err)
	}
	if err := s.apply(r); err != nil {
		return fmt.Errorf("the limits are invalid:\n%w", err)
	}
	return nil
}

// ReadLimits reads the files of limits that the settings of a daemon name, or
// the examples in the binary.
func ReadLimits(c *config.Limits) (r config.Reading) {
	if c.Path == "" {
		return embedded()
	}
	r.Files, r.Warnings, r.Err = config.Files(c.Path, c.Names)
	return r
}

// embedded returns the examples in the binary.
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

// apply compiles files and hands their rules over. If they are invalid it
// returns the faults, and the former rules stay.
func (s *limitsSource) apply(r config.Reading) error {
	for _, w := range r.Warnings {
		s.log.Warn(w)
	}
	c := s.cfg
	set, found := limits.Parse(r.Files, LimitsOptions(c))
	if err := found.Err(); err != nil {
		return errors.Join(err, otherFiles(found, &c.Limits))
	}
	for _, w := range found.Warnings() {
		s.log.Warn(w.Message, "at", w.Position.String(), "hint", w.Hint)
	}
	for _, n := range found.Notes() {
		s.log.Info(n.Message, "at", n.Position.String(), "hint", n.Hint)
	}
	var own *control.RuleSet
	examples := c.Limits.Path == ""
	if !examples && c.Region != "" {
		var err error
		if own, err = ownFiles(r.Files, c.Limits.Path); err != nil {
			s.log.Warn("the files of limits cannot be adopted", "event", "limits", "error", err)
		}
	}
	s.active.files(set, own, examples)
	s.metrics.Reloaded(time.Now())
	return nil
}

// ownFiles returns files with their names below a path, so that equal files of
// two daemons have equal names.
func ownFiles(files []limits.File, path string) (*control.RuleSet, error) {
	all := make([]control.RuleFile, len(files))
	for i, f := range files {
		name, err := filepath.Rel(path, f.Name)
		if err != nil || name == "." {
			name = filepath.Base(f.Name)
		}
		all[i] = control.RuleFile{Name: filepath.ToSlash(name), Text: string(f.Data)}
	}
	return control.NewRuleSet(all)
}

// LimitsOptions returns the options with which a daemon reads limits.
func LimitsOptions(c *config.Config) limits.Options {
	noRights := c.NoRights()
	if c.Witness() { // it reads limits for the daemons that use them
		noRights = ""
	}
	return limits.Options{
		MergeDomains: c.Limits.MergeDomains, ChargeDenied: c.Limits.ChargeDenied,
		Replicated: c.Region != "", Regions: c.RegionNames(), NoRights: noRights,
		Alone: c.Region == "", Replicas: len(c.StrictReplicas()),
		Daemons: len(c.RegionNames()) * len(c.StrictReplicas()), DaemonsOfRegion: len(c.StrictReplicas()),
	}
}

// otherFiles returns a hint if a fault is in a file that may not be meant as
// limits: like upstream, the daemon reads every file of a folder.
func otherFiles(found yamlpos.Diagnostics, c *config.Limits) error {
	if c.Names == config.NamesYAML {
		return nil
	}
	for i := range found {
		d := &found[i]
		inFolder := d.File != "" && d.File != c.Path
		if d.Severity == yamlpos.Error && inFolder && !config.YAMLName(d.File) {
			return fmt.Errorf("%s was read because every file of the folder counts; "+
				"RLD_LIMITS_NAMES=yaml (--limits-names yaml) reads only *.yaml and *.yml", d.File)
		}
	}
	return nil
}

// warnResets logs the rules whose counters start empty, because their grid or
// the sharing of their counters changed.
func warnResets(log *slog.Logger, was, is *rules.Set) {
	counted := func(r *rules.Rule) bool { return r.Limit != nil && !r.Limit.Unlimited }
	old := make(map[rules.ID]*rules.Rule)
	for _, r := range was.Rules() {
		if counted(r) {
			old[r.ID] = r
		}
	}
	for _, r := range is.Rules() {
		o := old[r.ID]
		if o == nil || !counted(r) {
			continue
		}
		var text string
		switch {
		case o.Limit.Grid() != r.Limit.Grid():
			text = "the window or the kind of counter of a rule changed: its counters start empty"
		case !slices.Equal(o.Patterns, r.Patterns):
			text = "the share_threshold of a rule changed: its counters start empty"
		default:
			continue
		}
		log.Warn(text, "domain", r.Domain, "rule", r.Path, "at", r.Pos.String())
	}
}

// watch reloads the limits when the files change, until ctx ends.
func (s *limitsSource) watch(ctx context.Context) {
	if s.watcher != nil {
		s.watcher.Run(ctx, s.cfg.Limits.Poll)
	}
}

// reload reads the limits again, even if they did not change.
func (s *limitsSource) reload() {
	if s.watcher == nil {
		s.log.Info("there is nothing to reload: the limits are the embedded examples")
		return
	}
	s.watcher.Reload()
}

// changed applies a new state of the files. The watcher calls it once at a
// time.
func (s *limitsSource) changed(r config.Reading) {
	err := r.Err
	if err == nil {
		err = s.apply(r)
	}
	if err != nil {
		s.invalid.Store(err.Error())
		s.metrics.ReloadFailed()
		s.log.Error("the limits are invalid, the former ones stay in force", "error", err)
		return
	}
	s.invalid.Store("")
	s.log.Info("limits reloaded", "rules", s.active.count())
}
