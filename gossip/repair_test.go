package gossip

import (
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
)

// A receiver lost a part of a cell of a long window. Its bucket detects that,
// and the cell is sent again. For a short window that is not worth the cost.
func TestDifferingBucketIsRepaired(t *testing.T) {
	for _, c := range []struct {
		name string
		span CellMeta
		want uint64
	}{
		{"hour", hour, 10},
		{"minute", minute, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(Config{DigestEvery: 2 * time.Second}, "a", "a")
			a1, a2 := r.of("a1"), r.of("a2")
			a1.Add(r.mono(a1), testKey(1), epoch, c.span, 10, roomy)
			r.run(time.Second)
			a2.state.set(a2.state.cells.at(a2.state.find(CellID{testKey(1), epoch, Daemon, a1.self.ID})), crdt.PN{P: 3})
			r.run(5 * time.Second)
			if got := r.total("a2", 1); got != c.want {
				t.Errorf("a2 knows %d, want %d", got, c.want)
			}
			if got := a1.count(BucketRepaired) > 0; got != (c.want == 10) {
				t.Errorf("a bucket was repaired: %v", got)
			}
			repaired := a1.count(BucketRepaired)
			r.run(10 * time.Second)
			if got := a1.count(BucketRepaired); got != repaired {
				t.Errorf("%d more repairs of what is whole", got-repaired)
			}
		})
	}
}

// A region that counts in two hops keeps no digests. When it has two daemons
// again, it has those of all its cells.
func TestDigestsWithoutTwoHops(t *testing.T) {
	r := newRig(Config{DigestEvery: time.Second}, "a", "a", "a")
	r.run(2 * time.Second)
	a1, a2 := r.of("a1"), r.of("a2")
	for i := range 50 {
		a1.Add(r.mono(a1), testKey(i), epoch, hour, 3, roomy)
	}
	r.run(3 * time.Second)
	if !a1.roles.two || len(a1.state.digestsOf(a1.self.ID)) > 0 {
		t.Fatal("digests are kept in two hops")
	}
	r.crash(r.of("a3"))
	r.meet()
	r.run(5 * time.Second)
	of := a1.state.digestsOf(a1.self.ID)
	if len(of) == 0 || len(a2.state.differing(a1.self.ID, of)) > 0 {
		t.Errorf("a1 has digests of %d buckets, of which %d differ at a2", len(of), len(a2.state.differing(a1.self.ID, of)))
	}
	if n := a1.count(BucketRepaired); n > 0 {
		t.Errorf("%d repairs without a difference", n)
	}
}

// What waits for the quiet interval is no difference.
func TestDigestsCoverWhatWaits(t *testing.T) {
	r := newRig(Config{DigestEvery: time.Second, Quiet: 10 * time.Second}, "a", "a")
	a1 := r.of("a1")
	for i := range 1_000 {
		a1.Add(r.mono(a1), testKey(i%7), epoch, hour, 1, roomy)
		r.run(10 * time.Millisecond)
	}
	if n := a1.count(BucketRepaired); n > 0 {
		t.Errorf("%d repairs without a difference", n)
	}
}

// The only daemon of a region restarts: its counts are known elsewhere, and
// count again.
func TestLostRegionIsReadBack(t *testing.T) {
	r := newRig(Config{}, "a", "b")
	r.run(time.Second)
	r.add("a1", 1, 10)
	r.run(time.Second)
	r.restart(r.of("a1"))
	r.run(time.Second)
	if got := r.total("a1", 1); got != 0 {
		t.Errorf("%d hits known before a second to hear of them had passed", got)
	}
	r.run(4 * time.Second)
	if got := r.total("a1", 1); got != 10 {
		t.Errorf("%d of 10 hits were read back", got)
	}
	gained := uint64(0)
	for _, c := range r.of("a1").Restored() {
		gained += c.Gain
	}
	if gained != 10 {
		t.Errorf("%d of 10 hits are told to who decides", gained)
	}
	r.add("a1", 1, 3)
	r.run(2 * time.Second)
	if got := r.total("b1", 1); got != 13 {
		t.Errorf("b knows %d of 13", got)
	}
}

