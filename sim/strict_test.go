package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/internal/breaker"
	"github.com/georld/rld/rules"
)

// flooded is a strict key that daemons of three regions are asked for 20,000
// times a second.
func flooded(t testing.TB, limit string) *Config {
	cfg := homed(t, limit)
	cfg.Regions = []Region{{"eu", 3}, {"us", 3}, {"ap", 3}}
	cfg.Workloads[0].Rate, cfg.Workloads[0].Keys = 20_000, 1
	return cfg
}

// TestDeniedKeyIsQuiet floods a key of which nothing is left: the calls are
// denied from memory, and the owner gets next to no requests.
func TestDeniedKeyIsQuiet(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 140,000 decisions")
	}
	cfg := flooded(t, "unit: hour, requests_per_unit: 10, consistency: strict, home: eu")
	w := newWorld(cfg)
	w.auditors = watching(TestAuditors(strictAuditors...)(w))
	w.prepare()
	w.runUntil(2 * time.Second)
	before := w.strict.out
	w.runUntil(7 * time.Second)
	after := w.strict.out
	asks, decided := (after.Requests-before.Requests)/5, after.Decisions-before.Decisions
	if asks > 100 || decided < 90_000 {
		t.Errorf("%d asks a second for %d decisions, want at most 100", asks, decided)
	}
	for _, a := range w.auditors.all {
		if r := a.Found; r.Violations > 0 {
			t.Errorf("%+v", r)
		}
	}
}

// TestClientsThatLeaveOpenBreakers partitions a region from the owner of its
// key. Clients that wait less long than its daemons get no answer, and their
// calls are over; the breakers open all the same.
func TestClientsThatLeaveOpenBreakers(t *testing.T) {
	cfg := homed(t, "unit: second, requests_per_unit: 1000, consistency: strict, home: eu")
	cfg.Duration = 10 * time.Second
	cfg.Strict.Breaker = breaker.Config{Calls: 4, Window: time.Second, Open: time.Second}
	cfg.Workloads[0].Patience = 150 * time.Millisecond
	cfg.Faults = []Fault{{Kind: Cut, At: 3 * time.Second, For: 5 * time.Second, From: []string{"us"}, To: []string{"eu"}}}
	r, err := Run(cfg, Options{Auditors: TestAuditors(strictAuditors...)})
	if err != nil {
		t.Fatal(err)
	}
	if r.Unanswered == 0 || r.Unanswered > r.Decisions/10 || r.Seen["breaker_open"] == 0 {
		t.Errorf("%d calls without an answer, %d decisions, breakers opened %d times", r.Unanswered, r.Decisions, r.Seen["breaker_open"])
	}
	if r.Code() != ExitFine {
		t.Errorf("%+v", r.Auditors)
	}
}

// TestStrictHoldsWhileALimitChanges changes limits while leases of them are
// out: the greatest limit in force anywhere bounds a window, under every
// algorithm.
func TestStrictHoldsWhileALimitChanges(t *testing.T) {
	needsMinutes(t)
	for _, algorithm := range rules.Algorithms() {
		limit := "unit: second, unit_multiplier: 3, consistency: strict, home: eu, algorithm: " + algorithm + ", requests_per_unit: "
		cfg := homed(t, limit+"200")
		cfg.Faults = []Fault{
			{Kind: NewRules, At: 3 * time.Second, For: 2 * time.Second, Rules: parsed(t,
				"domain: edge\ndescriptors:\n  - key: org\n    rate_limit: {"+limit+"40}\n")},
			{Kind: Crash, At: 4 * time.Second, For: time.Second, From: []string{"eu-0"}},
			{Kind: Crash, At: 5 * time.Second, For: time.Second, From: []string{"eu-1"}},
		}
		r, err := RunTwice(cfg, Options{Auditors: TestAuditors(strictAuditors...)})
		if err != nil {
			t.Fatal(err)
		}
		if r.Code() != ExitFine || r.Admitted == 0 {
			t.Errorf("%s: %d admitted, %+v", algorithm, r.Admitted, violated(r))
		}
	}
}

// TestCallsThatWaitEnd crashes owners, and daemons with calls that wait: a call
// is answered when its owner has died, and not when its own daemon has.
func TestCallsThatWaitEnd(t *testing.T) {
	cfg := homed(t, strictFixed)
	cfg.Faults = []Fault{
		{Kind: Crash, At: 2 * time.Second, From: []string{"eu"}},
		{Kind: Crash, At: 4 * time.Second, For: 100 * time.Millisecond, From: []string{"us-0"}},
		{Kind: Pause, At: 5 * time.Second, For: 500 * time.Millisecond, From: []string{"us-1"}},
	}
	w, r, err := run(cfg, Options{Auditors: TestAuditors(strictAuditors...)})
	if err != nil {
		t.Fatal(err)
	}
	if r.Code() != ExitFine {
		t.Errorf("%+v", violated(r))
	}
	s := r.Strict
	if s.Failed == 0 || s.Waited == 0 || s.WaitMaxMs > 800 {
		t.Errorf("%+v", s)
	}
	w.runUntil(cfg.Duration + time.Second)
	for _, d := range w.daemons {
		if d.Up && d.process.Waiters.Len() > 0 {
			t.Errorf("%d calls wait for ever at %s", d.process.Waiters.Len(), d.Name)
		}
	}
}

