package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/replica"
)

// A record counts when it is on the disk: a crash before that leaves the one
// before, or none.
func TestCrashBeforeASync(t *testing.T) {
	cfg := hard(t, fixed)
	w := newWorld(cfg)
	w.auditors = watching(TestAuditors()(w))
	w.prepare()
	d := w.daemons[0]
	for w.writes.len() == 0 || w.writes.items[0].daemon != d.Index {
		w.runUntil(w.now + time.Millisecond)
	}
	record := func() string {
		data, _ := d.disk.Mount().ReadFile(replica.RightsFile)
		return string(data)
	}
	if record() != "" {
		t.Fatal("the disk holds something before anything was synced")
	}
	w.runUntil(w.now + maxSync + ackSync + time.Millisecond)
	first := record()
	if first == "" {
		t.Fatal("nothing was stored")
	}
	for { // until the next one is under way
		w.runUntil(w.now + time.Millisecond)
		under := false
		for _, s := range w.writes.items {
			under = under || s.daemon == d.Index && !s.done && s.ack == ackSync
		}
		if under {
			break
		}
		if w.now > cfg.Duration {
			t.Fatal("no further record")
		}
	}
	d.downs++
	w.crash(d)
	after := record() // the one before, or the one that was under way
	w.runUntil(w.now + maxSync + time.Millisecond)
	if record() != after {
		t.Error("a process that is gone stored something")
	}
	d.downs--
	if err := w.start(d); err != nil {
		t.Fatal(err)
	}
	w.runUntil(cfg.Duration)
	for _, a := range w.auditors.all {
		if r := a.Found; r.Violations > 0 {
			t.Errorf("%+v", r)
		}
	}
	if d.agent == nil || record() == after {
		t.Error("the new process stored nothing")
	}
}

// allotmentSums are the greatest allotments of each process in each window.
type allotmentSums map[ruleWindow]*allotmentSum

// ruleWindow names a window of a rule.
type ruleWindow struct {
	rule   uint64
	window int64
}

type allotmentSum struct {
	amounts map[uint64]uint64 // by process
	total   uint64
}

func (s *allotmentSum) sum() uint64 {
	n := uint64(0)
	for _, amount := range s.amounts {
		n += amount
	}
	return n
}

// beside adds the sums to all auditors.
func (a allotmentSums) beside(w *World) []*Auditor {
	return append(TestAuditors()(w), &Auditor{Allotted: func(o *Allotted) {
		k := ruleWindow{o.Rule, o.Window}
		if a[k] == nil {
			a[k] = &allotmentSum{amounts: make(map[uint64]uint64)}
		}
		a[k].total = max(a[k].total, o.Total)
		a[k].amounts[o.Holder] = max(a[k].amounts[o.Holder], o.Amount)
	}})
}

// After each way to lose a process its daemon holds rights again in the end,
// and shares add up to all there are.
func TestSharesComeBack(t *testing.T) {
	needsMinutes(t)
	for name, f := range map[string]Fault{
		"restart": {Kind: Crash},
		"amnesia": {Kind: Amnesia},
		"rename":  {Kind: Crash, Rename: true},
	} {
		cfg := hard(t, fixed)
		cfg.Duration = 60 * time.Second
		cfg.Rights.DaemonHorizon = 5 * time.Second
		f.At, f.For, f.From = 10*time.Second, time.Second, []string{"us-1"}
		cfg.Faults = []Fault{f}
		held := make(allotmentSums)
		r, err := Run(cfg, Options{Auditors: held.beside})
		if err != nil {
			t.Fatal(err)
		}
		if r.Code() != ExitFine {
			t.Errorf("%s: %+v", name, violated(r))
		}
		window := (epoch + int64(55*time.Second)) / int64(time.Millisecond)
		sum, total, up := uint64(0), uint64(0), 0
		for k, row := range held {
			if k.window == window {
				sum, total, up = row.sum(), row.total, len(row.amounts)
			}
		}
		if total != 220 || sum < 220-6 || up != 6 {
			t.Errorf("%s: %d daemons hold %d of %d in the last label", name, up, sum, total)
		}
		if n := r.Seen["rights_settled"]; n == 0 && name != "restart" {
			t.Errorf("%s: no epoch was settled", name)
		}
	}
}

// A region that is cut off keeps its share for as long as it is.
func TestACutOffRegionKeepsItsShare(t *testing.T) {
	needsMinutes(t)
	cfg := hard(t, fixed)
	cfg.Duration = 90 * time.Second
	cfg.Faults = []Fault{{Kind: Cut, At: 8 * time.Second, For: 80 * time.Second, From: []string{"eu"}}}
	held := make(allotmentSums)
	r, err := Run(cfg, Options{Auditors: held.beside})
	if err != nil {
		t.Fatal(err)
	}
	if r.Code() != ExitFine {
		t.Errorf("%+v", violated(r))
	}
	for window := 20 * time.Second; window < 80*time.Second; window += 5 * time.Second {
		for k, row := range held {
			if k.window == (epoch+int64(window))/int64(time.Millisecond) && row.sum() < 220-6 {
				t.Errorf("at %v %d of 220 are held", window, row.sum())
			}
		}
	}
}

