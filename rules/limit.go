package rules

import (
	"fmt"
	"strings"

	"github.com/georld/rld/internal/enum"
)

// Algorithm is the way in which a limit counts. Package quota reads counts by
// it; no other package depends on it.
type Algorithm uint8

// The five algorithms. The zero value is the default of the limits language.
const (
	FixedWindow Algorithm = iota
	SlidingWindow
	SlidingLog
	TokenBucket
	LeakyBucket
)

var algorithmNames = []string{"fixed_window", "sliding_window", "sliding_log", "token_bucket", "leaky_bucket"}

// String returns the name the limits language uses.
func (a Algorithm) String() string { return enum.Name(a, algorithmNames...) }

// Bucket reports whether the algorithm has a burst: token_bucket, leaky_bucket.
func (a Algorithm) Bucket() bool { return a == TokenBucket || a == LeakyBucket }

// Algorithms returns the names of the limits language, in the order of the
// constants.
func Algorithms() []string { return algorithmNames }

// Unit is the unit of time of a limit. Windows start at multiples of it since
// the Unix epoch: a week starts on a Thursday, a month has 30 days and a year
// 365, as upstream has it.
type Unit uint8

// The units. NoUnit, the zero value, means that none was given.
const (
	NoUnit Unit = iota
	Second
	Minute
	Hour
	Day
	Week
	Month
	Year
)

var (
	unitNames = []string{"", "second", "minute", "hour", "day", "week", "month", "year"}
	// unitMillis has a place for each value of a Unit, so that reading it needs
	// no check.
	unitMillis = [256]int64{0, 1_000, 60_000, 3_600_000, 86_400_000, 604_800_000, 2_592_000_000, 31_536_000_000}
)

// String returns the name in lower case, "" for NoUnit.
func (u Unit) String() string { return enum.Name(u, unitNames...) }

// Millis returns the length of the unit in milliseconds, 0 for NoUnit and for
// a value that is no unit.
func (u Unit) Millis() int64 { return unitMillis[u] }

// Units returns the names of the limits language, shortest first.
func Units() []string { return unitNames[1:] }

// Scope is the set of daemons that count a limit together.
type Scope uint8

// The scopes; Global is the default.
const (
	Global Scope = iota
	Region
	NodeLocal
)

// Consistency is the guarantee that the operator chose.
type Consistency uint8

// The consistencies; Eventual is the default.
const (
	Eventual Consistency = iota
	Partition
	Strict
)

var consistencyNames = []string{"eventual", "partition", "strict"}

// String returns the name the limits language uses.
func (c Consistency) String() string { return enum.Name(c, consistencyNames...) }

// Placement is where the rights of a limit are.
type Placement uint8

// The placements. Auto chooses by size.
const (
	Auto Placement = iota
	Spread
	PerRegion
	Owner
)

var placementNames = []string{"auto", "spread", "region", "owner"}

// String returns the name the limits language uses.
func (p Placement) String() string { return enum.Name(p, placementNames...) }

// Placements returns the names of the limits language, in the order of the
// constants.
func Placements() []string { return placementNames }

// OnFailure is the answer of a limit that needs an owner or rights, while the
// daemon can reach no owner, or has no rights of its own.
type OnFailure uint8

// The answers; Deny is the default.
const (
	Deny OnFailure = iota
	// Allow admits all hits without an owner, and without rights those that the
	// known counts leave room for.
	Allow
	// Share is for strict limits: the regional reserve decides.
	Share
)

// PPM is a share in parts per million, the integer form of a percentage.
type PPM uint32

// Percent is one percent.
const Percent PPM = 10_000

// String returns the share as a percentage without needless zeros: "7%",
// "0.05%".
func (p PPM) String() string {
	s := fmt.Sprintf("%d.%04d", uint32(p/Percent), uint32(p%Percent))
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") + "%"
}

// Ratio returns the share as a fraction of one.
func (p PPM) Ratio() float64 { return float64(p) / float64(Whole) }

// Limit is one limit with every default filled in. It is immutable once it is
// part of a Set, and safe for concurrent use.
type Limit struct {
	Algorithm  Algorithm
	Unit       Unit
	Multiplier uint32 // >= 1: the window is Multiplier units long
	Requests   uint32 // hits per window; 0 denies everything
	Burst      uint32 // buckets only: tokens of a full bucket, or length of the queue
	Unlimited  bool   // admits everything, counts nothing; only Name and Replaces are used

	Name     string   // returned to the caller; need not be unique
	Replaces []string // names of limits that this one drops if both match in one call

	Shadow       bool // counts, never denies
	Quota        bool // denies only if all quotas of the call are over
	CarryDebt    bool // the excess is paid back in the next window
	ChargeDenied bool // denied hits are charged too

	Scope       Scope
	Consistency Consistency
	Placement   Placement // as written
	// Placed is the resolved Placement: Auto chosen by size, Owner for a strict
	// limit, PerRegion instead for one with regional scope, and Spread if one
	// daemon would have none to lease to. It is Auto for a limit without rights
	// that is not strict, and if the reader of the limit did not know the size
	// of the cluster. It is no part of a set's hash.
	Placed    Placement
	Budget    PPM  // overage budget in parts per million of the limit
	HasBudget bool // false: estimate only
	// Weights sets the regions' shares in the rights, sorted by region. They
	// sum to Whole. Nil: the shares follow demand.
	Weights      []Weight
	OnFailure    OnFailure
	ReserveShare PPM // OnFailure == Share only
	// Home is the home region of the limit's keys, "" to choose one per key.
	Home string
}

// Window returns the length of the window in milliseconds: unit x multiplier.
func (l *Limit) Window() int64 { return l.Unit.Millis() * int64(l.Multiplier) }

// Grid returns a fingerprint of the layout of a limit's counters: the kind of
// fold and the length of the window. Limits on one grid share a key's counters.
// So a change of number, name, budget or mode keeps them, and a change of
// window or kind starts empty. Windows with carry_debt are a kind of their own:
// a limit without it, an override for example, would lose the debt. Grid is
// never 0.
func (l *Limit) Grid() uint64 {
	shape := uint64(0) // fixed and sliding windows fold the same cells
	switch {
	case l.Algorithm == SlidingLog:
		shape = 2
	case l.Algorithm.Bucket():
		shape = 3
	case l.CarryDebt:
		shape = 1
	}
	return uint64(l.Window())<<2 | shape
}
