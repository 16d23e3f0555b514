package report

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/server/admin/api"
)

// Backup answers /v1/cluster/backup with the record that this daemon has.
func Backup(r *Report, at time.Time) (api.Backup, error) {
	s := r.Control.State()
	rec := s.Record
	switch {
	case s.Fault != "":
		return api.Backup{}, errors.New(notOpen(&s) + ": ask another daemon")
	case rec == nil:
		return api.Backup{}, errors.New("the cluster has not begun: there is nothing to back up")
	}
	out := api.Backup{
		Format: api.BackupFormat, At: at, Cluster: rec.Cluster.ID.String(), Version: versionText(rec.Version),
		Regions: []api.BackupRegion{}, Files: []api.LimitsFile{}, Overrides: []api.BackupOverride{},
	}
	for _, g := range rec.Regions {
		if !g.Draining {
			out.Regions = append(out.Regions, api.BackupRegion{Name: g.Name, Weight: g.Weight})
		}
	}
	if s := rec.Limits.Latest(); s != nil {
		files, err := rec.Limits.Set(s.Set).Files()
		if err != nil {
			return api.Backup{}, fmt.Errorf("the rules of version %v: %w", s.Version, err)
		}
		for _, f := range files {
			out.Files = append(out.Files, api.LimitsFile(f))
		}
	}
	for i := range rec.Limits.Overrides {
		o := &rec.Limits.Overrides[i]
		over := o.Ended != nil || o.Until != 0 && at.UnixMilli() >= o.Until
		twice := slices.ContainsFunc(out.Overrides, func(b api.BackupOverride) bool {
			return b.Domain == o.Domain && b.Rule == o.Rule && b.Key == o.Key
		})
		if !over && !o.Reset && !twice {
			out.Overrides = append(out.Overrides, backupOf(o))
		}
	}
	var err error
	out.Hash, err = out.Sum()
	return out, err
}

// backupOf returns an override as the command that sets it again.
func backupOf(o *control.Override) api.BackupOverride {
	b := api.BackupOverride{Command: api.SetOverride, Until: timeOf(o.Until)}
	if o.Block {
		b.Command = api.BlockKey
	}
	b.Domain, b.Rule, b.Key, b.Requests, b.Mode, b.Reason = o.Domain, o.Rule, o.Key, o.Requests, string(o.Mode), o.Reason
	b.Author, b.From, b.ForSeconds = o.Author, timeOf(o.From), float64(o.For)/1_000
	if o.Budget != nil {
		b.OverageBudget = new(float64(*o.Budget) / 1e6)
	}
	return b
}
