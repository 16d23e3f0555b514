// Package regions decides which regions a daemon takes part with, and which
// addresses of their daemons it may dial.
//
// A region is listed if it is in the settings of the daemon or in the record of
// the cluster. Counts, rights and leases are exchanged with listed regions
// alone. Any other region is a candidate: a few are let in, with a few daemons
// each, to get the record and be added to it. Their other messages are dropped.
package regions

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/georld/rld/internal/loglimit"
)

// Bounds of candidates.
const (
	// MaxCandidates bounds the unlisted regions, MaxOfCandidate the daemons of
	// each.
	MaxCandidates  = 4
	MaxOfCandidate = 16
	// ForgetAfter is how long a candidate is remembered that sends nothing.
	ForgetAfter = time.Minute
	// maxAddresses bounds the addresses that are remembered as not dialed.
	maxAddresses = 4_096
)

// logEvery is the time between two equal lines of the log.
const logEvery = time.Minute

// Claim is the kind of a claim that was not believed.
type Claim string

// The kinds of claims.
const (
	// Frames of a candidate that are not about the control log.
	CandidateFrame Claim = "candidate_frame"
	// Candidates beyond MaxCandidates.
	TooManyCandidates Claim = "too_many_candidates"
	// Daemons of a candidate beyond MaxOfCandidate.
	TooManyDaemons Claim = "too_many_daemons"
	// Addresses where no daemon of the region may be.
	Address Claim = "address"
)

// Claims returns all kinds.
func Claims() []Claim {
	return []Claim{CandidateFrame, TooManyCandidates, TooManyDaemons, Address}
}

// Table is the regions that a daemon knows. It is safe for concurrent use.
type Table struct {
	config  Config
	listed  atomic.Pointer[map[string]bool]
	refused map[Claim]*atomic.Uint64
	notices loglimit.Limiter

	mu         sync.Mutex
	candidates map[string]time.Time // when each sent something last
	addresses  map[string]bool      // that were not dialed, each counted once
}

// Config configures a Table.
type Config struct {
	// Own is the region of the daemon, Addr its own address for streams.
	Own, Addr string
	// Settings are the regions in the settings.
	Settings []string
	// Record returns the regions of the record and of its voters, nil without
	// a record. It is called at each handshake.
	Record func() []string
	// Networks are those where daemons of regions may be.
	Networks Networks
	Log      *slog.Logger
}

// New returns a table.
func New(c Config) *Table {
	t := &Table{config: c, candidates: map[string]time.Time{}, addresses: map[string]bool{}, refused: map[Claim]*atomic.Uint64{}}
	for _, claim := range Claims() {
		t.refused[claim] = new(atomic.Uint64)
	}
	t.Update()
	return t
}

// Update reads the record again.
func (t *Table) Update() {
	all := map[string]bool{t.config.Own: true}
	for _, name := range t.config.Settings {
		all[name] = true
	}
	for _, name := range t.config.Record() {
		all[name] = true
	}
	if was := t.listed.Load(); was == nil || !maps.Equal(*was, all) {
		t.listed.Store(&all)
	}
}

// Listed reports whether a region is in the settings or in the record.
func (t *Table) Listed(region string) bool { return (*t.listed.Load())[region] }

// Admit returns nil if a daemon of a region may have streams: the region is
// listed, or a candidate.
func (t *Table) Admit(region string) error {
	if t.Listed(region) {
		return nil
	}
	t.Update()
	if t.Listed(region) || t.Seen(region) {
		return nil
	}
	t.count(TooManyCandidates, region, "an unlisted region is refused: as many others wait to be added",
		"region", region, "want", MaxCandidates, "candidates", t.Candidates())
	return fmt.Errorf("region %q is neither in its settings nor in the record of the cluster, and %d others wait to be added: "+
		"add it to regions in the settings, or correct those of the others", region, MaxCandidates)
}

// Seen notes that a candidate sent something. It returns false if there are too
// many.
func (t *Table) Seen(region string) bool {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.candidates, func(name string, at time.Time) bool {
		return now.Sub(at) >= ForgetAfter || t.Listed(name)
	})
	if _, known := t.candidates[region]; !known && len(t.candidates) >= MaxCandidates {
		return false
	}
	t.candidates[region] = now
	return true
}

// Candidates returns the unlisted regions, by name.
func (t *Table) Candidates() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.candidates))
}

// DropFrame counts a frame of a candidate that is not about the control log.
func (t *Table) DropFrame(region, peer string) {
	t.count(CandidateFrame, region, "an unlisted region sends counts: they are dropped until it is added",
		"region", region, "peer", peer)
}

// DropDaemon counts a daemon of a candidate beyond MaxOfCandidate.
func (t *Table) DropDaemon(region, peer string) {
	t.count(TooManyDaemons, region, "an unlisted region has too many daemons: they are ignored until it is added",
		"region", region, "peer", peer, "want", MaxOfCandidate)
}

// Refused returns how often claims were not believed, by kind.
func (t *Table) Refused() map[string]uint64 {
	all := map[string]uint64{}
	for claim, n := range t.refused {
		all[string(claim)] = n.Load()
	}
	return all
}

// count counts a claim and logs it once a minute for each region.
func (t *Table) count(c Claim, region, text string, args ...any) {
	t.refused[c].Add(1)
	if t.notices.Due(string(c)+" "+region, time.Now(), logEvery) {
		t.config.Log.Warn(text, args...)
	}
}
