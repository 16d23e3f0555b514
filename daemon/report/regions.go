package report

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/georld/rld/control"
	"github.com/georld/rld/control/revocation"
	"github.com/georld/rld/server/admin/api"
)

// ChangeCluster executes a command about a region or a daemon, and waits for
// its result until ctx ends.
func ChangeCluster(ctx context.Context, r *Report, name api.ClusterCommandName, q api.ChangeRequest) (api.ChangeAnswer, error) {
	s := r.Control.State()
	switch {
	case s.Fault != "":
		return api.ChangeAnswer{}, errors.New(notOpen(&s))
	case s.Record == nil:
		return api.ChangeAnswer{}, errors.New("the cluster has not begun: first run rld cluster init")
	case name == api.RevokeDaemon && !r.named():
		return api.ChangeAnswer{}, errors.New("the certificate of this daemon names no daemon, so its peers prove no names that could be revoked: " +
			"give all other daemons another cluster.secret_file, and run rld daemon remove NAME --stopped")
	}
	id, err := commandID(q.ID)
	if err != nil {
		return api.ChangeAnswer{}, err
	}
	if !q.DryRun && s.Record.Outcome(id) != nil { // repeated
		return ClusterCommand(r, id.String())
	}
	request := control.Request{ID: id, Author: q.Author, Reason: q.Reason}
	text := ""
	open := r.Control.Do(func(n *control.Node) {
		if request.Change, err = changeOf(n, name, &q); err == nil {
			text, err = n.Try(request)
		}
	})
	switch {
	case !open:
		err = errors.New("the control log of this daemon is not open")
	case err == nil && q.DryRun:
		out := api.ChangeAnswer{ID: id.String(), DryRun: true, Text: text}
		if s.Status.Leader == (control.ID{}) {
			out.Leaderless = r.leaderless(&s)
		}
		return out, nil
	}
	if err != nil {
		return api.ChangeAnswer{}, trimControl(err)
	}
	result, err := r.Control.Submit(ctx, request)
	switch {
	case errors.Is(err, ErrNoLeader):
		return api.ChangeAnswer{}, fmt.Errorf("%s. Nothing was changed: that needs a majority", r.leaderless(&s))
	case errors.Is(err, ErrNoResult):
		return api.ChangeAnswer{ID: id.String()}, nil
	case err != nil:
		return api.ChangeAnswer{}, trimControl(err)
	case result.Err != nil:
		return api.ChangeAnswer{}, whole(r.Control, request, result.Err)
	}
	r.Log.Warn("an operator changed the cluster", "event", "control", "change", text, "author", q.Author, "reason", q.Reason)
	return ClusterCommand(r, id.String())
}

// named reports whether streams prove the names of peers.
func (r *Report) named() bool {
	if r.Cluster == nil {
		return false
	}
	streams, _ := r.Cluster.Stats()
	return len(streams.Certified.Names) > 0
}

// revoked returns the revoked daemons of a record, by name.
func revoked(rec *control.Record) []string {
	out := []string{}
	if rec != nil {
		for _, e := range rec.Revoked {
			out = append(out, e.String())
		}
	}
	return out
}

// commandID returns the id of a command, or draws one.
func commandID(text string) (control.Number, error) {
	var id control.Number
	if text == "" {
		var b [8]byte
		rand.Read(b[:]) // never fails
		return control.Number(binary.BigEndian.Uint64(b[:]) | 1), nil
	}
	if err := id.UnmarshalText([]byte(text)); err != nil || id == 0 {
		return 0, fmt.Errorf("id %q: want 16 hexadecimal digits, not all 0", api.Clip(text))
	}
	return id, nil
}

