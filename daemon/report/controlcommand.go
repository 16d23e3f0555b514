package report

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/server/admin/api"
)

// InitCluster executes a request to begin the cluster. It does nothing while
// something is missing, and once the cluster has begun.
func (r *Report) InitCluster(q api.InitRequest) (api.InitAnswer, error) {
	s := r.Control.State()
	out := api.InitAnswer{DryRun: q.DryRun, NothingRanBefore: q.NothingRanBefore}
	switch {
	case s.Record != nil:
		out.Cluster = *r.clusterState()
		return out, nil
	case s.Fault != "":
		return out, fmt.Errorf("the control log of this daemon is not open: %s", s.Fault)
	case len(s.Founders) == 0:
		return out, errors.New(noFounders)
	case s.ForeignToAll():
		return out, errors.New("all peers of this daemon belong to another cluster: correct its addresses, or give it a new state.dir")
	}
	if r.Engine.Stats().ClockOff { // the founding states from when on its rights count
		return out, errors.New("the clock of this daemon differs from those of most others: correct it, or ask another daemon")
	}
	known := func(name string) bool {
		return slices.ContainsFunc(r.Regions, func(g control.FirstRegion) bool { return g.Name == name })
	}
	for _, name := range q.Without {
		if !known(name) && !slices.ContainsFunc(q.Regions, func(g api.BackupRegion) bool { return g.Name == name }) {
			return out, fmt.Errorf("region %q is not in the settings: want one of %s", api.Clip(name), r.regionNames())
		}
	}
	if left := r.foundersIn(&s, q.Without); 2*(len(s.Founders)-len(left)) <= len(s.Founders) {
		return out, fmt.Errorf("--without %s leaves %d of %d founders, and not %s: want a majority; begin with more regions, or name other daemons in cluster.founders",
			strings.Join(q.Without, ","), len(s.Founders)-len(left), len(s.Founders), strings.Join(left, ", "))
	}
	out.Missing = r.missing(&s, q.Without)
	q.Without = append(slices.Clip(q.Without), r.witnessRegions(&s)...)
	regions, err := foundingRegions(r.Regions, &q)
	if err != nil {
		return out, err
	}
	if len(out.Missing) == 0 && !q.DryRun {
		r.Control.Do(func(n *control.Node) { err = n.Init(regions, q.NothingRanBefore) })
		if err != nil && r.Control.State().Record == nil {
			return out, trimControl(err)
		}
		out.UnderWay = err == nil
		if !s.Status.Founding {
			r.Log.Warn("an operator asked for the cluster to begin", "event", "control", "regions", r.regionNames())
		}
	}
	if out.Cluster = *r.clusterState(); !out.Cluster.Begun {
		out.Cluster.Regions = nil
		for _, g := range regions {
			out.Cluster.Regions = append(out.Cluster.Regions, api.ClusterRegion{Name: g.Name, Weight: ratioOf(g.Weight)})
		}
	}
	return out, nil
}

// foundingRegions returns the regions that a cluster begins with: all but some,
// which rld region add adds later. Those of a backup have its weights.
func foundingRegions(all []control.FirstRegion, q *api.InitRequest) ([]control.FirstRegion, error) {
	out := slices.DeleteFunc(slices.Clone(all), func(g control.FirstRegion) bool { return slices.Contains(q.Without, g.Name) })
	for _, g := range q.Regions {
		i := slices.IndexFunc(out, func(o control.FirstRegion) bool { return o.Name == g.Name })
		switch {
		case i < 0 && slices.Contains(q.Without, g.Name): // its weight goes to the others
		case i < 0:
			return nil, fmt.Errorf("region %q of the backup is not in the settings of this daemon: add it to regions, or use --without %s",
				api.Clip(g.Name), api.Clip(g.Name))
		case g.Weight == 0 || g.Weight > control.Whole:
			return nil, fmt.Errorf("region %q of the backup has the weight %d: want 1 to %d", api.Clip(g.Name), g.Weight, control.Whole)
		default:
			out[i].Weight = g.Weight
		}
	}
	if len(q.Regions) > 0 {
		for _, g := range out {
			if !slices.ContainsFunc(q.Regions, func(o api.BackupRegion) bool { return o.Name == g.Name }) {
				return nil, fmt.Errorf("region %q of the settings is not in the backup: use --without %s, and rld region add it afterwards", g.Name, g.Name)
			}
		}
	}
	sum, left := uint64(0), uint32(control.Whole)
	for _, g := range out {
		sum += uint64(g.Weight)
	}
	for i := range out {
		out[i].Weight = uint32(uint64(out[i].Weight) * control.Whole / max(sum, 1))
		left -= out[i].Weight
	}
	if len(out) > 0 {
		out[0].Weight += left
	}
	return out, nil
}

// missing returns what has to be there before a cluster begins: a durable
// daemon of each region but some, and a majority of the founders.
func (r *Report) missing(s *ControlState, without []string) []string {
	var out []string
	reached := r.reachedRegions(s)
	for _, g := range r.Regions {
		if !reached[g.Name] && !slices.Contains(without, g.Name) {
			out = append(out, fmt.Sprintf("a daemon of region %s with a state.dir", g.Name))
		}
	}
	live, absent := r.reachedFounders(s)
	left, but := r.foundersIn(s, without), ""
	if len(left) > 0 {
		but = ", without " + strings.Join(left, ", ")
	}
	if n := len(live) - len(left); 2*n <= len(s.Founders) {
		out = append(out, fmt.Sprintf("a majority of cluster.founders: %d of %d are heard%s, and not %s",
			n, len(s.Founders), but, strings.Join(absent, ", ")))
	}
	return out
}

