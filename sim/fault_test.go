package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/control"
)

// glance is what to look at in the middle of a run.
type glance struct {
	at   time.Duration
	look func(w *World) string
	want string
}

// watch plays a run and looks at its moments, in order.
func watch(t *testing.T, cfg *Config, moments ...glance) {
	t.Helper()
	w := newWorld(cfg)
	w.prepare()
	for _, m := range moments {
		w.runUntil(m.at)
		if w.failed != nil {
			t.Fatal(w.failed)
		}
		if got := m.look(w); got != m.want {
			t.Errorf("at %v: %s, want %s", m.at, got, m.want)
		}
	}
}

// peers returns a function that lists the peers of a daemon: names, with the
// number of their process if it is not the first.
func peers(daemon int) func(w *World) string {
	return func(w *World) string {
		d := w.daemons[daemon]
		if !d.Up {
			return "down"
		}
		var names []string
		for l := range d.Nodes[0].Links(d.Instant(w.now)) {
			name := l.Peer.Name
			for i, m := range w.membership.all[:w.membership.byAddress[l.Peer.ID]] {
				if m.daemon == w.membership.all[w.membership.byAddress[l.Peer.ID]].daemon && i >= 0 {
					name += "'"
				}
			}
			names = append(names, name)
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
}

// up returns a look at which daemons are up.
func up(w *World) string {
	var names []string
	for _, d := range w.daemons {
		if d.Up {
			names = append(names, d.Name)
		}
	}
	return strings.Join(names, " ")
}

// quick is small with news of members that take a tenth of a second, or half
// of one for bad ones.
func quick(t *testing.T, faults ...Fault) *Config {
	cfg := small(t)
	cfg.Members = Members{Join: 100 * time.Millisecond, Leave: 500 * time.Millisecond}
	cfg.Faults = faults
	return cfg
}

const ms = time.Millisecond

func TestCrashAndRestart(t *testing.T) {
	watch(
		t, quick(t, Fault{Kind: Crash, At: time.Second, For: 2 * time.Second, From: []string{"eu-1"}}),
		glance{990 * ms, peers(0), "eu-1 us-0 us-1"},
		glance{1010 * ms, up, "eu-0 us-0 us-1"},
		glance{1490 * ms, peers(0), "eu-1 us-0 us-1"}, // nobody noticed yet
		glance{1510 * ms, peers(0), "us-0 us-1"},
		glance{3010 * ms, up, "eu-0 eu-1 us-0 us-1"},
		glance{3010 * ms, peers(1), "eu-0 us-0 us-1"}, // a new process is announced at once
		glance{3090 * ms, peers(0), "us-0 us-1"},
		glance{3110 * ms, peers(0), "eu-1' us-0 us-1"},
	)
}

// TestRestartUnderAnotherName: what comes back has another address.
func TestRestartUnderAnotherName(t *testing.T) {
	watch(
		t, quick(t, Fault{Kind: Crash, At: time.Second, For: time.Second, From: []string{"eu-1"}, Rename: true}),
		glance{2200 * ms, peers(0), "eu-1-r1' us-0 us-1"},
	)
}

// TestCrashesOverlap: a daemon is down as long as any fault keeps it down.
func TestCrashesOverlap(t *testing.T) {
	watch(
		t, quick(
			t, Fault{Kind: Crash, At: time.Second, For: 2 * time.Second, From: []string{"eu"}},
			Fault{Kind: Crash, At: 2 * time.Second, For: 2 * time.Second, From: []string{"eu-0"}},
		),
		glance{2500 * ms, up, "us-0 us-1"},
		glance{3010 * ms, up, "eu-1 us-0 us-1"},
		glance{4010 * ms, up, "eu-0 eu-1 us-0 us-1"},
	)
}

// TestCutInRegion: daemons of a region that cannot reach each other drop each
// other, and find each other again. Across regions no daemon drops another.
func TestCutInRegion(t *testing.T) {
	watch(
		t, quick(t, Fault{Kind: Cut, At: time.Second, For: 2 * time.Second, From: []string{"eu-0"}, OneWay: true}),
		glance{1490 * ms, peers(1), "eu-0 us-0 us-1"},
		glance{1510 * ms, peers(1), "us-0 us-1"},
		glance{1510 * ms, peers(0), "us-0 us-1"},
		glance{2900 * ms, peers(2), "eu-0 eu-1 us-1"},
		glance{3110 * ms, peers(1), "eu-0 us-0 us-1"},
	)
}

func TestMembershipFaults(t *testing.T) {
	watch(
		t, quick(
			t,
			Fault{
				Kind: MissMembers, At: time.Second, For: time.Second,
				From: []string{"us-0"}, To: []string{"eu-0", "us-1"},
			},
			Fault{Kind: KeepMembers, At: time.Second, For: 3 * time.Second, From: []string{"us-1"}},
			Fault{Kind: LateMembers, At: time.Second, For: 2 * time.Second, From: []string{"eu-0"}},
			Fault{Kind: Crash, At: 1100 * ms, For: time.Second, From: []string{"eu-1"}},
		),
		glance{1010 * ms, peers(2), "eu-1"},
		glance{2050 * ms, peers(2), "eu-0 us-1"},
		glance{2300 * ms, peers(2), "eu-0 eu-1' us-1"},
		glance{2300 * ms, peers(3), "eu-0 eu-1 eu-1' us-0"},
		glance{4050 * ms, peers(3), "eu-0 eu-1' us-0"},
		glance{2300 * ms, peers(0), "eu-1' us-0 us-1"},
	)
}

// TestRevoke: within 30 s of the command each daemon refuses the streams of the
// revoked name, those of a process that starts at once. After the command to
// accept it they begin again, and all daemons agree in the end.
func TestRevoke(t *testing.T) {
	isolated := func(w *World) string {
		var names []string
		for _, d := range w.daemons {
			if !w.Connected(d, w.daemons[3]) && !w.Connected(w.daemons[3], d) {
				names = append(names, d.Name)
			}
		}
		return strings.Join(names, " ")
	}
	cfg := quick(
		t, Fault{Kind: Revoke, At: 30 * time.Second, For: 50 * time.Second, From: []string{"us-1"}},
		Fault{Kind: Crash, At: 33 * time.Second, For: time.Second, From: []string{"us-1"}},
		Fault{Kind: Crash, At: 65 * time.Second, For: time.Second, From: []string{"us-1", "eu-1"}},
	)
	cfg.Control, cfg.Duration, cfg.Settle, cfg.Liveness = &control.Config{}, 90*time.Second, 30*time.Second, time.Minute
	watch(
		t, cfg,
		glance{29 * time.Second, isolated, ""},
		glance{34100 * ms, isolated, "eu-0 eu-1 us-0"},
		glance{36 * time.Second, peers(0), "eu-1 us-0"},
		glance{36 * time.Second, peers(3), ""},
		glance{68 * time.Second, peers(3), ""},
		glance{68 * time.Second, peers(1), "eu-0 us-0"},
		glance{83 * time.Second, isolated, ""},
		glance{84 * time.Second, peers(3), "eu-0 eu-1' us-0"},
	)
	cfg.Faults = cfg.Faults[:1]
	watch(t, cfg, glance{61500 * ms, isolated, "eu-0 eu-1 us-0"})
	r, err := Run(cfg, Options{Auditors: TestAuditors()})
	if err != nil || r.Code() != ExitFine || met(r, "a daemon revoked") == 0 {
		t.Errorf("%v, %+v", err, r)
	}
}

// TestUnrevokeOnce: the operator repeats the command to accept a name until its
// outcome is known. So none is refused, also where an entry takes many seconds.
func TestUnrevokeOnce(t *testing.T) {
	cfg := quick(t, Fault{Kind: Revoke, At: 40 * time.Second, For: 40 * time.Second, From: []string{"us-1"}})
	cfg.Network.Across.Delay = 2 * time.Second
	cfg.Control, cfg.Duration, cfg.Workloads = &control.Config{Heartbeat: 2 * time.Second}, 2*time.Minute, nil
	refused := 0
	count := &Auditor{Controlled: func(d *Daemon, r *control.Ready) {
		for _, e := range r.Events {
			if e.Kind == control.CommandRefused {
				refused++
			}
		}
	}}
	r, err := Run(cfg, Options{Auditors: func(*World) []*Auditor { return []*Auditor{count} }})
	if err != nil || refused != 0 || met(r, "command: daemon unrevoke") == 0 {
		t.Errorf("%v, %d commands refused, %d done", err, refused, met(r, "command: daemon unrevoke"))
	}
}

// TestPause: a paused process answers no call and later receives the waiting
// frames.
func TestPause(t *testing.T) {
	waiting := func(w *World) string {
		d := w.daemons[0]
		switch {
		case d.Paused && len(d.inbox) > 0:
			return "paused, frames wait"
		case d.Paused:
			return "paused"
		case len(d.inbox) > 0:
			return "frames wait"
		}
		return "runs"
	}
	watch(
		t, quick(t, Fault{Kind: Pause, At: time.Second, For: time.Second, From: []string{"eu-0"}}),
		glance{990 * ms, waiting, "runs"},
		glance{1990 * ms, waiting, "paused, frames wait"},
		glance{2010 * ms, waiting, "runs"},
	)
}

// TestClockFaults: wall clocks move, monotonic ones do not.
func TestClockFaults(t *testing.T) {
	wall := func(w *World) string {
		at := w.daemons[0].Instant(w.now)
		return time.Duration(at.Wall - epoch - int64(w.now)).Round(ms).String()
	}
	steady := func(w *World) string {
		d := w.daemons[0]
		return (d.Instant(w.now).Mono + d.started - w.now).String()
	}
	watch(
		t, quick(
			t, Fault{Kind: ClockStep, At: time.Second, For: time.Second, From: []string{"eu"}, Offset: time.Hour},
			Fault{Kind: ClockDrift, At: 3 * time.Second, For: time.Second, From: []string{"eu-0"}, PPM: 1_000},
		),
		glance{990 * ms, wall, "0s"},
		glance{1010 * ms, wall, "1h0m0s"},
		glance{1010 * ms, steady, "0s"},
		glance{2010 * ms, wall, "0s"},
		glance{3500 * ms, wall, "1ms"},
		glance{4500 * ms, wall, "1ms"},
	)
}

// TestNewRules: each daemon puts new rules in force at a time of its own, and a
// daemon that starts has the newest.
func TestNewRules(t *testing.T) {
	adopted := func(w *World) string {
		n := 0
		for _, d := range w.daemons {
			if d.Up && d.Set == w.newest() {
				n++
			}
		}
		switch n {
		case 0:
			return "none"
		case len(w.daemons):
			return "all"
		}
		return "some"
	}
	cfg := quick(t)
	set := parsed(t, "domain: edge\ndescriptors: [{key: user}]\n")
	cfg.Faults = []Fault{{Kind: NewRules, At: time.Second, For: 2 * time.Second, Rules: set}}
	watch(
		t, cfg,
		glance{990 * ms, adopted, "all"}, // of the only set
		glance{1010 * ms, adopted, "none"},
		glance{1500 * ms, adopted, "some"},
		glance{3010 * ms, adopted, "all"},
	)
}

// TestHealing: in the liveness phase all daemons that should run do, and those
// that should stay out stay out.
func TestHealing(t *testing.T) {
	cfg := quick(
		t, Fault{Kind: Crash, At: time.Second, From: []string{"eu-0"}, Stay: true},
		Fault{Kind: Crash, At: time.Second, From: []string{"eu-1", "us-1"}},
		Fault{Kind: Pause, At: time.Second, From: []string{"us-0"}},
		Fault{Kind: Crash, At: cfgDuration + time.Second, From: []string{"us"}}, // never happens
	)
	cfg.Regions = append(cfg.Regions, Region{"ap", 1}, Region{"sa", 1})
	cfg.Outside = []Outside{{"ap", regionLost}, {"sa", regionDeaf}}
	w, r, err := run(cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := up(w); got != "eu-1 us-0 us-1 sa-0" || w.daemons[2].Paused || r.Pending != "" {
		t.Errorf("up: %s, paused %t, pending %q", got, w.daemons[2].Paused, r.Pending)
	}
	us, sa := w.daemons[2], w.daemons[5]
	if w.Connected(us, sa) || !w.Connected(sa, us) {
		t.Errorf("a deaf region is reached %t, reaches %t", w.Connected(us, sa), w.Connected(sa, us))
	}
}

// cfgDuration is how long a small run is.
const cfgDuration = 5 * time.Second

// TestNewerVersion: fields that a daemon does not know change nothing that it
// does.
func TestNewerVersion(t *testing.T) {
	play := func(newer bool) *Result {
		cfg := hard(t, "unit: second, requests_per_unit: 20, consistency: strict")
		cfg.Duration, cfg.Settle = 4*time.Second, 0
		cfg.Settings = []Settings{{Place: cfg.Regions[0].Name, Newer: newer}}
		r, err := Run(cfg, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	was, is := play(false), play(true)
	if is.Decisions != was.Decisions || is.Admitted != was.Admitted || is.Events != was.Events || is.Traffic.Unreadable > 0 {
		t.Errorf("%d events, %d of %d admitted, %d frames unreadable; without the fields %d, %d of %d",
			is.Events, is.Admitted, is.Decisions, is.Traffic.Unreadable, was.Events, was.Admitted, was.Decisions)
	}
	if is.Traffic.Bytes <= was.Traffic.Bytes {
		t.Error("no frame has more fields")
	}
}

// TestOtherShards: daemons that split keys differently refuse each other, and
// no message passes between them.
func TestOtherShards(t *testing.T) {
	cfg := quick(t)
	cfg.Settings = []Settings{{Place: "eu-1", Shards: 4}}
	watch(
		t, cfg, glance{time.Second, peers(0), "us-0 us-1"}, glance{time.Second, peers(1), ""},
	)
}
