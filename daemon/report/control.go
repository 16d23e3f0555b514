package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/server/admin/api"
	"github.com/georld/rld/telemetry"
)

// Control is the control log of a daemon. Implementations are safe for
// concurrent use.
type Control interface {
	// State returns the current state.
	State() ControlState
	// Do runs a function on the node and makes it send soon. It returns false
	// if the log is not open.
	Do(by func(*control.Node)) bool
	// Submit submits a command and waits for its result until ctx ends. The
	// error is ErrNoLeader if it was not sent, ErrNoResult if its result is not
	// known, and else that of control.Node.Submit.
	Submit(ctx context.Context, r control.Request) (control.Result, error)
}

// The errors of Control.Submit.
var (
	ErrNoLeader = errors.New("the control log has no leader")
	ErrNoResult = errors.New("the result of the command is not known")
)

// ControlState is the state of the control log of a daemon.
type ControlState struct {
	Status control.Status
	// Record is nil before the founding, and if the log can neither be opened
	// nor read.
	Record *control.Record
	// Founders are those in the settings. Durable reports that the daemon has a
	// folder.
	Founders []string
	Durable  bool
	// Fault is why the log is not open, "" if it is.
	Fault string
	// Differ describes a daemon with other founders in its settings, "" for
	// none.
	Differ string
	// Events counts the events by the name of their kind.
	Events map[string]uint64
}

// ClusterPage answers /v1/cluster.
func (r *Report) ClusterPage() api.ClusterAnswer {
	if r.Control == nil {
		return api.ClusterAnswer{Alone: true}
	}
	return api.ClusterAnswer{Cluster: r.clusterState()}
}

// clusterState describes the control log.
func (r *Report) clusterState() *api.ClusterState {
	s := r.Control.State()
	out := &api.ClusterState{Revoked: revoked(s.Record), Daemon: r.clusterSelf(&s), Founders: s.Founders, Problems: r.problems(&s), Format: clusterFormat(&s)}
	for _, p := range s.Status.Peers {
		d := api.ClusterDaemon{Region: p.Region, Name: p.Name, Role: api.RoleFollower, State: "no message yet"}
		if p.Age >= 0 {
			d.ID, d.Durable, d.AgeSeconds = p.Sender.ID.String(), p.Sender.Durable, api.Seconds(p.Age)
			d.VoterOnly = p.Sender.Witness
			d.State = peerState(&p)
			if p.Version.Index > 0 {
				d.Version = p.Version.String()
			}
			d.Role = s.role(p.Sender.ID)
		}
		if p.Foreign != 0 {
			d.State = fmt.Sprintf("belongs to cluster %v", p.Foreign)
		}
		out.Peers = append(out.Peers, d)
	}
	slices.SortStableFunc(out.Peers, func(a, b api.ClusterDaemon) int {
		return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.Name, b.Name))
	})
	reached := r.reachedRegions(&s)
	rec := s.Record
	if rec == nil {
		for _, g := range r.Regions {
			out.Regions = append(out.Regions, api.ClusterRegion{Name: g.Name, Weight: ratioOf(g.Weight), Reached: reached[g.Name]})
		}
		out.Waiting = r.waiting(&s, reached)
		return out
	}
	out.Begun, out.BegunAt, out.ID = true, new(time.UnixMilli(rec.Cluster.Begun).UTC()), rec.Cluster.ID.String()
	if rec.Cluster.From > 0 {
		out.RightsFrom = new(time.UnixMilli(rec.Cluster.From).UTC())
	}
	out.Version, out.Index, out.Recovery, out.Hash = rec.Version.String(), rec.Version.Index, rec.Version.Recovery.Number, s.Status.Hash
	for _, g := range rec.Regions {
		out.Regions = append(out.Regions, api.ClusterRegion{
			Name: g.Name, Weight: ratioOf(g.Weight), Draining: g.Draining, Reached: reached[g.Name],
			Generation: g.Generation.String(), Founders: len(g.Founders),
		})
	}
	for _, v := range rec.Voters {
		d := clusterDaemon(out, v.Daemon)
		d.Region, d.VoterOnly = cmp.Or(d.Region, v.Region), d.VoterOnly || v.Witness
		d.Role = s.role(v.Daemon)
		out.Voters = append(out.Voters, d)
	}
	slices.SortStableFunc(out.Voters, func(a, b api.ClusterDaemon) int {
		return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.Name, b.Name))
	})
	if s.Status.Leader != (control.ID{}) {
		out.Leader = new(clusterDaemon(out, s.Status.Leader))
	}
	return out
}