// foundersIn returns the founders of regions that have sent a message, with
// this daemon. Those that only vote are in no region that begins.
func (r *Report) foundersIn(s *ControlState, regions []string) []string {
	live, _ := r.reachedFounders(s)
	return slices.DeleteFunc(live, func(name string) bool {
		if name == r.Name {
			return r.Witness || !slices.Contains(regions, r.Region)
		}
		return !slices.ContainsFunc(s.Status.Peers, func(p control.PeerStatus) bool {
			return p.Name == name && p.Age >= 0 && p.Foreign == 0 && !p.Sender.Witness && slices.Contains(regions, p.Region)
		})
	})
}

// witnessRegions returns the regions whose durable daemons only vote. The
// cluster begins without them.
func (r *Report) witnessRegions(s *ControlState) []string {
	votes, decides := map[string]bool{}, map[string]bool{r.Region: s.Durable && !r.Witness}
	votes[r.Region] = r.Witness
	for _, p := range s.Status.Peers {
		if p.Age >= 0 && p.Sender.Durable && p.Foreign == 0 {
			votes[p.Region] = votes[p.Region] || p.Sender.Witness
			decides[p.Region] = decides[p.Region] || !p.Sender.Witness
		}
	}
	maps.DeleteFunc(votes, func(name string, is bool) bool { return !is || decides[name] })
	return slices.Sorted(maps.Keys(votes))
}

func (r *Report) regionNames() string {
	names := make([]string, len(r.Regions))
	for i, g := range r.Regions {
		names[i] = g.Name
	}
	return strings.Join(names, ", ")
}

// trimControl returns an error without the name of the package.
func trimControl(err error) error { return errors.New(strings.TrimPrefix(err.Error(), "control: ")) }

// recoverPoll is the time between two looks whether a recovery is stored.
const recoverPoll = 20 * time.Millisecond

// RecoverCluster executes a request to recover the control log with the record
// of this daemon, and waits until that is stored or ctx ends.
func (r *Report) RecoverCluster(ctx context.Context, q api.RecoverRequest) (api.RecoverAnswer, error) {
	if q.Daemon != "" && q.Daemon != r.Name {
		whose := "whose record is to be kept"
		if q.Yield {
			whose = "whose record is to be given up"
		}
		return api.RecoverAnswer{}, fmt.Errorf("this daemon is %s, and not %s: ask the daemon %s", r.Name, api.Clip(q.Daemon), whose)
	}
	out := api.RecoverAnswer{DryRun: q.DryRun || q.Daemon == ""}
	before := r.Control.State()
	err := fmt.Errorf("the control log of this daemon is not open: %s", before.Fault)
	r.Control.Do(func(n *control.Node) {
		err = n.Recover(control.RecoverRequest{
			Author: q.Author, Reason: q.Reason, Behind: q.Behind, Stopped: q.Stopped, Yield: q.Yield, DryRun: out.DryRun,
		})
	})
	if err != nil {
		return api.RecoverAnswer{}, trimControl(err)
	}
	out.Recovery = before.Status.Version.Recovery.Number + 1
	if !out.DryRun {
		r.Log.Warn("an operator recovers the control log", "event", "control", "recovery", out.Recovery, "author", q.Author, "reason", q.Reason)
		t := time.NewTicker(recoverPoll)
		defer t.Stop()
		for r.Control.State().Status.Version.Recovery.Number < out.Recovery {
			select {
			case <-ctx.Done():
				if q.Yield {
					return out, errors.New("the other side has not begun the next recovery yet: repeat the command")
				}
				return out, errors.New("the recovery is not stored yet: see rld cluster status, and check the disk of state.dir")
			case <-t.C:
			}
		}
	}
	out.Cluster = *r.clusterState()
	return out, nil
}

// ResumeRegion executes a request to end the start of this daemon, whose record
// nobody confirms.
func (r *Report) ResumeRegion(q api.ResumeRequest) (api.ResumeAnswer, error) {
	if q.Region != "" && q.Region != r.Region {
		return api.ResumeAnswer{}, fmt.Errorf("this daemon is in region %s, and not in %s: ask a daemon of that region", r.Region, api.Clip(q.Region))
	}
	out := api.ResumeAnswer{DryRun: q.DryRun || q.Region == ""}
	err := fmt.Errorf("the control log of this daemon is not open: %s", r.Control.State().Fault)
	r.Control.Do(func(n *control.Node) { err = n.Resume(q.Author, q.Reason, out.DryRun) })
	if err != nil {
		return api.ResumeAnswer{}, trimControl(err)
	}
	if !out.DryRun {
		r.Log.Warn("an operator resumes the region", "event", "control", "author", q.Author, "reason", q.Reason)
	}
	out.Cluster = *r.clusterState()
	return out, nil
}

// History answers /v1/cluster/history.
func (r *Report) History() api.HistoryAnswer {
	if r.Control == nil {
		return api.HistoryAnswer{Alone: true}
	}
	rec := r.Control.State().Record
	if rec == nil {
		return api.HistoryAnswer{}
	}
	return api.HistoryAnswer{Begun: true, Commands: clusterCommands(rec.History), Dropped: clusterCommands(rec.Dropped)}
}

func clusterCommands(all []control.Command) []api.ClusterCommand {
	out := make([]api.ClusterCommand, len(all))
	for i, c := range all {
		out[i] = api.ClusterCommand{
			ID: c.Request.String(), Version: c.Version.String(), At: time.UnixMilli(c.At).UTC(),
			Author: c.Author, Reason: c.Reason, Text: c.Text,
		}
	}
	return out
}
