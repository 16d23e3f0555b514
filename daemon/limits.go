package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/georld/rld/config"
	"github.com/georld/rld/control"
	"github.com/georld/rld/daemon/follow"
	xdsclient "github.com/georld/rld/daemon/xds"
	"github.com/georld/rld/disk/osdir"
	"github.com/georld/rld/examples"
	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/limits/xds"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/telemetry"
)

// limitsSource reads the limits on disk, or receives those of an xDS server,
// and hands them over while they are valid.
type limitsSource struct {
	cfg     *config.Config
	log     *slog.Logger
	metrics *telemetry.Metrics
	active  *activeLimits
	watcher *config.Watcher   // nil for the embedded examples and an xDS server
	invalid atomic.Value      // of string
	headers map[string]string // for an xDS server, beside those of the settings
	xds     *xdsclient.Client // nil without such a server
	// turn holds a token while sets of the server may be put in force: between
	// the first one and watch they wait.
	turn    chan struct{}
	overlay *follow.File[*xds.Overlay] // for these sets, nil for none
	// refused is why the latest limits of the server, and the latest overlay,
	// are not in force, "" for each that is.
	refused struct {
		sync.Mutex
		limits, overlay string
	}
	begin func() // runs the client, once
	close func() // ends the client, nil for none
}

// fault returns why the limits on disk, or of the xDS server, are invalid, ""
// if they are in force.
func (s *limitsSource) fault() string {
	text, _ := s.invalid.Load().(string)
	return text
}

