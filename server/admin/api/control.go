package api

import "time"

// ClusterAnswer is the answer of /v1/cluster.
type ClusterAnswer struct {
	// At and Alone are as in MembersAnswer. Cluster is null for a daemon alone.
	At      time.Time     `json:"at"`
	Alone   bool          `json:"alone"`
	Cluster *ClusterState `json:"cluster"`
}

// ClusterState is the state of the control log, as the daemon that answers
// knows it.
type ClusterState struct {
	// Begun reports that the cluster has begun, BegunAt when. Waiting is what
	// it waits for, "" once it has begun.
	Begun   bool       `json:"begun"`
	BegunAt *time.Time `json:"begun_at"`
	// RightsFrom is the start of the first window in which the cluster admits
	// hits by rights and of strict keys, null for all windows.
	RightsFrom *time.Time `json:"rights_from"`
	Waiting    string     `json:"waiting"`
	// ID is that of the cluster. Version and Hash are those of the record, of
	// the recovery with the number Recovery. All are "" or 0 before the
	// beginning.
	ID       string `json:"id"`
	Version  string `json:"version"`
	Index    uint64 `json:"index"`
	Recovery uint32 `json:"recovery"`
	Hash     string `json:"hash"`
	// Format is the format of the record.
	Format ClusterFormat `json:"format"`
	// Leader is the leader of the log, null if the daemon knows none.
	Leader *ClusterDaemon `json:"leader"`
	// Daemon is the one that answers, Voters are those of the record.
	Daemon ClusterDaemon   `json:"daemon"`
	Voters []ClusterDaemon `json:"voters"`
	// Peers are the other live daemons, by region and name.
	Peers []ClusterDaemon `json:"peers"`
	// Regions are those of the record, or those of the settings before the
	// beginning.
	Regions []ClusterRegion `json:"regions"`
	// Revoked are the daemons whose certificates do not count any more, as
	// region/name.
	Revoked []string `json:"revoked"`
	// Founders are those of the settings.
	Founders []string `json:"founders"`
	// Problems are sentences with the remedy, the most important first.
	Problems []string `json:"problems"`
}

// ClusterDaemon is a daemon in the control log.
type ClusterDaemon struct {
	// Region and Name are "" for a voter whose daemon is not live.
	Region string `json:"region"`
	Name   string `json:"name"`
	ID     string `json:"id"`
	Self   bool   `json:"self"`
	// Durable daemons have a state.dir.
	Durable bool `json:"durable"`
	// VoterOnly daemons have control.voter: only. They decide nothing.
	VoterOnly bool              `json:"voter_only"`
	Role      ClusterDaemonRole `json:"role"`
	State     string            `json:"state"`
	// Version is that of its record, "" without one. AgeSeconds is the age of
	// its latest message, null without one and for the daemon that answers.
	Version    string   `json:"version"`
	AgeSeconds *float64 `json:"age_seconds"`
}

// ClusterFormat is the format of the record, and of the one that may follow.
type ClusterFormat struct {
	// Record is that of the record, 0 without one. Reads is the newest one that
	// the daemon that answers reads, and Unread that of the record of the
	// cluster if it cannot read that, else 0.
	Record int `json:"record"`
	Reads  int `json:"reads"`
	Unread int `json:"unread"`
	// Next is a later format that all daemons read, 0 for none, which the
	// record gets at RaisedAt unless it is held, null for none. Held is the
	// command that holds it, null for none.
	Next     int             `json:"next"`
	RaisedAt *time.Time      `json:"raised_at"`
	Held     *ClusterCommand `json:"held"`
	// Behind are the live daemons that read no later format than that of the
	// record, as region/name. It is empty while no daemon does.
	Behind []string `json:"behind"`
}

// ClusterDaemonRole is the part of a daemon in the control log.
type ClusterDaemonRole string

// The roles.
const (
	RoleLeader   ClusterDaemonRole = "leader"
	RoleVoter    ClusterDaemonRole = "voter"
	RoleLearner  ClusterDaemonRole = "learner" // will vote
	RoleFollower ClusterDaemonRole = "follower"
)

