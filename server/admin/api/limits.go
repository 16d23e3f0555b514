package api

import "time"

// LimitsAnswer is the answer of /v1/limits: the limits of the control log, as
// the daemon that answers knows them.
type LimitsAnswer struct {
	// At and Alone are as in MembersAnswer. A daemon alone has its limits from
	// files, and all below is empty.
	At    time.Time `json:"at"`
	Alone bool      `json:"alone"`
	// Begun reports that the cluster has begun.
	Begun bool `json:"begun"`
	// Rules is the version of the rules that were applied last, "" for none.
	Rules string `json:"rules_version"`
	// InUse is the version of the record whose limits decide the calls of this
	// daemon, "" for none.
	InUse string `json:"in_use_version"`
	// Pending is the version of the latest change that is not in force, "" for
	// none. Waits names the regions and daemons that have not acknowledged it,
	// empty if this daemon does not know them yet.
	Pending string   `json:"pending_version"`
	Waits   []string `json:"waits_for"`
	// Fault is why this daemon cannot use the limits of the log, "" if it does.
	// If its log is not open, it keeps those that it has read from its disk. If
	// it could read none, it has the limits of its files, and Begun is false.
	// FilesFault is why its files are invalid, "" if they are valid.
	Fault      string `json:"fault"`
	FilesFault string `json:"files_fault"`
	// Domains are those of the log and of the files of this daemon, by name.
	Domains []LimitsDomain `json:"domains"`
	// Overrides are those of rules and keys, the oldest first.
	Overrides []LimitsOverride `json:"overrides"`
}

// LimitsDomain is the source of the rules of a domain.
type LimitsDomain struct {
	Domain string `json:"domain"`
	// Source is "log" or "local": files. Agreed reports that all daemons have
	// the same rules: those that were applied, or adopted from files.
	Source string `json:"source"`
	Agreed bool   `json:"agreed"`
	// Overruled reports that the files of this daemon have other rules than the
	// agreed ones, and do not count: adopted rules only become lower by them.
	Overruled bool `json:"overruled"`
}

// LimitsOverride is an override of a rule or a key.
type LimitsOverride struct {
	// Version is that of its entry, "" for an emergency override that is none
	// yet.
	Version string `json:"version"`
	Domain  string `json:"domain"`
	Rule    string `json:"rule"`
	// Key is the hash of a key, "" for a rule.
	Key string `json:"key"`
	// Setting is what it sets: "requests=500 mode=shadow", "block" or "reset".
	Setting string        `json:"setting"`
	State   OverrideState `json:"state"`
	// From is when it begins, and Until its end, null if it is not known yet,
	// and for a reset.
	From   *time.Time `json:"from"`
	Until  *time.Time `json:"until"`
	Author string     `json:"author"`
	Reason string     `json:"reason"`
	// Emergency reports that it was set without a majority.
	Emergency bool `json:"emergency"`
}

// OverrideState is the state of an override.
type OverrideState string

// The states.
const (
	// OverridePending: what it lowers acts, and the rest waits for regions.
	OverridePending OverrideState = "pending"
	OverrideInForce OverrideState = "in_force"
	// OverrideLater: it begins later.
	OverrideLater OverrideState = "later"
	// OverrideEnding: it was unset or replaced, and ends with its window.
	OverrideEnding OverrideState = "ending"
)

// LimitsHistoryAnswer is the answer of /v1/limits/history: the versions of the
// rules, the oldest first.
type LimitsHistoryAnswer struct {
	At       time.Time       `json:"at"`
	Alone    bool            `json:"alone"`
	Versions []LimitsVersion `json:"versions"`
}

// LimitsVersion is a version of the rules.
type LimitsVersion struct {
	Version string `json:"version"`
	// Files is the hash of the files. Kept reports that they are kept: the
	// version can be rolled back to.
	Files string `json:"files_hash"`
	Kept  bool   `json:"kept"`
	// InForce is when it came into force, null if it did not, or if that is
	// long ago.
	InForce *time.Time `json:"in_force"`
	// At, Author, Reason and Text are those of the command, zero and "" if it
	// is not kept.
	At     *time.Time `json:"at"`
	Author string     `json:"author"`
	Reason string     `json:"reason"`
	Text   string     `json:"text"`
}