// The only daemon of a region leaves, and its last sum arrives after its
// successor joined. The successor receives the sum when the former daemon is
// gone, also from a daemon that has it from a regional peer that left since.
func TestLastSumOfADaemonThatLeftIsReadBack(t *testing.T) {
	for _, regions := range [][]string{{"a", "b"}, {"a", "b", "b"}} {
		r := newRig(Config{}, regions...)
		r.run(3 * time.Second)
		former, k := r.of("a1"), r.keyOf("b1")
		successor := r.join("a")
		others := slices.DeleteFunc(r.peers(), func(p Peer) bool { return p == former.self })
		successor.Peers(r.mono(successor), others)
		for m := range r.up {
			if m.region == "b" {
				m.Peers(r.mono(m), r.peers())
			}
		}
		former.Leave(r.mono(former))
		r.add("a1", k, 10)
		r.run(3 * time.Second)
		if got := r.total("a2", k); got != 0 {
			t.Fatalf("%v: the successor knows %d hits of a daemon that is not gone", regions, got)
		}
		former.down = true
		if b1 := r.of("b1"); len(regions) > 2 { // b2 alone is left to return it
			r.lost = func(from, to *member) bool { return from.name == "b1" && to.name == "a2" }
			r.meet()
			r.run(time.Second)
			b1.Leave(r.mono(b1))
			r.run(3 * time.Second)
			b1.down = true
		}
		r.meet()
		r.run(6 * time.Second)
		if got := r.total("a2", k); got != 10 {
			t.Errorf("%v: the successor knows %d of 10 hits", regions, got)
		}
	}
}

// A region that counted on while its former counts were lost holds no less than
// it counted, and all regions agree on it, whatever was refunded before.
func TestLostRefundsAreReadBack(t *testing.T) {
	for _, after := range []int{1, 5, 9, 10, 11} {
		r := newRig(Config{}, "a", "b")
		r.run(time.Second)
		r.add("a1", 1, 10)
		r.refund("a1", 1, 9)
		r.run(time.Second)
		r.restart(r.of("a1"))
		r.add("a1", 1, after)
		r.run(10 * time.Second)
		a, b := r.total("a1", 1), r.total("b1", 1)
		if a != b || a < uint64(after) || a > uint64(after)+1 {
			t.Errorf("%d hits after the restart: a holds %d and b %d", after, a, b)
		}
	}
}

// A restarted region keeps its counts for as long as others do, which learned
// the carry from former incarnations. Otherwise they have counts that it lacks.
func TestRestartedRegionKeepsAsLong(t *testing.T) {
	r := newRig(Config{}, "a", "b")
	r.run(time.Second)
	long := minute
	long.Carry = minute.WindowLength
	a1 := r.of("a1")
	a1.Add(r.mono(a1), testKey(1), epoch, long, 1, roomy)
	r.run(time.Second)
	r.restart(a1)
	r.add("a1", 1, 1)
	r.run(time.Duration(minute.WindowLength)*time.Millisecond + DefaultGrace)
	for m := range r.up {
		if got := r.total(m.name, 1); got < 1 {
			t.Errorf("%s forgot, and others remember", m.name)
		}
	}
}

// Two daemons of a region that membership keeps apart are connected through a
// third one, which leaves again and again. Each counts the hits of the other as
// lost, and then receives the sum that contains them twice. Each time the hits
// count once more, never less than once and never doubled.
func TestRestoredAgainCountsOnceMore(t *testing.T) {
	r := newRig(Config{}, "a", "a", "a", "b")
	a1, a2, a3 := r.of("a1"), r.of("a2"), r.of("a3")
	apart := func() {
		for m := range r.up {
			var peers []Peer
			for p := range r.up {
				if !(m == a1 && p == a2 || m == a2 && p == a1) {
					peers = append(peers, p.self)
				}
			}
			m.Peers(r.mono(m), peers)
		}
	}
	apart()
	r.run(3 * time.Second)
	k := r.kept("a3", "a1")
	r.add("a2", k, 10)
	r.run(time.Second)
	const times = 3
	for n := range uint64(times) {
		a3.down = true
		apart()
		r.run(6 * time.Second)
		r.born++
		r.start(a3, r.born)
		apart()
		r.run(3 * time.Second)
		for _, name := range []string{"a1", "a2", "a3", "b1"} {
			if got := r.total(name, k); got < 10 || got > 10*(n+2) {
				t.Errorf("%s knows %d hits of 10 after %d times, want at most once more each time", name, got, n+1)
			}
		}
	}
	if got := r.total("b1", k); got != 10*(times+1) {
		t.Errorf("%d hits in the end: the schedule shows nothing", got)
	}
}

