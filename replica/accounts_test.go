package replica

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/disk"
	"github.com/georld/rld/disk/simdisk"
	"github.com/georld/rld/journal"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/quota/epoch"
)

func leftover() *Leftover {
	const now = int64(1_767_225_600_000)
	return &Leftover{
		Self: 3, Generation: 5, Until: now + 7, Hash: 9,
		Accounts: node.Accounts{
			AsOf: now,
			Rules: []node.KnownRule{
				{Name: 1, After: math.MinInt64}, {Name: math.MaxUint64, Weighted: true, After: now - 5},
			},
			Keys: []node.KeyAccount{
				{Key: crdt.Key(1<<32 | 2), Window: now - 3_600_000, Ends: now + 1, Used: 4, Back: 5, PrevUsed: 6, PrevBack: 7},
				{Key: math.MaxUint64, Ends: math.MaxInt64, Used: math.MaxUint64},
			},
		},
	}
}

func accountsStorage() (*Storage, *simdisk.Disk) {
	d := simdisk.New(rand.New(rand.NewPCG(1, 2)))
	return &Storage{Folder: d.Mount(), Owner: journal.Owner{Cluster: 1, Name: "us/us-0"}}, d
}

func TestAccountsAreTakenOnce(t *testing.T) {
	s, _ := accountsStorage()
	if l, err := s.TakeAccounts(); l != nil || err != nil {
		t.Fatalf("without a file: %v, %v", l, err)
	}
	if err := s.StoreAccounts(leftover()); err != nil {
		t.Fatal(err)
	}
	if l, err := s.TakeAccounts(); err != nil || !reflect.DeepEqual(l, leftover()) {
		t.Errorf("got %+v, %v: want %+v", l, err, leftover())
	}
	if l, err := s.TakeAccounts(); l != nil || err != nil {
		t.Errorf("a second time: %v, %v", l, err)
	}
}

// A file with any byte changed or cut off is refused and removed. That of
// another daemon is refused and stays, for that one.
func TestAccountsOfAnotherFile(t *testing.T) {
	s, _ := accountsStorage()
	whole := encodeAccounts(s, leftover())
	for i := range whole {
		changed := append([]byte(nil), whole...)
		changed[i] ^= 1
		if _, err := decodeAccounts(s, changed); err == nil {
			t.Errorf("byte %d changed: not refused", i)
		}
		if _, err := decodeAccounts(s, whole[:i]); err == nil {
			t.Errorf("cut to %d bytes: not refused", i)
		}
	}
	if err := s.StoreAccounts(leftover()); err != nil {
		t.Fatal(err)
	}
	s.Owner.Name = "us/us-1"
	l, err := s.TakeAccounts()
	if _, ok := errors.AsType[*journal.ForeignError](err); !ok {
		t.Errorf("of another daemon: %v, %v", l, err)
	}
	s.Owner.Name = "us/us-0"
	if l, err := s.TakeAccounts(); err != nil || !reflect.DeepEqual(l, leftover()) {
		t.Errorf("after another daemon refused it: %v, %v", l, err)
	}
	if err := disk.ReplaceFile(s.Folder, AccountsFile, whole[:len(whole)-1]); err != nil {
		t.Fatal(err)
	}
	if l, err := s.TakeAccounts(); err == nil {
		t.Errorf("damaged: %v", l)
	}
	if _, err := s.Folder.ReadFile(AccountsFile); err == nil {
		t.Error("the damaged file is still there")
	}
}

// Accounts belong to the record of the run that stopped.
func TestAccountsOfARecord(t *testing.T) {
	l := leftover()
	record := func() *agent.Stored {
		r := &agent.Stored{
			Local:  epoch.Record{Owner: l.Self, Stopped: true, Bounds: epoch.Bounds{Window: l.Until}},
			Region: epoch.Record{Owner: l.Generation, Stopped: true, Bounds: epoch.Bounds{Window: l.Until - 3}},
		}
		return r
	}
	if !l.Of(record()) {
		t.Error("of its record: refused")
	}
	if l.Of(nil) {
		t.Error("without a record: accepted")
	}
	for name, change := range map[string]func(*agent.Stored){
		"a run that did not stop":    func(r *agent.Stored) { r.Local.Stopped = false },
		"another daemon":             func(r *agent.Stored) { r.Local.Owner++ },
		"another generation":         func(r *agent.Stored) { r.Region.Owner++ },
		"another stop of the daemon": func(r *agent.Stored) { r.Local.Bounds.Window++ },
	} {
		r := record()
		if change(r); l.Of(r) {
			t.Errorf("%s: accepted", name)
		}
	}
}