// loadFirst puts the first rules in force. Its error lists every fault, and is
// only logged if the control log has rules: these start the daemon without its
// files. from is the origin of the path.
func (s *limitsSource) loadFirst(from config.Origin) error {
	c := &s.cfg.Limits
	if c.XDS.On() {
		return s.follow()
	}
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

// follow begins to follow an xDS server. The limits that it sent to an earlier
// process are in force until it sends others.
func (s *limitsSource) follow() error {
	ctx, cancel := context.WithCancel(context.Background())
	s.turn = make(chan struct{}, 1)
	s.turn <- struct{}{}
	o := xdsclient.Options{Settings: s.cfg.Limits.XDS, Headers: s.headers, Log: s.log}
	o.Apply = func(set *xds.Set) error {
		select {
		case <-s.turn:
			defer func() { s.turn <- struct{}{} }()
			return s.applySet(set)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	o.Refused = func(fault string) { s.note(&s.refused.limits, fault) }
	unlock := func() error { return nil }
	if dir := cmp.Or(o.Settings.Dir, s.cfg.State.Dir); dir != "" {
		folder := osdir.Dir(dir)
		lock, err := folder.Lock(xdsclient.LockFile)
		if err != nil {
			cancel()
			return fmt.Errorf("limits.xds.dir: %w", err)
		}
		o.Folder, unlock = folder, lock.Close
	}
	s.xds = xdsclient.New(o)
	if o.Settings.Overlay != "" {
		if err := s.openOverlay(); err != nil {
			cancel()
			return errors.Join(err, unlock())
		}
	}
	var running sync.WaitGroup
	s.begin = sync.OnceFunc(func() { running.Go(func() { s.xds.Run(ctx) }) })
	s.close = func() {
		cancel()
		running.Wait()
		unlock() // the file is closed: an error has no effect
	}
	if !s.xds.Restore() && o.Settings.StartWithoutLimits {
		return s.apply(config.Reading{})
	}
	return nil
}

// note notes why one of the refused ones is not in force, and shows the first
// of them.
func (s *limitsSource) note(refused *string, fault string) {
	s.refused.Lock()
	defer s.refused.Unlock()
	*refused = fault
	first := cmp.Or(s.refused.limits, s.refused.overlay)
	s.invalid.Store(first)
	if first != "" {
		s.metrics.ReloadFailed()
	}
}

// openOverlay reads the overlay of the limits of an xDS server, and follows its
// file.
func (s *limitsSource) openOverlay() error {
	overlay, first, err := follow.Open(follow.Source[*xds.Overlay]{
		Read: s.cfg.Limits.XDS.ReadOverlay,
		Apply: func(o *xds.Overlay) {
			if err := s.xds.Overlay(o); err != nil {
				s.note(&s.refused.overlay, err.Error())
				s.log.Error("the overlay is refused, the former one stays in force", "event", "limits", "error", err)
				return
			}
			s.note(&s.refused.overlay, "")
			s.log.Info("the overlay is in force", "event", "limits")
		},
		Refused: func(err error) {
			s.note(&s.refused.overlay, err.Error())
			s.log.Error("the overlay is invalid, the former one stays in force", "event", "limits", "error", err)
		},
	})
	if err != nil {
		return err
	}
	s.overlay = overlay
	return s.xds.Overlay(first)
}

// await waits for the first limits of an xDS server, unless the daemon may
// start without them. The error is that of ctx.
func (s *limitsSource) await(ctx context.Context) error {
	if s.xds == nil || s.cfg.Limits.XDS.StartWithoutLimits || s.active.supplied() {
		return nil
	}
	select {
	case <-s.xds.InForce():
		return nil
	default:
	}
	server := s.cfg.Limits.XDS.Server
	s.log.Info("waiting for the first limits of the xDS server, before calls are accepted: limits.xds.start_without_limits "+
		"(FORCE_START_WITHOUT_INITIAL_CONFIG) starts without them", "event", "limits", "server", server)
	s.begin()
	select {
	case <-s.xds.InForce():
		<-s.turn
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stopped before the xDS server %s had sent limits", server)
	}
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
	if r.Explain != nil {
		r.Explain(found)
	}
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
	examples := c.Limits.Path == "" && !c.Limits.XDS.On()
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

// applySet is apply for a set of an xDS server.
func (s *limitsSource) applySet(set *xds.Set) error {
	return s.apply(config.Reading{Files: set.Files, Explain: set.Explain})
}

// ownFiles returns files with their names below a path, so that equal files of
// two daemons have equal names.
func ownFiles(files []limits.File, path string) (*control.RuleSet, error) {
	all := make([]control.RuleFile, len(files))
	for i, f := range files {
		name, err := filepath.Rel(path, f.Name)
		switch {
		case path == "": // of an xDS server
			name = f.Name
		case err != nil || name == ".":
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

// watch reloads the limits when the files or those of the xDS server change,
// until ctx ends.
func (s *limitsSource) watch(ctx context.Context) {
	switch {
	case s.watcher != nil:
		s.watcher.Run(ctx, s.cfg.Limits.Poll)
	case s.xds != nil:
		select {
		case s.turn <- struct{}{}:
		default: // await did not take it
		}
		s.begin()
		if s.overlay != nil {
			follow.Every(ctx, s.cfg.Limits.Poll, func() { s.overlay.Look(false) })
		}
	}
}

// reload reads the limits again, even if they did not change.
func (s *limitsSource) reload() {
	switch {
	case s.overlay != nil:
		s.overlay.Look(true)
		return
	case s.xds != nil:
		s.log.Info("there is nothing to reload: the xDS server sends changes of the limits by itself")
		return
	case s.watcher == nil:
		s.log.Info("there is nothing to reload: the limits are the embedded examples")
		return
	}
	s.watcher.Reload()
}

// changed applies a new state of the files. The watcher calls it once at a
// time.
func (s *limitsSource) changed(r config.Reading) {
	if err := s.change(r); err != nil {
		s.log.Error("the limits are invalid, the former ones stay in force", "error", err)
		return
	}
	s.log.Info("limits reloaded", "rules", s.active.count())
}

// change applies a new state of the source, and notes a fault.
func (s *limitsSource) change(r config.Reading) error {
	err := r.Err
	if err == nil {
		err = s.apply(r)
	}
	if err != nil {
		s.invalid.Store(err.Error())
		s.metrics.ReloadFailed()
		return err
	}
	s.invalid.Store("")
	return nil
}