// TestRefusalsAreBounded: a receiver that can take nothing lists so many
// refusals and no more. It acknowledges the rest, too, and takes all of it with
// a resync when there is room.
func TestRefusalsAreBounded(t *testing.T) {
	const cells = MaxRefused + 500
	r := newRig(Config{FrameCells: 400, DigestEvery: 5 * time.Second}, "a", "a")
	a1, a2 := r.of("a1"), r.of("a2")
	r.run(time.Second)
	a2.state.max = 0
	for i := range cells {
		r.add("a1", i, 1)
	}
	for range 1_000 {
		r.run(step)
		if l := a2.links.find(a1.self.ID); len(l.refused) > MaxRefused {
			t.Fatalf("%d refusals of one peer", len(l.refused))
		}
		if len(a1.retries.list) > maxRetries {
			t.Fatalf("%d cells to be sent again", len(a1.retries.list))
		}
	}
	if a2.count(CellRefused) < MaxRefused {
		t.Fatalf("%d cells refused only", a2.count(CellRefused))
	}
	a2.state.max = 2 * cells
	r.run(10 * time.Second)
	for i := range cells {
		if r.total("a2", i) != 1 {
			t.Fatalf("cell %d was lost", i)
		}
	}
}

// TestFullKeyKeepsTheView: of a key that is full, a daemon refuses more cells
// of a peer than it can list. The view of the peer is fresh all the same, both
// acknowledge what else they count, and the cells of the key arrive when there
// is room.
func TestFullKeyKeepsTheView(t *testing.T) {
	const refused = 2*MaxRefused + 500
	r := newRig(Config{DigestEvery: 5 * time.Second}, "a", "a")
	r.run(2 * time.Second)
	a1, a2 := r.of("a1"), r.of("a2")
	short := CellMeta{Rule: 1, WindowLength: 1, Carry: 20_000}
	long := CellMeta{Rule: 1, WindowLength: 1, Carry: 120_000}
	for i := range maxCellsOfKey {
		a2.state.add(CellID{testKey(1), epoch - int64(i), Daemon, a2.self.ID}, short)
	}
	for i := range refused {
		a1.Add(r.mono(a1), testKey(1), epoch+int64(i), long, 1, roomy)
	}
	if !slices.Contains(slices.Collect(FullKeys(a2.Engine)), testKey(1)) {
		t.Fatal("there is no full key")
	}
	r.run(3 * time.Second)
	for n := range 10 {
		r.add("a1", 2, 1)
		r.run(3 * time.Second)
		of1, of2 := r.link(a1), r.link(a2)
		if of2.Age < 0 || of2.Age > 4*time.Second || of1.Silent || of2.Silent {
			t.Fatalf("%d: views are %v and %v old, silent %t and %t", n, of1.Age, of2.Age, of1.Silent, of2.Silent)
		}
		if got := r.total("a2", 2); got != uint64(n+1) {
			t.Fatalf("%d of %d hits of another key", got, n+1)
		}
	}
	if a2.count(CellRefused) < MaxRefused {
		t.Fatalf("%d cells refused only", a2.count(CellRefused))
	}
	r.run(30 * time.Second)
	known := 0
	for i := range refused {
		known += int(a2.Total(testKey(1), epoch+int64(i)))
	}
	if known != refused {
		t.Errorf("%d hits of %d arrived when there was room", known, refused)
	}
	if l := r.link(a1); l.Acked != l.Head {
		t.Errorf("acknowledged %d of %d", l.Acked, l.Head)
	}
}

// TestResyncOfEndedCells: when the resync of a peer is due, all its cells have
// ended. Then none is missing.
func TestResyncOfEndedCells(t *testing.T) {
	r := newRig(Config{DigestEvery: time.Minute, Grace: 5 * time.Second}, "a", "a")
	r.run(2 * time.Second)
	a1, a2 := r.of("a1"), r.of("a2")
	a2.state.max = 0
	for i := range MaxRefused + 100 {
		a1.Add(r.mono(a1), testKey(i), epoch, CellMeta{Rule: 1, WindowLength: 1, Carry: 10_000}, 1, roomy)
	}
	r.run(5 * time.Second)
	if a2.links.current(r.mono(a2)) {
		t.Error("no cell is missing, as the daemon knows")
	}
	r.run(2 * time.Minute)
	if n := len(a1.Cells(0, nil)); n > 0 || !a2.links.current(r.mono(a2)) {
		t.Errorf("%d cells, and %v: want none, and none missing", n, a2.links.current(r.mono(a2)))
	}
}

