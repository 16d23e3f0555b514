package node

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota/keytable"
)

// resize changes the bound on the keys of a node.
func resize(n *Node, room int) {
	n.keys.shares = keytable.NewShares(room, 0)
	n.keys.recount(n.rules.set)
}

// A sweep that checks nothing, because nothing can have expired, never leaves
// an entry that has, also if entries have moved: two passes drop all of them,
// and nothing else.
func TestSweepDropsWhatExpired(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, now := keys{live: keytable.New(nil), shares: keytable.NewShares(1<<20, 0), shards: 1}, int64(1)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				k := crdt.Key(rapid.Uint64Range(0, 200).Draw(t, "key"))
				e := s.live.Find(k)
				if e == nil {
					e = s.insert(k)
				}
				s.keep(e, now+rapid.Int64Range(1, 50).Draw(t, "for"))
			case 1:
				s.sweep(now, int32(rapid.IntRange(1, 8).Draw(t, "budget")))
			case 2:
				now += rapid.Int64Range(0, 40).Draw(t, "later")
			case 3:
				s.settle()
			}
		}
		left := 0
		for i := range s.live.Used() {
			if e := s.live.At(i); e.Expires() > now {
				left++
			}
		}
		for range 2 {
			s.sweep(now, s.live.Used())
		}
		if s.live.Len() != left || s.shares.Len() != left {
			t.Fatalf("%d keys are left at %d, %d have not expired", s.live.Len(), now, left)
		}
	})
}