// Unread describes a record that this daemon cannot read.
func Unread(s *control.Status) string {
	return fmt.Sprintf("the record of the cluster has format %d, and this version of rld reads formats up to %d: "+
		"it goes on with the record that it has; start a later version", s.Unread, s.Reads)
}

// clusterFormat describes the format of the record.
func clusterFormat(s *ControlState) api.ClusterFormat {
	out := api.ClusterFormat{Reads: s.Status.Reads, Unread: s.Status.Unread, Behind: s.Status.Behind}
	rec := s.Record
	if rec == nil {
		return out
	}
	out.Record, out.Next = rec.Format, rec.Next.Format
	if v := rec.Next.Held; v != (control.Version{}) {
		out.Held = &api.ClusterCommand{Version: v.String()}
		if c := commandOf(rec, func(c *control.Command) bool { return c.Version == v }); c != nil {
			out.Held = &clusterCommands([]control.Command{*c})[0]
		}
	} else if out.Next != 0 {
		out.RaisedAt = new(time.UnixMilli(s.Status.RaisedAt).UTC())
	}
	return out
}

// clusterDaemon returns the daemon with an id. One that is not live has no
// name.
func clusterDaemon(c *api.ClusterState, id control.ID) api.ClusterDaemon {
	for _, d := range append([]api.ClusterDaemon{c.Daemon}, c.Peers...) {
		if d.ID == id.String() {
			return d
		}
	}
	return api.ClusterDaemon{ID: id.String(), Role: api.RoleFollower, Durable: true, State: "not live"}
}

// clusterSelf describes this daemon.
func (r *Report) clusterSelf(s *ControlState) api.ClusterDaemon {
	out := api.ClusterDaemon{Region: r.Region, Name: r.Name, Self: true, Durable: s.Durable, VoterOnly: r.Witness, Role: api.RoleFollower, State: "live"}
	st := &s.Status
	switch {
	case s.Fault != "":
		out.State = "not open"
		return out
	case st.Unread != 0:
		out.State = "its version is too old for the record"
	case st.Abstains != "":
		out.State = "its voter stopped"
	case st.Diverged:
		out.State = "its record differs from that of the leader"
	case s.Record != nil && st.Starting:
		out.State = "starting: it does not know yet whether its record is current"
	}
	out.ID, out.Role = st.ID.String(), s.role(st.ID)
	if s.Record != nil {
		out.Version = st.Version.String()
	}
	return out
}

// peerState describes a peer by its latest message.
func peerState(p *control.PeerStatus) string {
	switch {
	case p.Split:
		return "follows another recovery"
	case p.Sender.Leaving:
		return "leaving"
	case p.Sender.Starting && p.Version.Index > 0:
		return "starting"
	case !p.Live:
		return "not live"
	}
	return "live"
}

// role returns the role of a daemon.
func (s *ControlState) role(id control.ID) api.ClusterDaemonRole {
	if s.Record == nil {
		return api.RoleFollower
	}
	v := s.Record.VoterOf(id)
	switch {
	case v == nil:
		return api.RoleFollower
	case v.Learner:
		return api.RoleLearner
	case id == s.Status.Leader:
		return api.RoleLeader
	}
	return api.RoleVoter
}

// ratioOf returns parts of control.Whole as a fraction.
func ratioOf(weight uint32) float64 { return float64(weight) / control.Whole }

// reachedRegions returns the regions with a live durable daemon, or that this
// one is in.
func (r *Report) reachedRegions(s *ControlState) map[string]bool {
	out := map[string]bool{}
	if s.Durable && s.Fault == "" {
		out[r.Region] = true
	}
	for _, p := range s.Status.Peers {
		if p.Live && p.Sender.Durable && p.Foreign == 0 {
			out[p.Region] = true
		}
	}
	return out
}

// reachedFounders returns the founders that have sent a message, with this
// daemon, and the others.
func (r *Report) reachedFounders(s *ControlState) (reached, missing []string) {
	for _, name := range s.Founders {
		self := name == r.Name && s.Durable && s.Fault == ""
		if self || slices.ContainsFunc(s.Status.Peers, func(p control.PeerStatus) bool {
			return p.Name == name && p.Age >= 0 && p.Sender.Durable && p.Foreign == 0
		}) {
			reached = append(reached, name)
		} else {
			missing = append(missing, name)
		}
	}
	return reached, missing
}

// noFounders is the missing condition of a cluster without founders.
const noFounders = "cluster.founders is not set: name 1 to 5 daemons with a state.dir, the same in the settings of all daemons"