// changeOf returns the change of a command.
func changeOf(n *control.Node, name api.ClusterCommandName, q *api.ChangeRequest) (control.Change, error) {
	ops := map[api.ClusterCommandName]control.RegionOp{
		api.AddRegion: control.AddRegion, api.WeighRegion: control.WeighRegion, api.DrainRegion: control.DrainRegion,
		api.RemoveRegion: control.RemoveRegion,
	}
	if op, is := ops[name]; is {
		return control.Change{Region: &control.RegionChange{
			Op: op, Name: q.Name, Weight: uint32(math.Round(q.Weight * control.Whole)), Stopped: q.Stopped, Force: q.Force,
		}}, nil
	}
	switch name {
	case api.RevokeDaemon, api.UnrevokeDaemon:
		daemon, err := revocation.Parse(q.Name)
		return control.Change{Revoke: &revocation.Change{Name: daemon, Undo: name == api.UnrevokeDaemon}}, err
	case api.HoldFormat:
		return control.Change{Format: &control.FormatChange{Op: control.HoldFormat}}, nil
	case api.UnholdFormat:
		return control.Change{Format: &control.FormatChange{Op: control.UnholdFormat}}, nil
	}
	if name == api.RecoverStrict {
		if !q.Stopped {
			return control.Change{}, errors.New("strict voters are given up only when an operator states that they are stopped, or run without their state")
		}
		return control.Change{Layouts: &control.LayoutChange{Recover: &control.StrictRecovery{
			Stopped: q.Voters, LostVoters: control.LostVoters{Region: q.Name},
		}}}, nil
	}
	if !q.Stopped {
		return control.Change{}, errors.New("a daemon is removed only when an operator states with --stopped that it is stopped, and that its state will not be used again")
	}
	id, err := control.RightsOf(n).DaemonID(q.Name)
	return control.Change{Dead: &control.DeadID{ID: id, Stopped: true}}, err
}

// ClusterCommand answers /v1/cluster/command for the id of a command. It fails
// if the id is invalid, or if the command was refused.
func ClusterCommand(r *Report, text string) (api.ChangeAnswer, error) {
	id, err := commandID(text)
	if err != nil || text == "" {
		return api.ChangeAnswer{}, fmt.Errorf("id %q: want 16 hexadecimal digits", api.Clip(text))
	}
	s, out := r.Control.State(), api.ChangeAnswer{ID: id.String()}
	if s.Record == nil {
		return out, nil
	}
	o := s.Record.Outcome(id)
	switch {
	case o == nil:
		return out, nil
	case o.Refused != "":
		return out, errors.New(o.Refused)
	}
	out.Done, out.Version = true, versionText(o.Version)
	if c := commandOf(s.Record, func(c *control.Command) bool { return c.Request == id }); c != nil {
		out.Text = c.Text
	}
	if replacing := s.Record.Layouts.Replacing(); len(replacing) > 0 {
		out.Pending, out.Waits = true, append(out.Waits, r.lacksStrict(&s, replacing)...)
		for _, region := range replacing {
			out.Waits = append(out.Waits, "the strict voters after those of region "+region)
		}
	}
	if !s.Status.Settled {
		out.Pending = true
		reached := r.reachedRegions(&s)
		for _, g := range s.Record.Regions {
			if !reached[g.Name] {
				out.Waits = append(out.Waits, "region "+g.Name)
			}
		}
	}
	return out, nil
}

// lacksStrict describes the regions whose strict voters that are live are no
// majority, except for some: no layout becomes active without them.
func (r *Report) lacksStrict(s *ControlState, except []string) []string {
	layout := s.Record.Layouts.Newest()
	if layout == nil {
		return nil
	}
	var out []string
	for _, g := range layout.Regions {
		if slices.Contains(except, g.Name) {
			continue
		}
		live := 0
		for _, name := range g.Replicas {
			is := func(p control.PeerStatus) bool { return p.Live && p.Region == g.Name && p.Name == name }
			if g.Name == r.Region && name == r.Name || slices.ContainsFunc(s.Status.Peers, is) {
				live++
			}
		}
		if n := (voters{all: len(g.Replicas)}); live < n.majority() {
			out = append(out, fmt.Sprintf("the strict voters of region %s, of which %d of %d are live, want at least %d", g.Name, live, n.all, n.majority()))
		}
	}
	return out
}
