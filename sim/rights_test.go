package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/node"
)

// A record counts when it is on the disk: a crash before that leaves the one
// before, or none.
func TestCrashBeforeASync(t *testing.T) {
	cfg := hard(t, fixed)
	w := newWorld(cfg)
	w.audit(Options{})
	w.prepare()
	d := w.daemons[0]
	for w.writes.len() == 0 || w.writes.items[0].daemon != d.Index {
		w.runUntil(w.now + time.Millisecond)
	}
	if d.disk.record != nil {
		t.Fatal("the disk holds something before anything was synced")
	}
	w.runUntil(w.now + maxSync + ackSync + time.Millisecond)
	first := string(d.disk.record)
	if first == "" {
		t.Fatal("nothing was stored")
	}
	for { // until the next one is under way
		w.runUntil(w.now + time.Millisecond)
		under := false
		for _, s := range w.writes.items {
			under = under || s.daemon == d.Index && !s.synced && s.record != nil
		}
		if under {
			break
		}
		if w.now > cfg.Duration {
			t.Fatal("no further record")
		}
	}
	before := string(d.disk.record)
	d.downs++
	w.crash(d)
	w.runUntil(w.now + maxSync + time.Millisecond)
	if string(d.disk.record) != before {
		t.Error("a process that is gone stored something")
	}
	d.downs--
	if err := w.start(d); err != nil {
		t.Fatal(err)
	}
	w.runUntil(cfg.Duration)
	for _, a := range w.auditors {
		if r := a.Report(); r.Violations > 0 {
			t.Errorf("%+v", r)
		}
	}
	if d.agent == nil || string(d.disk.record) == before {
		t.Error("the new process stored nothing")
	}
}

// After each way to lose a process its daemon holds rights again in the end,
// and shares add up to all there are.
func TestSharesComeBack(t *testing.T) {
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
		w, r, err := run(cfg, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Code() != ExitFine {
			t.Errorf("%s: %+v", name, violated(r))
		}
		window := (epoch + int64(55*time.Second)) / int64(time.Millisecond)
		sum, total, up := uint64(0), uint64(0), 0
		for k, row := range w.holdings.rows {
			if k.window == window && k.total == 0 {
				sum, total, up = row.sum, row.total, len(row.lives)
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
	cfg := hard(t, fixed)
	cfg.Duration = 90 * time.Second
	cfg.Faults = []Fault{{Kind: Cut, At: 8 * time.Second, For: 80 * time.Second, From: []string{"eu"}}}
	w, r, err := run(cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Code() != ExitFine {
		t.Errorf("%+v", violated(r))
	}
	for window := 20 * time.Second; window < 80*time.Second; window += 5 * time.Second {
		for k, row := range w.holdings.rows {
			if k.total == 0 && k.window == (epoch+int64(window))/int64(time.Millisecond) && row.sum < 220-6 {
				t.Errorf("at %v %d of 220 are held", window, row.sum)
			}
		}
	}
}

// A dead daemon's share is back from the first label that starts a horizon after
// its crash, where at most a third of the region's daemons are dead.
func TestADeadDaemonsShareComesBack(t *testing.T) {
	const crash = 10 * time.Second
	for _, horizon := range []time.Duration{10 * time.Second, 30 * time.Second} {
		cfg := hard(t, fixed)
		cfg.Duration, cfg.Rights.DaemonHorizon = 70*time.Second, horizon
		cfg.Faults = []Fault{{Kind: Crash, At: crash, From: []string{"eu-1"}}}
		w, r, err := run(cfg, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Code() != ExitFine {
			t.Errorf("horizon %v: %+v", horizon, violated(r))
		}
		for window := crash + horizon; window < cfg.Duration-time.Second; window += 5 * time.Second {
			k := holdingKey{rule: node.SharedRule(cfg.Rules.Rules()[0]), window: (epoch + int64(window)) / int64(time.Millisecond), region: -1}
			row := w.holdings.rows[k]
			if row == nil || row.sum < 220-6 || len(row.lives) != 5 {
				t.Errorf("horizon %v: of the label at %v is held: %+v", horizon, window, row)
			}
		}
	}
}

// What is said about rights in a configuration is checked before a run.
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
