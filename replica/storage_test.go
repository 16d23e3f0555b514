package replica

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/disk/simdisk"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/journal"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
	"github.com/georld/rld/wire"
)

// storageRig is the disk of us-0, one of three strict voters.
type storageRig struct {
	t    *testing.T
	disk *simdisk.Disk
	Storage
}

func newStorage(t *testing.T) *storageRig {
	x := &storageRig{t: t, disk: simdisk.New(rand.New(rand.NewPCG(1, 1)))}
	x.Storage = Storage{
		Folder: x.disk.Mount(), Owner: journal.Owner{Cluster: 7, Name: "us/us-0"}, Fence: firstStore,
	}
	return x
}

// firstStore is the store number of the first process.
const firstStore = 70_000

// end ends the process. A later one without files has another store number.
func (x *storageRig) end() {
	x.disk.PowerLoss(0)
	x.Fence++
	x.Folder = x.disk.Mount()
}

// acceptor opens the acceptor, with its peers.
func (x *storageRig) acceptor() (*AcceptorLoop, *AcceptorLog, Recovery) {
	x.t.Helper()
	loop, log, found, err := x.OpenAcceptor(quorum.Config{Region: "us", Name: "us-0"})
	if err != nil {
		x.t.Fatal(err)
	}
	_, live := acceptorOf(x.t, quorum.Start{})
	loop.Follow(0, threeVoters(firstStore), nil)
	loop.Peers(0, 1, live)
	return loop, log, found
}

// threeVoters returns a layout of three voters, of which us-0 has a store
// number.
func threeVoters(store uint64) *route.Layout {
	return layoutOf(1, store, "us-0", "us-1", "us-2")
}

func layoutOf(number, store uint64, voters ...string) *route.Layout {
	return &route.Layout{Number: number, Regions: []route.Region{{
		Name: "us", Weight: 1, Replicas: voters, Generations: route.Generations(nil).With(route.Generation{Voter: route.NameHash("us-0"), Generation: store}),
	}}}
}

// store stores all that a loop has to store.
func (x *storageRig) store(l *AcceptorLoop, log *AcceptorLog) {
	x.t.Helper()
	for r := l.Turn(0, now); len(r.Store) > 0; r = l.Stored(0, now, nil) {
		if err := log.Append(r.Store, l); err != nil {
			x.t.Fatal(err)
		}
	}
}

// TestRecoveryOfAcceptor lets a voter vote only if it has all that it stored
// since its layout was made.
func TestRecoveryOfAcceptor(t *testing.T) {
	for _, tc := range []struct {
		name  string
		harm  func(x *storageRig)
		found Found
		votes bool
	}{
		{"intact", func(*storageRig) {}, Intact, true},
		{"lost", func(x *storageRig) { x.disk.Remove(JournalFile) }, Missing, false},
		{"damaged", func(x *storageRig) { x.disk.FlipBit(JournalFile) }, Damaged, false},
		{"moved aside", func(x *storageRig) {
			x.disk.FlipBit(JournalFile)
			_, log, _ := x.acceptor()
			if err := log.Close(); err != nil {
				x.t.Fatal(err)
			}
			x.end()
			x.disk.Remove(JournalFile)
		}, Missing, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := newStorage(t)
			l, log, found := x.acceptor()
			if x.store(l, log); found.Found != Missing || !l.Acceptor.Status().Voting {
				t.Fatalf("a first start: %+v", found)
			}
			if err := l.Receive(0, now, acceptOf(5)); err != nil {
				t.Fatal(err)
			}
			x.store(l, log)
			x.end()
			tc.harm(x)
			x.end()
			l, _, found = x.acceptor()
			l.Turn(5*time.Second, now) // no other voter answers
			status := l.Acceptor.Status()
			if found.Found != tc.found || status.Voting != tc.votes || tc.votes != (status.Keys == 1) {
				t.Errorf("found %v, votes %v, %d keys; want %v, %v", found.Found, status.Voting, status.Keys, tc.found, tc.votes)
			}
		})
	}
}

// TestFullJournal appends to a journal that has room for a few records, and
// compacts it: no record is lost.
func TestFullJournal(t *testing.T) {
	x := newStorage(t)
	x.MaxBytes = 1_500
	l, log, _ := x.acceptor()
	keep := func(amount uint64) {
		t.Helper()
		m := acceptOf(amount)
		m.Accepts[0].Key = crdt.Key(5<<10 + amount%3)
		if err := l.Receive(0, now, m); err != nil {
			t.Fatal(err)
		}
		x.store(l, log)
	}
	for amount := range uint64(40) {
		keep(amount + 1)
	}
	if log.Rewrites() == 0 {
		t.Fatal("40 records fit the journal: it was never full")
	}
	check := func(what string) {
		t.Helper()
		want := l.Snapshot()
		x.end()
		l, log, _ = x.acceptor()
		got := l.Snapshot()
		if !slices.EqualFunc(got, want, slices.Equal) || len(got) < 5 {
			t.Errorf("%s: %d records, want %d equal ones", what, len(got), len(want))
		}
	}
	check("full")
	keep(60)
	if lost, err := log.Compact(l); lost || err != nil {
		t.Fatal(lost, err)
	}
	check("compacted")
}

