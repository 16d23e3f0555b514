package control

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/georld/rld/hlc"
	"github.com/georld/rld/quota/epoch"
)

// TestEpochBytes checks that the epochs of the largest clusters fit into an
// entry and into the record, and that a voter stores at most 1 MB for 1,000
// rules that the rebalancer moves in three regions.
func TestEpochBytes(t *testing.T) {
	for _, tc := range []struct{ regions, rules, disk int }{
		{3, 1_000, 1_000_000},
		{MaxRegions, 1_000, 2 * MaxRecordBytes},
		{MaxRegions, epoch.MaxAmounts / MaxRegions, 2 * MaxRecordBytes},
		{2, epoch.MaxRules, 2 * MaxRecordBytes},
	} {
		t.Run(fmt.Sprintf("%d regions, %d rules", tc.regions, tc.rules), func(t *testing.T) {
			r := fullRecord(t)
			setRegions(r, tc.regions)
			rng := rand.New(rand.NewPCG(5, 5))
			for i := range maxEpochs + 2 {
				e := movedEpoch(rng, r, tc.rules, int64(i))
				entry := r.entry(&Request{ID: Number(rng.Uint64()), Author: "rebalancer", Change: Change{Epoch: e}})
				data, err := json.Marshal(entry)
				if err != nil || len(data) > MaxEntryBytes {
					t.Fatalf("an entry of %d bytes, error %v: want at most %d", len(data), err, MaxEntryBytes)
				}
				if r, err = r.apply(Version{r.Version.Recovery, r.Version.Index + 1}, entry); err != nil {
					t.Fatal(err)
				}
			}
			size := len(pack(r.Encode()))
			snap := stored{Of: 1, Snapshot: &snapshot{Index: 1, Term: 1, Voters: []uint64{1}, Record: r.Encode()}}
			disk := len((&stored{Base: r.Encode()}).encode()) + len(snap.encode())
			t.Logf("%d epochs; the record has %d bytes as it is sent; a voter stores %d", len(r.Epochs), size, disk)
			if size > MaxRecordBytes || disk > tc.disk {
				t.Errorf("the record has %d bytes, and a voter stores %d: want at most %d and %d", size, disk, MaxRecordBytes, tc.disk)
			}
		})
	}
}

// setRegions gives a record a number of regions with equal weights.
func setRegions(r *Record, count int) {
	founders := r.Regions[0].Founders
	r.Regions = nil
	for i := range count {
		r.Regions = append(r.Regions, Region{
			Name: fmt.Sprintf("region-%02d", i), Weight: uint32(Whole*(i+1)/count - Whole*i/count), Founders: founders,
		})
	}
}

// movedEpoch returns an epoch of the regions of a record that divides each rule
// in a way of its own.
func movedEpoch(rng *rand.Rand, r *Record, rules int, at int64) *epoch.Epoch {
	e := &epoch.Epoch{ID: epoch.ID{Stamp: hlc.New(1_700_000_000_000+at, 0), Proposer: 1}}
	for _, g := range r.Regions {
		e.Members = append(e.Members, epoch.Member{ID: g.ID(), Amount: uint64(g.Weight)})
	}
	slices.SortFunc(e.Members, func(a, b epoch.Member) int { return cmp.Compare(a.ID, b.ID) })
	for i := range rules {
		row := epoch.RuleShares{Rule: math.MaxUint64 - uint64(rules-i), Shares: make([]uint32, len(e.Members))}
		for k := range row.Shares {
			row.Shares[k] = uint32(Whole/len(row.Shares)*9/10 + rng.IntN(Whole/len(row.Shares)/10))
		}
		e.Rules = append(e.Rules, row)
	}
	return e
}