// TestLeavingWithRefusedCells: a daemon that leaves knows that a peer does not
// keep all of its cells, also those that the peer does not list.
func TestLeavingWithRefusedCells(t *testing.T) {
	r := newRig(Config{DigestEvery: 5 * time.Second}, "a", "a")
	r.run(2 * time.Second)
	a1, a2 := r.of("a1"), r.of("a2")
	a2.state.max = 0
	a1.Leave(r.mono(a1))
	for i := range MaxRefused + 100 {
		r.add("a1", i, 1)
	}
	r.run(20 * time.Second)
	if l := r.link(a1); l.Acked >= l.Head {
		t.Errorf("acknowledged %d of %d, of which none was kept", l.Acked, l.Head)
	}
}

// TestRefusalsAreListedOnce: a peer that gets no answers sends cells again and
// again that it should keep. Their refusals fill no list.
func TestRefusalsAreListedOnce(t *testing.T) {
	r := newRig(Config{}, "a", "a")
	a1, a2 := r.of("a1"), r.of("a2")
	r.run(time.Second)
	a2.state.max = 0
	r.lost = func(from, _ *member) bool { return from == a2 }
	r.add("a1", 0, 1)
	r.add("a1", 1, 1)
	r.run(30 * time.Second)
	if a2.count(CellRefused) < 4 {
		t.Fatal("no cell was sent again")
	}
	if l := a2.links.find(a1.self.ID); len(l.refused) != 2 {
		t.Errorf("%d refusals of 2 cells", len(l.refused))
	}
	a2.state.max, r.lost = 10, nil
	r.run(10 * time.Second)
	if l := a2.links.find(a1.self.ID); len(l.refused)+len(l.listed) > 0 || r.total("a2", 0) != 1 || r.total("a2", 1) != 1 {
		t.Errorf("%d refusals, %d and %d of 1 hit, when there is room", len(l.refused), r.total("a2", 0), r.total("a2", 1))
	}
}

// An engine never has more cells than its bound: it reports own hits beyond it
// as unknown to others.
func TestMaxCells(t *testing.T) {
	r := newRig(Config{MaxCells: 3}, "a")
	for i := range 3 {
		if !r.add("a1", i, 1) {
			t.Fatalf("no room for cell %d of 3", i)
		}
	}
	if r.add("a1", 3, 1) {
		t.Error("a fourth cell")
	}
	if !r.add("a1", 2, 1) || r.total("a1", 2) != 2 {
		t.Error("a cell that is there does not count on")
	}
	a1 := r.of("a1")
	r.run(time.Duration(minute.WindowLength)*time.Millisecond + DefaultGrace + time.Second)
	if !a1.Add(r.mono(a1), testKey(9), epoch+minute.WindowLength, minute, 1, roomy) {
		t.Error("no room after all labels were over")
	}
	if got := a1.state.byID.count; got != 1 {
		t.Errorf("%d cells, want 1", got)
	}
}

// TestRefusedAgainBeforeTheEcho: a cell that is refused again before the peer
// has echoed the list stays in the list until an echo of a later one.
func TestRefusedAgainBeforeTheEcho(t *testing.T) {
	l, first, second := new(link), CellID{Window: 1}, CellID{Window: 2}
	l.refuse(first, TooFarAhead)
	l.refuse(second, TooFarAhead)
	list(l.refused, 5)
	l.refuse(first, TooFarAhead)
	if !l.unlisted() {
		t.Error("the second refusal waits")
	}
	l.settleRefused(5)
	if len(l.refused) != 1 || l.refused[0].item.CellID != first {
		t.Fatalf("listed are %v", l.refused)
	}
	list(l.refused, 9)
	if l.settleRefused(9); len(l.refused) != 0 {
		t.Errorf("listed are %v", l.refused)
	}
}
