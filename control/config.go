package control

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// MaxFounders bounds the founders of a cluster.
const MaxFounders = 5

// Config configures a Node. A duration of 0 is its default.
type Config struct {
	// Name and Region are those of the daemon.
	Name, Region string
	// Format is the newest format of records that the daemon reads, default
	// Format. FormatAfter is how long all daemons that are seen must have read
	// the next format before the leader raises that of the cluster, default 24
	// hours.
	Format      int
	FormatAfter time.Duration
	// Durable daemons store what Ready returns, and may vote.
	Durable bool
	// Witness daemons are durable, and vote for regions that are not theirs:
	// their own region is not in the record, so it has no rights.
	Witness bool
	// Founders are the names of the durable daemons that found the cluster, the
	// same in all settings.
	Founders []string
	// Heartbeat is the time between two messages of a leader to each voter,
	// default 200 ms. A voter that has all entries and has answered gets one in
	// six times as long. A voter without them for 12 to 20 times as long starts
	// an election, so the longest round trip between voters must be shorter.
	Heartbeat time.Duration
	// Compare is the time between two comparisons of versions with a neighbor,
	// default 1 s. Daemons whose state has not changed for some time compare
	// less often, see rests.
	Compare time.Duration
	// Retry is the time after which a command or a question without an answer
	// is sent again, default 1 s.
	Retry time.Duration
	// Stable is how long a learner must be up to date before it votes, default
	// 10 s.
	Stable time.Duration
	// ReplaceAfter is how long a voter may be away before another daemon of its
	// region takes its place, default 10 minutes.
	ReplaceAfter time.Duration
	// Language reads the rules. Without it changes of the rules are refused.
	Language Language
	// Holders: the daemon calls LimitsAgent.Holders. Before it does, it states
	// nothing for a region whose daemons hold rights.
	Holders bool
	// Layouts: the daemons have acceptors and call LayoutAgent.Report, so the
	// leader chooses strict voters.
	Layouts bool
	// InForce is the time from the acknowledgement of all regions until limits
	// are in force, so that daemons know that before a window starts, default
	// 1 s.
	InForce time.Duration
	// Horizon is added to InForce where rights move: in the meantime, all
	// daemons that do not know it lose those they hold. Default 10 s.
	Horizon time.Duration
	// VerifyEmergency returns an error for the signature of an emergency
	// override that does not count. If it is nil, all count.
	VerifyEmergency func(*Emergency) error
	// RemoveAfter is how long nothing must have been heard of a region, or a
	// daemon, that an operator states to be stopped, default 1 minute. The
	// statement counts as long.
	RemoveAfter time.Duration
	// DaemonHorizon is the horizon of the daemons of a region that begins, 0 to
	// a day, 0 is none.
	DaemonHorizon time.Duration
	// Longest is the longest window of the limits, default 24 hours, and
	// MaxOffset the greatest difference between two clocks, default 500 ms: a
	// dead id is dropped from the record when its last window is over.
	Longest, MaxOffset time.Duration
	// Entries is how many entries are kept in memory for those that lag,
	// default 1,024. Others receive the whole record.
	Entries int
}

// withDefaults returns the configuration with all defaults.
func (c Config) withDefaults() Config {
	c.Format, c.FormatAfter = cmp.Or(c.Format, Format), cmp.Or(c.FormatAfter, 24*time.Hour)
	c.Heartbeat = cmp.Or(c.Heartbeat, 200*time.Millisecond)
	c.Compare = cmp.Or(c.Compare, time.Second)
	c.Retry = cmp.Or(c.Retry, time.Second)
	c.Stable = cmp.Or(c.Stable, 10*time.Second)
	c.ReplaceAfter = cmp.Or(c.ReplaceAfter, 10*time.Minute)
	c.Longest = cmp.Or(c.Longest, 24*time.Hour)
	c.MaxOffset = cmp.Or(c.MaxOffset, 500*time.Millisecond)
	c.Entries = cmp.Or(c.Entries, 1_024)
	c.InForce = cmp.Or(c.InForce, time.Second)
	c.Horizon = cmp.Or(c.Horizon, 10*time.Second)
	c.RemoveAfter = cmp.Or(c.RemoveAfter, time.Minute)
	c.Founders = slices.Sorted(slices.Values(c.Founders))
	return c
}

// election is the least election timeout.
func (c *Config) election() time.Duration { return electionTicks * c.Heartbeat }

// Validate returns an error for a configuration that New refuses.
func (c Config) Validate() error {
	switch sorted := slices.Sorted(slices.Values(c.Founders)); {
	case c.Name == "" || c.Region == "":
		return fmt.Errorf("control: name %q in region %q: want both", c.Name, c.Region)
	case c.Witness && !c.Durable:
		return fmt.Errorf("control: witness %q without a disk: it could not vote", c.Name)
	case len(sorted) > MaxFounders:
		return fmt.Errorf("control: %d founders: want at most %d", len(sorted), MaxFounders)
	case len(slices.Compact(sorted)) < len(c.Founders):
		return fmt.Errorf("control: founders %v: want each once", c.Founders)
	case min(c.Heartbeat, c.Compare, c.Retry, c.Stable, c.ReplaceAfter, c.InForce, c.Horizon, c.Longest, c.MaxOffset, c.DaemonHorizon, c.RemoveAfter, c.FormatAfter) < 0 || c.Entries < 0 || c.Format < 0:
		return fmt.Errorf("control: a negative duration or number: want 0 for the default")
	}
	return nil
}

// founds reports whether a daemon of a name founds the cluster.
func (c *Config) founds(name string) bool {
	_, ok := slices.BinarySearch(c.Founders, name)
	return ok
}