// A dead daemon's share is back from the first window that starts a horizon
// after its crash, where at most a third of the region's daemons are dead.
func TestADeadDaemonsShareComesBack(t *testing.T) {
	needsMinutes(t)
	const crash = 10 * time.Second
	for _, horizon := range []time.Duration{10 * time.Second, 30 * time.Second} {
		cfg := hard(t, fixed)
		cfg.Duration, cfg.Rights.DaemonHorizon = 70*time.Second, horizon
		cfg.Faults = []Fault{{Kind: Crash, At: crash, From: []string{"eu-1"}}}
		held := make(allotmentSums)
		r, err := Run(cfg, Options{Auditors: held.beside})
		if err != nil {
			t.Fatal(err)
		}
		if r.Code() != ExitFine {
			t.Errorf("horizon %v: %+v", horizon, violated(r))
		}
		for window := crash + horizon; window < cfg.Duration-time.Second; window += 5 * time.Second {
			k := ruleWindow{cfg.Rules.Rules()[0].Shared(), (epoch + int64(window)) / int64(time.Millisecond)}
			row := held[k]
			if row == nil || row.sum() < 220-6 || len(row.amounts) != 5 {
				t.Errorf("horizon %v: of the label at %v is held: %+v", horizon, window, row)
			}
		}
	}
}

// TestRightsAreValidated checks the configuration of rights before a run.
func TestRightsAreValidated(t *testing.T) {
	for want, change := range map[string]func(*Rights){
		"period of 1s":           func(r *Rights) { r.Period = time.Second },
		"weights of 1 regions":   func(r *Rights) { r.Weights = []uint64{1} },
		"ahead of the clock":     func(r *Rights) { r.Ahead = time.Hour },
		"interval of 1ns: want ": func(r *Rights) { r.Interval = 1 },
	} {
		cfg := hard(t, fixed)
		change(&cfg.Rights)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
}

// After a clean stop of all daemons the next processes use what is left of a
// window, and after a crash nobody may use it. The seed tears no file.
func TestAccountsGoOn(t *testing.T) {
	admitted := func(kind FaultKind) uint64 {
		cfg := hard(t, "unit: hour, requests_per_unit: 2000, consistency: partition")
		cfg.Seed, cfg.Workloads[0].Keys, cfg.Workloads[0].Rate = 4, 1, 150
		cfg.Faults = []Fault{{Kind: kind, At: 5 * time.Second, For: 3 * time.Second}}
		r, err := Run(cfg, Options{Auditors: TestAuditors(rightsAuditors...)})
		if err != nil {
			t.Fatal(err)
		}
		if r.Code() != ExitFine {
			t.Errorf("%+v", violated(r))
		}
		return r.Admitted
	}
	clean, crash := admitted(Leave), admitted(Crash)
	t.Logf("%d and %d admitted of 2,000", clean, crash)
	if clean < 1_900 || clean > 2_000 || crash > 1_000 {
		t.Errorf("%d admitted of 2,000 with a clean stop, %d with a crash", clean, crash)
	}
}

// All diskless daemons of a region end at once, and others of other names
// start. The shares are back from the first window that starts a horizon and a
// few seconds after their end.
func TestDisklessSharesComeBack(t *testing.T) {
	needsMinutes(t)
	const crash = 30 * time.Second
	cfg := hard(t, fixed)
	cfg.Regions = []Region{{"eu", 1}, {"us", 6}}
	cfg.Control, cfg.Diskless = &control.Config{}, []string{"us-3", "us-4", "us-5"}
	cfg.Duration, cfg.Rights.DaemonHorizon = 90*time.Second, 10*time.Second
	cfg.Faults = []Fault{{Kind: Crash, At: crash, For: time.Second, From: cfg.Diskless, Rename: true}}
	held := make(allotmentSums)
	r, err := Run(cfg, Options{Auditors: held.beside})
	if err != nil {
		t.Fatal(err)
	}
	if r.Code() != ExitFine {
		t.Errorf("%+v", violated(r))
	}
	for window := crash - 10*time.Second; window < cfg.Duration-time.Second; window += 5 * time.Second {
		row := held[ruleWindow{cfg.Rules.Rules()[0].Shared(), (epoch + int64(window)) / int64(time.Millisecond)}]
		if row == nil || row.total != 220 || row.sum() > 220 {
			t.Errorf("of the window at %v is held: %+v", window, row)
			continue
		}
		switch whole := row.sum() >= 220-7 && len(row.amounts) == 7; {
		case window < crash && !whole, window >= crash+cfg.Rights.DaemonHorizon+5*time.Second && !whole:
			t.Errorf("of the window at %v %d of 220 is held by %d daemons, want 7", window, row.sum(), len(row.amounts))
		case window > crash && window < crash+cfg.Rights.DaemonHorizon && row.sum() >= 220-7:
			t.Errorf("of the window at %v all is held, although the end of three daemons is not proven", window)
		}
	}
}