// ClusterRegion is a region of the cluster.
type ClusterRegion struct {
	Name string `json:"name"`
	// Weight is its part of limits without weights of their own, as a fraction.
	Weight   float64 `json:"weight_ratio"`
	Draining bool    `json:"draining"`
	// Reached reports that a durable daemon of the region has sent a message.
	Reached bool `json:"reached"`
	// Generation is the version of the entry that added the region, and
	// Founders counts the daemons that held its rights then.
	Generation string `json:"generation"`
	Founders   int    `json:"founders"`
}

// ChangeRequest is the body of a command about a region, a daemon or the
// format.
type ChangeRequest struct {
	// ID names the command, 16 hexadecimal digits: repeated under it, the
	// command is done once. Empty draws one.
	ID     string `json:"id,omitempty"`
	Author string `json:"author,omitempty"`
	Reason string `json:"reason,omitempty"`
	// DryRun requests a check that changes nothing.
	DryRun bool `json:"dry_run,omitempty"`
	// WaitSeconds is how long its author waits for the result, 0 for as long as
	// the daemon does.
	WaitSeconds float64 `json:"wait_seconds,omitempty"`
	// Name is the region, or the name or the id of the daemon, "" for commands
	// about the format.
	Name string `json:"name"`
	// Weight is that of AddRegion and WeighRegion, between 0 and 1.
	Weight float64 `json:"weight_ratio,omitempty"`
	// Stopped is the statement of RemoveRegion and RemoveDaemon that nothing
	// of it runs, nor will run again with its state, and of AddRegion that no
	// daemon decides by a generation that was removed without it. Nothing
	// checks it.
	Stopped bool `json:"stopped,omitempty"`
	// Voters are the strict voters of RecoverStrict that Stopped states.
	Voters []string `json:"voters,omitempty"`
	// Force allows a change of regions while one that must acknowledge it
	// cannot be reached.
	Force bool `json:"force,omitempty"`
}

// ChangeAnswer is the answer to a ChangeRequest, and of /v1/cluster/command for
// one that is done.
type ChangeAnswer struct {
	At     time.Time `json:"at"`
	ID     string    `json:"id"`
	DryRun bool      `json:"dry_run"`
	// Done reports that the command is done, at Version. Without it, and
	// without DryRun, the result is not known yet: repeat it under the ID.
	Done    bool   `json:"done"`
	Version string `json:"version"`
	// Text describes what it does.
	Text string `json:"text"`
	// Leaderless describes a control log without a leader, with DryRun: the
	// command would wait, or be refused. It is "" if there is one.
	Leaderless string `json:"leaderless"`
	// Pending reports that the shares of the regions are not settled yet, or
	// that lost strict voters are not replaced: Waits names the regions that
	// cannot be reached, and those whose voters are. Until then, what each
	// region may admit is the least of both.
	Pending bool     `json:"pending"`
	Waits   []string `json:"waits_for"`
}

// HistoryAnswer is the answer of /v1/cluster/history: the latest commands, the
// oldest first.
type HistoryAnswer struct {
	At       time.Time        `json:"at"`
	Alone    bool             `json:"alone"`
	Begun    bool             `json:"begun"`
	Commands []ClusterCommand `json:"commands"`
	// Dropped are the commands that a recovery dropped.
	Dropped []ClusterCommand `json:"dropped"`
}

// ClusterCommand is a command that changed the record.
type ClusterCommand struct {
	ID      string    `json:"id"`
	Version string    `json:"version"`
	At      time.Time `json:"at"`
	Author  string    `json:"author"`
	Reason  string    `json:"reason"`
	Text    string    `json:"text"`
}

// ClusterCommandName is the name of a command about the control log.
type ClusterCommandName string