// waiting returns the missing conditions of a cluster that has not begun.
func (r *Report) waiting(s *ControlState, reached map[string]bool) string {
	n := 0
	for _, g := range r.Regions {
		if reached[g.Name] {
			n++
		}
	}
	text := fmt.Sprintf("waiting for rld cluster init; %d of %d regions heard", n, len(r.Regions))
	switch live, _ := r.reachedFounders(s); {
	case s.Fault != "":
		return "the control log of this daemon is not open: whether the cluster has begun is not known here"
	case len(s.Founders) == 0:
		return "waiting: " + noFounders
	case s.Status.Founding:
		text = fmt.Sprintf("the founders agree on the beginning; %d of %d are heard, want a majority", len(live), len(s.Founders))
	}
	return text
}

// problems returns the problems as sentences, each with its remedy.
func (r *Report) problems(s *ControlState) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	st := &s.Status
	if s.Fault != "" {
		say("the control log of this daemon is not open: %s; check the disk of state.dir, it tries again every 10 seconds", s.Fault)
		return out
	}
	if r.Rights != nil {
		if why := r.Rights.Status().Failing; why != "" {
			say("the record of rights of this daemon cannot be stored: %s; check the disk of state.dir: without it the daemon has no rights in later windows", why)
		}
	}
	if st.Failing != "" {
		say("the control log of this daemon cannot be stored: %s; check the disk of state.dir", st.Failing)
	}
	if names := peersWith(s, func(p *control.PeerStatus) bool { return p.Foreign != 0 }); names != "" {
		say("%s: of another cluster; correct the addresses there or here, or give the wrong ones a new state.dir", names)
	}
	if names := peersWith(s, func(p *control.PeerStatus) bool { return p.Split }); names != "" {
		say("%s: on the other side of two recoveries; on the side to give up run rld cluster recover --yield", names)
	}
	if s.Differ != "" && s.Record == nil {
		say("the founding is refused: %s; give all daemons the same cluster.founders and regions", s.Differ)
	}
	if st.Diverged {
		say("the record here differs from that of the leader, which replaces it; report this, it is a defect of rld")
	}
	if st.Unread != 0 {
		say("%s", Unread(st))
	} else if st.Abstains != "" {
		say("the voter of this daemon stopped: %s; restart the daemon, and report this", st.Abstains)
	}
	switch here := s.Record != nil && s.Record.Region(r.Region) != nil; {
	case s.Record == nil:
	case r.Witness && here:
		say("control.voter is only, and region %s has rights, so this daemon gets no vote; give it a region of its own, or remove control.voter", r.Region)
	case !r.Witness && !here:
		say("region %s is not in the cluster, so its daemons hold no rights; run rld region add %s, or stop them", r.Region, r.Region)
	}
	if st.Cut && st.Version.Index > 0 && !r.Witness {
		say("the daemons of region %s restarted while they are cut off: nobody confirms that it was not removed, so they hold no rights; "+
			"reach the leader, or if nobody removed the region run rld region resume", r.Region)
	}
	if s.Record != nil && st.Leader == (control.ID{}) {
		out = append(out, r.leaderless(s))
	}
	if st.Unreported > 0 {
		say("%d commands that a recovery dropped are not in the history yet", st.Unreported)
	}
	if r.Limits != nil {
		out = append(out, limitsProblems(s, new(r.Limits.State()))...)
	}
	return out
}