// TestBreakersOpenAndClose partitions the region of the owners: the other
// daemons stop asking them, probe them after a while, and ask them again after
// the partition. Meanwhile their calls are decided at once.
func TestBreakersOpenAndClose(t *testing.T) {
	cfg := homed(t, strictFixed)
	cfg.Seed = 2 // with one seed in ten a few calls fail after the cut, too
	cfg.Strict.Breaker = breaker.Config{Calls: 4, Window: time.Second, Open: time.Second}
	cfg.Faults = []Fault{{Kind: Cut, At: time.Second, For: 6 * time.Second, From: []string{"eu"}, To: []string{"us"}}}
	w := newWorld(cfg)
	w.auditors = watching(TestAuditors(strictAuditors...)(w))
	w.prepare()
	w.runUntil(3500 * time.Millisecond)
	before := w.strict.out
	w.runUntil(6500 * time.Millisecond)
	during := w.strict.out
	if waited, failed := during.Waited-before.Waited, during.Failed-before.Failed; failed < 100 || waited > failed/2 {
		t.Errorf("%d calls waited and %d failed while no owner could be reached", waited, failed)
	}
	w.runUntil(10 * time.Second)
	after := w.strict.out
	w.runUntil(cfg.Duration)
	if failed := w.strict.out.Failed - after.Failed; failed > 0 {
		t.Errorf("%d calls failed after the network partition", failed)
	}
	seen := make(map[string]uint64)
	w.addSeen(seen)
	if seen["breaker_open"] < 3 || seen["breaker_half_open"] < seen["breaker_open"] || seen["breaker_closed"] == 0 {
		t.Errorf("%v", seen)
	}
	if d := w.daemons[3]; d.process.Waiters.Len() > 50 {
		t.Errorf("%d calls wait", d.process.Waiters.Len())
	}
}

// TestStrictWithoutFaults has owners answer calls in about a round trip, also
// of several shards and where windows end meanwhile.
func TestStrictWithoutFaults(t *testing.T) {
	needsMinutes(t)
	cfg := homed(t, "unit: second, unit_multiplier: 1, requests_per_unit: 60, consistency: strict, home: eu")
	cfg.Shards, cfg.Workloads[0].Keys, cfg.Strict.Sync = 4, 40, 5*time.Millisecond
	r, err := Run(cfg, Options{Auditors: TestAuditors(strictAuditors...)})
	if err != nil {
		t.Fatal(err)
	}
	if r.Code() != ExitFine {
		t.Errorf("%+v", violated(r))
	}
	s := r.Strict
	if s.Waited < 2_500 || s.WaitP50Ms > 20 || s.WaitMaxMs > 220 || s.Failed > 80 {
		t.Errorf("%+v", s)
	}
}

// TestSlowStreams has streams without room for a frame now and then: their
// messages are merged and offered again, and most calls are still answered.
func TestSlowStreams(t *testing.T) {
	cfg := homed(t, "unit: second, unit_multiplier: 1, requests_per_unit: 60, consistency: strict, home: eu")
	cfg.Workloads[0].Keys, cfg.Strict.Sync = 40, 5*time.Millisecond
	cfg.Network.Across.Bandwidth = 3800
	w, r, err := run(cfg, Options{Auditors: TestAuditors(strictAuditors...)})
	if err != nil {
		t.Fatal(err)
	}
	if r.Code() != ExitFine {
		t.Errorf("%+v", violated(r))
	}
	dropped := uint64(0)
	for _, d := range w.daemons {
		dropped += d.process.Outbox.Dropped()
	}
	s := r.Strict
	if dropped == 0 || dropped > 100 || s.Failed > 320 || s.WaitMaxMs > 450 {
		t.Errorf("%d items were dropped; %+v", dropped, s)
	}
}

// TestAcceptorRecoversItsLog restarts a strict voter: it has all records again
// that it had answered for.
func TestAcceptorRecoversItsLog(t *testing.T) {
	cfg := homed(t, strictLong)
	cfg.Workloads[0].Keys = 40
	w := newWorld(cfg)
	w.prepare()
	w.runUntil(4 * time.Second)
	d := w.daemons[0]
	before := d.acceptor.Acceptor.Status()
	w.crash(d)
	if err := w.start(d); err != nil {
		t.Fatal(err)
	}
	w.runUntil(4500 * time.Millisecond) // the other voters know no later write
	after := d.acceptor.Acceptor.Status()
	if before.Keys < 30 || after.Keys < before.Keys || !after.Voting || after.Layout.Number != 1 {
		t.Errorf("%+v, and %+v before", after, before)
	}
}

// TestForeignFrames rejects frames that claim another sender than their stream.
func TestForeignFrames(t *testing.T) {
	w := newWorld(homed(t, strictFixed))
	w.prepare()
	w.runUntil(time.Second)
	frames := 0
	for _, f := range w.network.flights.items {
		if f.frame == nil {
			continue
		}
		to := f.origin.To
		f.origin, f.frame = originOf(w.daemons[1-min(f.from, 1)]), slices.Clone(f.frame)
		f.origin.To = to
		before := w.network.traffic.Unreadable
		if w.receive(w.daemons[f.to], f); w.network.traffic.Unreadable != before+1 {
			t.Errorf("a frame of daemon %d was received in the name of another", f.from)
		}
		frames++
	}
	if frames == 0 {
		t.Error("no frame was on its way")
	}
}