// The commands.
const (
	InitCluster    ClusterCommandName = "init"
	RecoverCluster ClusterCommandName = "recover"
	ResumeRegion   ClusterCommandName = "region-resume"
	// The commands that take a ChangeRequest.
	AddRegion    ClusterCommandName = "region-add"
	WeighRegion  ClusterCommandName = "region-weight"
	DrainRegion  ClusterCommandName = "region-drain"
	RemoveRegion ClusterCommandName = "region-remove"
	RemoveDaemon ClusterCommandName = "daemon-remove"
	// RevokeDaemon ends the trust in the certificates of a daemon, and
	// UnrevokeDaemon begins it again. Both take its name as region/name.
	RevokeDaemon   ClusterCommandName = "daemon-revoke"
	UnrevokeDaemon ClusterCommandName = "daemon-unrevoke"
	HoldFormat     ClusterCommandName = "format-hold"
	UnholdFormat   ClusterCommandName = "format-unhold"
	// RecoverStrict gives up the strict voters of a region.
	RecoverStrict ClusterCommandName = "strict-recover"
)

// ClusterCommands returns all commands about the control log.
func ClusterCommands() []ClusterCommandName {
	return []ClusterCommandName{
		InitCluster, RecoverCluster, ResumeRegion, AddRegion, WeighRegion, DrainRegion, RemoveRegion, RemoveDaemon, RevokeDaemon, UnrevokeDaemon, HoldFormat, UnholdFormat, RecoverStrict,
	}
}

// InitRequest is the body of InitCluster.
type InitRequest struct {
	// Without are regions of the settings that need no live daemon.
	Without []string `json:"without,omitempty"`
	// Regions are those of a backup, empty for those of the settings with equal
	// weights. They must be the ones of the settings without Without.
	Regions []BackupRegion `json:"regions,omitempty"`
	// NothingRanBefore is the statement that no daemon of a former cluster ran
	// in any window that runs: limits have rights in these, too.
	NothingRanBefore bool `json:"nothing_ran_before,omitempty"`
	// DryRun requests a check that changes nothing.
	DryRun bool `json:"dry_run,omitempty"`
}

// InitAnswer is the answer to InitCluster.
type InitAnswer struct {
	At     time.Time `json:"at"`
	DryRun bool      `json:"dry_run"`
	// NothingRanBefore is that of the request.
	NothingRanBefore bool `json:"nothing_ran_before"`
	// Missing is what has to be there first: nothing was done.
	Missing []string `json:"missing"`
	// UnderWay reports that the founders were asked to agree.
	UnderWay bool         `json:"under_way"`
	Cluster  ClusterState `json:"cluster"`
}

// RecoverRequest is the body of RecoverCluster.
type RecoverRequest struct {
	// Daemon is the name of the daemon that answers. Without it the answer is
	// that of a dry run.
	Daemon string `json:"daemon,omitempty"`
	Author string `json:"author,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Behind allows a recovery although a live daemon has a later record.
	// Stopped is the statement that no other voter runs. Yield gives the
	// recovery of the daemon up, to the other one of the same number.
	Behind  bool `json:"behind,omitempty"`
	Stopped bool `json:"stopped,omitempty"`
	Yield   bool `json:"yield,omitempty"`
	DryRun  bool `json:"dry_run,omitempty"`
}

// RecoverAnswer is the answer to RecoverCluster.
type RecoverAnswer struct {
	At     time.Time `json:"at"`
	DryRun bool      `json:"dry_run"`
	// Recovery is the number of the recovery that begins.
	Recovery uint32       `json:"recovery"`
	Cluster  ClusterState `json:"cluster"`
}

// ResumeRequest is the body of ResumeRegion: the statement that the region of
// the daemon that answers was not removed.
type ResumeRequest struct {
	// Region is the name of the region. Without it the answer is that of a dry
	// run.
	Region string `json:"region,omitempty"`
	Author string `json:"author,omitempty"`
	Reason string `json:"reason,omitempty"`
	DryRun bool   `json:"dry_run,omitempty"`
}

// ResumeAnswer is the answer to ResumeRegion.
type ResumeAnswer struct {
	At      time.Time    `json:"at"`
	DryRun  bool         `json:"dry_run"`
	Cluster ClusterState `json:"cluster"`
}

// Check is one line of /readyz?verbose.
type Check struct {
	Name  string
	State CheckState
	Text  string
}

// CheckState is the result of a Check. A daemon with a failed one is not ready.
type CheckState string

// The states.
const (
	CheckOK      CheckState = "ok"
	CheckWaiting CheckState = "waiting"
	CheckFailed  CheckState = "failed"
)