// peersWith returns the names of the peers that a condition holds for.
func peersWith(s *ControlState, holds func(*control.PeerStatus) bool) string {
	var names []string
	for i := range s.Status.Peers {
		if p := &s.Status.Peers[i]; holds(p) {
			names = append(names, p.Region+"/"+p.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names[:min(len(names), 5)], ", ")
}

// LiveVoters returns the number of live voters, and the names of the others as
// far as this daemon knows them. Learners do not count.
func (s *ControlState) LiveVoters() (live int, missing []string) {
	if s.Record == nil {
		return 0, nil
	}
	for _, v := range s.Record.Voters {
		if v.Learner {
			continue
		}
		p := s.peer(v.Daemon)
		switch {
		case v.Daemon == s.Status.ID, p != nil && p.Live:
			live++
		case p != nil:
			missing = append(missing, p.Region+"/"+p.Name)
		default:
			missing = append(missing, "one of region "+v.Region)
		}
	}
	return live, missing
}

// peer returns the peer with an id, nil for none. After a restart its former
// process may still be among the peers: the latest message counts.
func (s *ControlState) peer(id control.ID) *control.PeerStatus {
	var best *control.PeerStatus
	for i := range s.Status.Peers {
		if p := &s.Status.Peers[i]; p.Age >= 0 && p.Sender.ID == id && (best == nil || p.Age < best.Age) {
			best = p
		}
	}
	return best
}

// Electing reports that there is no leader, and that a majority of the voters
// is live and can elect one: an election goes on.
func (s *ControlState) Electing() bool {
	live, missing := s.LiveVoters()
	return s.Status.Leader == control.ID{} && live > len(missing) && !s.Status.Unelectable
}

// leaderless describes a log without a leader, and names the voters that are
// missing.
func (r *Report) leaderless(s *ControlState) string {
	live, missing := s.LiveVoters()
	all := live + len(missing)
	if s.Electing() {
		return fmt.Sprintf("the control log has no leader, with %d of %d voters live: an election takes some seconds", live, all)
	}
	for _, p := range s.Status.Peers {
		if p.Live && p.Sender.Majority && p.Version.Recovery == s.Record.Version.Recovery {
			return fmt.Sprintf("this daemon hears %d of %d voters, and %s a majority: nothing is lost; let this daemon reach the others (%s), "+
				"by the network and the regions in the settings of all daemons", live, all, p.Name, strings.Join(missing, ", "))
		}
	}
	want := "want a majority"
	if s.Status.Unelectable {
		want = "and cannot elect a leader without one that is lost, since they have not received that it was removed"
	}
	return fmt.Sprintf("the control log has no leader: %d of %d voters are live, %s; start the others (%s), "+
		"or if they are lost for good run rld cluster recover at one daemon", live, all, want, strings.Join(missing, ", "))
}

// Checks returns the lines of /readyz?verbose.
func (r *Report) Checks() []api.Check {
	serving := api.Check{Name: "serving", State: api.CheckOK, Text: "it answers calls"}
	if r.Witness {
		serving.Text = "it answers no calls: control.voter is only"
	}
	if err := r.Ready(); err != nil {
		serving.State, serving.Text = api.CheckFailed, err.Error()
	}
	if r.Control == nil {
		return []api.Check{serving}
	}
	s := r.Control.State()
	cluster := api.Check{Name: "cluster", State: api.CheckOK}
	record := api.Check{Name: "record", State: api.CheckOK}
	switch {
	case s.ForeignToAll():
		cluster.State, cluster.Text = api.CheckFailed, "all peers belong to another cluster"
	case s.Record == nil:
		cluster.State, cluster.Text = api.CheckWaiting, r.waiting(&s, r.reachedRegions(&s))
	default:
		cluster.Text = fmt.Sprintf("cluster %v has begun", s.Record.Cluster.ID)
	}
	switch {
	case s.Fault != "":
		record.State, record.Text = api.CheckWaiting, s.Fault
	case s.Status.Unread != 0:
		record.State, record.Text = api.CheckFailed, Unread(&s.Status)
	case s.Record == nil:
		record.State, record.Text = api.CheckWaiting, "there is none before the cluster has begun"
	case s.Status.Diverged:
		record.State, record.Text = api.CheckFailed, "it differs from that of the leader"
	default:
		record.Text = fmt.Sprintf("version %v, format %d, hash %s", s.Status.Version, s.Record.Format, s.Status.Hash)
	}
	checks := []api.Check{serving, cluster, record, rulesCheck(r, &s)}
	if r.Rights != nil {
		checks = append(checks, rightsCheck(r.Rights))
	}
	return checks
}

// rightsCheck describes the rights of the daemon.
func rightsCheck(x Rights) api.Check {
	out := api.Check{Name: "rights", State: api.CheckOK, Text: "it holds rights"}
	if s := x.Status(); !s.Holds {
		out.State, out.Text = api.CheckWaiting, "it holds none: "+x.WhyNot(s.Reason)
	}
	return out
}

// ForeignToAll reports whether all peers belong to another cluster.
func (s *ControlState) ForeignToAll() bool {
	return len(s.Status.Peers) > 0 && !slices.ContainsFunc(s.Status.Peers, func(p control.PeerStatus) bool { return p.Foreign == 0 })
}

// ControlStats returns the current metrics of the control log. See
// telemetry.Options.
func (r *Report) ControlStats() telemetry.ControlStats {
	s := r.Control.State()
	v := &s.Status.Version
	return telemetry.ControlStats{
		Begun: s.Record != nil, Index: v.Index, Recovery: v.Recovery.Number, Format: clusterFormat(&s).Record,
		LeaderKnown: s.Status.Leader != (control.ID{}), Votes: s.Status.Votes, Leads: s.Status.Leads,
		Open: s.Fault == "" && s.Status.Failing == "", Events: s.Events, Limits: limitsStats(r, &s),
	}
}