// TestRewriteBesideALayoutChange changes the layout of a voter whose journal is
// rewritten before the change is stored: the rewritten journal holds the
// change, and can be read.
func TestRewriteBesideALayoutChange(t *testing.T) {
	for _, tc := range []struct {
		name    string
		rewrite func(t *testing.T, x *storageRig, l *AcceptorLoop, log *AcceptorLog)
	}{
		{"by a full journal", func(_ *testing.T, x *storageRig, l *AcceptorLoop, log *AcceptorLog) {
			x.store(l, log)
		}},
		{"by a compaction", func(t *testing.T, x *storageRig, l *AcceptorLoop, log *AcceptorLog) {
			if lost, err := log.Compact(l); lost || err != nil {
				t.Fatal(lost, err)
			}
			if err := l.Receive(0, now, acceptOf(7)); err != nil {
				t.Fatal(err)
			}
			x.store(l, log)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := newStorage(t)
			x.MaxBytes = 900
			first := layoutOf(1, firstStore, "us-0")
			open := func() (*AcceptorLoop, *AcceptorLog, Recovery) {
				l, log, found, err := x.OpenAcceptor(quorum.Config{Region: "us", Name: "us-0"})
				if err != nil {
					t.Fatal(err)
				}
				_, live := acceptorOf(t, quorum.Start{})
				l.Follow(0, first, nil)
				l.Peers(0, 1, live)
				return l, log, found
			}
			l, log, _ := open()
			for amount := uint64(1); log.Rewrites() == 0 && log.Size() < 780; amount++ {
				if err := l.Receive(0, now, acceptOf(amount)); err != nil {
					t.Fatal(err)
				}
				x.store(l, log)
			}
			next := layoutOf(2, firstStore, "us-0")
			next.Formers = []route.Former{first.Former()}
			l.Follow(0, first, next)
			l.Acceptor.Tick(0, now.Millis())
			before := log.Rewrites()
			tc.rewrite(t, x, l, log)
			if log.Rewrites() == before {
				t.Fatal("nothing rewrote the journal")
			}
			x.end()
			l, _, found := open()
			if n := l.Acceptor.Layout().Number; found.Found != Intact || n != 2 {
				t.Errorf("found %v with layout %d, want an intact journal with layout 2: %v", found.Found, n, found.Damage)
			}
		})
	}
}

// aloneConfig is that of the only daemon of the only region.
func aloneConfig() agent.Config {
	return agent.Config{
		Region: "us", Name: "us-0", Self: 1, Generation: 2, Genesis: []agent.Region{{Name: "us", ID: 2}}, Founders: []uint64{1},
	}
}

// TestRecoveryOfRights finds no record before the first one is stored.
func TestRecoveryOfRights(t *testing.T) {
	x := newStorage(t)
	record, found, err := x.OpenRights()
	if err != nil || found.Found != Missing || record != nil {
		t.Fatalf("%+v, %+v, %v", record, found, err)
	}
	a, err := agent.New(aloneConfig(), agent.Start{Found: true})
	if err != nil {
		t.Fatal(err)
	}
	a.Peers(0, 1, []gossip.Peer{{ID: 1, Name: "us-0", Region: "us", Ready: true}})
	l := &RightsLoop{Agent: a}
	if err := x.StoreRights(l.Turn(0, now, false).Store); err != nil {
		t.Fatal(err)
	}
	x.end()
	if record, found, err = x.OpenRights(); err != nil || found.Found != Intact || record == nil {
		t.Errorf("%+v, %+v, %v", record, found, err)
	}
}

// TestForeignSender rejects frames that a peer sends in the name of another.
func TestForeignSender(t *testing.T) {
	rights, err := wire.EncodeRights(nil, &agent.Message{From: 7, To: 1, Region: "us", Name: "us-1"})
	if err != nil {
		t.Fatal(err)
	}
	log, err := wire.EncodeControl(nil, &control.Message{From: 7, To: 1, Ask: 9})
	if err != nil {
		t.Fatal(err)
	}
	for reason, frame := range map[string][]byte{"foreign_sender": rights, "checksum": log} {
		var bad *FrameError
		if in, err := Decode(new(wire.Decoder), Origin{Incarnation: 8, To: 1}, frame); !errors.As(err, &bad) || bad.Reason != reason || in.Rights != nil || in.Control != nil {
			t.Errorf("%+v, %v, want reason %s", in, err, reason)
		}
	}
	if in, err := Decode(new(wire.Decoder), Origin{Incarnation: 7, To: 1}, log); err != nil || in.Control == nil || in.Control.Ask != 9 {
		t.Errorf("own frame: %+v, %v", in, err)
	}
	var bad *FrameError
	log[len(log)-1] ^= 1
	if _, err := Decode(new(wire.Decoder), Origin{Incarnation: 7, To: 1}, log); !errors.As(err, &bad) || bad.Reason != "checksum" {
		t.Errorf("%v, want reason checksum", err)
	}
}

