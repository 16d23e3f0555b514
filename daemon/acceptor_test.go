package daemon

import (
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/georld/rld/disk/simdisk"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/journal"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
)

// TestLostJournalEndsVote lets the disk fail after each number of calls of a
// compaction. One that fails is counted. After one that may have replaced the
// journal, nothing can be stored, and the acceptor does not vote.
func TestLostJournalEndsVote(t *testing.T) {
	lost := 0
	for calls := range 20 {
		mount := simdisk.New(rand.New(rand.NewPCG(1, 1))).Mount()
		n := newAcceptorLoop(slog.New(slog.DiscardHandler))
		err := n.open(quorum.Config{Region: "eu", Name: "eu-0"}, func() replica.Storage {
			return replica.Storage{
				Folder: mount, Owner: journal.Owner{Cluster: 1, Name: "eu/eu-0"}, Fence: 1, CompactBytes: 1,
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		n.loop.Follow(0, &route.Layout{Number: 1, Regions: []route.Region{{
			Name: "eu", Weight: 1, Replicas: []string{"eu-0"},
			Generations: route.Generations{{Voter: route.NameHash("eu-0"), Generation: 1}},
		}}}, nil)
		n.loop.Confirmed(true)
		now := hlc.New(1_767_225_600_000, 0)
		for r := n.loop.Turn(0, now); len(r.Store) > 0; r = n.loop.Stored(0, now, nil) {
			if err := n.store(r.Store); err != nil {
				t.Fatal(err)
			}
		}
		if !n.disk.ShouldCompact() {
			t.Fatal("there is nothing to compact")
		}
		mount.EndAfter(calls)
		n.compact()
		failed := n.counts.Rewrites == 0
		if failed != (n.counts.Failures == 1) {
			t.Errorf("%d calls: %d rewrites, %d failures", calls, n.counts.Rewrites, n.counts.Failures)
		}
		if votes := n.loop.Acceptor.Status().Voting; !votes {
			lost++
		}
		if !failed {
			break
		}
	}
	if lost != 1 {
		t.Errorf("%d compactions end the vote, want that which replaced the journal and did not sync its name", lost)
	}
}