// LimitsCommandName is the name of a command about limits.
type LimitsCommandName string

// The commands.
const (
	ApplyRules    LimitsCommandName = "apply"
	RollBackRules LimitsCommandName = "rollback"
	AdoptRules    LimitsCommandName = "adopt"
	SetOverride   LimitsCommandName = "set"
	UnsetOverride LimitsCommandName = "unset"
	BlockKey      LimitsCommandName = "block"
	UnblockKey    LimitsCommandName = "unblock"
	ResetKey      LimitsCommandName = "reset"
)

// LimitsCommands returns all commands about limits.
func LimitsCommands() []LimitsCommandName {
	return []LimitsCommandName{ApplyRules, RollBackRules, AdoptRules, SetOverride, UnsetOverride, BlockKey, UnblockKey, ResetKey}
}

// LimitsRequest is the body of a command about limits.
type LimitsRequest struct {
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
	// IfVersion is the version that the command replaces, "" for any: of the
	// rules ("0" for none), or of the override of a rule or a key.
	IfVersion string `json:"if_version,omitempty"`

	// Files are those of ApplyRules.
	Files []LimitsFile `json:"files,omitempty"`
	// AdoptRules has no files: it adopts those of the daemon that receives it.

	// Version is that of RollBackRules.
	Version string `json:"version,omitempty"`

	// Domain and Rule are those of SetOverride and UnsetOverride: the path of a
	// rule, or the name of its limit. An empty Domain is any that has the rule.
	Domain string `json:"domain,omitempty"`
	Rule   string `json:"rule,omitempty"`
	// Key is that of BlockKey, UnblockKey and ResetKey, 16 hexadecimal digits.
	Key string `json:"key,omitempty"`
	// Requests, OverageBudget and Mode ("shadow" or "enforce") are the values
	// of SetOverride; one of them at least.
	Requests      *uint32  `json:"requests,omitempty"`
	OverageBudget *float64 `json:"overage_budget_ratio,omitempty"`
	Mode          string   `json:"mode,omitempty"`
	// From is when an override begins, null for now, and ForSeconds its length.
	From       *time.Time `json:"from,omitempty"`
	ForSeconds float64    `json:"for_seconds,omitempty"`
}

// LimitsFile is one file of limits.
type LimitsFile struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// LimitsCommandAnswer is the answer to a command about limits, and of
// /v1/limits/command for one that is done.
type LimitsCommandAnswer struct {
	At     time.Time `json:"at"`
	ID     string    `json:"id"`
	DryRun bool      `json:"dry_run"`
	// Done reports that the command is done, at Version. Without it, and
	// without DryRun, the result is not known yet: repeat it under the ID.
	Done    bool   `json:"done"`
	Version string `json:"version"`
	// Unchanged reports that there was nothing to do.
	Unchanged bool `json:"unchanged"`
	// Text describes what it does.
	Text string `json:"text"`
	// Emergency reports that no majority was there, and that it acts as an
	// emergency override, which becomes an entry later.
	Emergency bool `json:"emergency"`
	// Pending reports that not all regions have acknowledged it: Waits names
	// them, and their daemons. Then only what it lowers acts.
	Pending bool     `json:"pending"`
	Waits   []string `json:"waits_for"`
	// InForce is from when it is in force, each rule with its next window, null
	// if that is not known. Until is the end of an override.
	InForce *time.Time `json:"in_force"`
	Until   *time.Time `json:"until"`
	// Differences are the rules that ApplyRules, RollBackRules or AdoptRules
	// changes, at most MaxDifferences, with DryRun. Changed is their number.
	Differences []LimitsDifference `json:"differences"`
	Changed     int                `json:"changed_rules"`
}

// MaxDifferences bounds the rules of an answer.
const MaxDifferences = 1_000

// LimitsDifference is a rule that two sets of rules differ in.
type LimitsDifference struct {
	Domain string `json:"domain"`
	Rule   string `json:"rule"`
	// Before and After are its limits as text, "" without the rule.
	Before string `json:"before"`
	After  string `json:"after"`
	// Lower: a value becomes smaller, which acts at once. Higher waits for all
	// regions; so does Moved, another way to count, or another place of rights.
	Lower  bool `json:"lower"`
	Higher bool `json:"higher"`
	Moved  bool `json:"moved"`
}