// TestIdentity rejects messages of the control log under another id, or of
// another run, than the stream proved.
func TestIdentity(t *testing.T) {
	from := Origin{Incarnation: 7, To: 1, Daemon: control.ID{1}, Run: control.Run{2}}
	for _, tt := range []struct {
		sender control.Sender
		ok     bool
	}{
		{control.Sender{ID: control.ID{1}, Run: control.Run{2}}, true},
		{control.Sender{ID: control.ID{9}, Run: control.Run{2}}, false},
		{control.Sender{ID: control.ID{1}, Run: control.Run{9}}, false},
		{control.Sender{}, false},
	} {
		frame, err := wire.EncodeControl(nil, &control.Message{From: 7, To: 1, Statement: control.Statement{Sender: tt.sender}})
		if err != nil {
			t.Fatal(err)
		}
		in, err := Decode(new(wire.Decoder), from, frame)
		var bad *FrameError
		if tt.ok && (err != nil || in.Control == nil) || !tt.ok && (!errors.As(err, &bad) || bad.Reason != "checksum" || in.Control != nil) {
			t.Errorf("sender %v of run %v: %+v, %v", tt.sender.ID, tt.sender.Run, in, err)
		}
	}
}

// TestCircuitsInOrder lists two incarnations of a daemon in their order.
func TestCircuitsInOrder(t *testing.T) {
	p := New(Config{Self: 1, Region: "us", Shards: 1})
	var live []gossip.Peer
	for _, id := range []crdt.Incarnation{5, 3, 4} {
		live = append(live, gossip.Peer{ID: id, Name: "us-1", Region: "us"})
	}
	p.Reach.Peers(0, live)
	var got []crdt.Incarnation
	for _, c := range p.Reach.Circuits(0) {
		got = append(got, c.Owner)
	}
	if !slices.Equal(got, []crdt.Incarnation{3, 4, 5}) {
		t.Errorf("%v", got)
	}
}

// TestOpenOnFailingDisk opens the acceptor on disks that are full or fail. It
// does not vote, and the stored state stays: a later attempt finds it.
func TestOpenOnFailingDisk(t *testing.T) {
	broken := errors.New("input/output error")
	for name, faults := range map[string]simdisk.Faults{
		"full": {Full: true}, "writes fail": {Write: broken}, "syncs fail": {Sync: broken},
	} {
		for state, prepare := range map[string]func(x *storageRig){
			"new":     func(*storageRig) {},
			"stored":  func(x *storageRig) { x.keepOne() },
			"damaged": func(x *storageRig) { x.keepOne(); x.disk.FlipBit(JournalFile) },
		} {
			t.Run(name+", "+state, func(t *testing.T) {
				x := newStorage(t)
				prepare(x)
				x.end()
				x.disk.Faults = faults
				for range 2 {
					l, log, found := x.acceptor()
					status := l.Acceptor.Status()
					if found.Fault == nil || status.Voting || status.Layout.Number != 1 || len(l.Turn(0, now).Store) > 0 {
						t.Fatalf("opened: fault %v, voting %v, layout %d", found.Fault, status.Voting, status.Layout.Number)
					}
					if state == "stored" && status.Keys != 1 {
						t.Errorf("%d keys, want the one that can be read", status.Keys)
					}
					if err := log.Close(); err != nil {
						t.Fatal(err)
					}
				}
				x.disk.Faults = simdisk.Faults{}
				l, _, found := x.acceptor()
				l.Turn(5*time.Second, now)
				status := l.Acceptor.Status()
				if want := map[string]Found{"new": Missing, "stored": Intact, "damaged": Damaged}[state]; found.Fault != nil || found.Found != want || status.Voting != (want == Intact) {
					t.Errorf("after that: found %v, fault %v, voting %v", found.Found, found.Fault, status.Voting)
				}
			})
		}
	}
}

// keepOne stores the record of one key.
func (x *storageRig) keepOne() {
	x.t.Helper()
	l, log, _ := x.acceptor()
	x.store(l, log)
	if err := l.Receive(0, now, acceptOf(5)); err != nil {
		x.t.Fatal(err)
	}
	x.store(l, log)
}

// TestJournalOfAnotherVersion leaves a journal that this version cannot read
// where it is: its watermarks must not be forgotten.
func TestJournalOfAnotherVersion(t *testing.T) {
	x := newStorage(t)
	record := []byte{wire.StrictVersion - 1, 0}
	file, err := journal.Begin(x.journal(), slices.Values([][]byte{record}))
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, _, err = x.OpenAcceptor(quorum.Config{Region: "us", Name: "us-0"})
	if _, ok := errors.AsType[*journal.ForeignError](err); !ok || !strings.Contains(err.Error(), "of another version of rld") {
		t.Fatalf("opened: %v", err)
	}
	if data, err := x.Folder.ReadFile(JournalFile); err != nil || !bytes.Contains(data, record) {
		t.Errorf("the journal is gone: %v", err)
	}
}
