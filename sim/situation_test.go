package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/control"
)

// TestSituations plays faults that have an effect, and the same run without
// them: a situation counts where it is observed, and only there.
func TestSituations(t *testing.T) {
	leave := func(at, length time.Duration, rename bool, from ...string) Fault {
		return Fault{Kind: Leave, At: at, For: length, From: from, Rename: rename}
	}
	version := func(kind FaultKind, at time.Duration, from ...string) Fault {
		return Fault{Kind: kind, At: at, For: 500 * time.Millisecond, From: from}
	}
	plain := make(map[int]*Result) // by pods
	seconds := func(n int) time.Duration { return time.Duration(n) * time.Second }
	for _, c := range []struct {
		want    string
		pods    int // of region a
		faults  []Fault
		without []string
	}{
		{"all pods of a region evicted", 2, []Fault{leave(seconds(1), seconds(3), false, "a")}, nil},
		{"pods rolled", 2, []Fault{leave(seconds(1), seconds(2), false, "a-0"), leave(seconds(6), seconds(2), false, "a-1")}, []string{"pods rolled with new names"}},
		{"pods rolled with new names", 2, []Fault{leave(seconds(1), seconds(2), true, "a-0"), leave(seconds(6), seconds(2), true, "a-1")}, nil},
		{"a surge of new pods", 3, []Fault{leave(seconds(1), seconds(2), true, "a-1", "a-2")}, nil},
		{"7 of 10 left within 1 s", 10, []Fault{leave(seconds(1), seconds(2), false, names(3, 10)...)}, []string{"scaled 10, 3, 10, 3"}},
		{"scaled 10, 3, 10, 3", 10, []Fault{leave(seconds(1), seconds(2), false, names(3, 10)...), leave(seconds(6), seconds(2), false, names(3, 10)...)}, nil},
		{"a voter died", 2, []Fault{{Kind: Crash, At: seconds(1), For: seconds(1), From: []string{"a-0"}}}, []string{"a disk lost", "pods rolled"}},
		{"a voter returned", 2, []Fault{{Kind: Crash, At: seconds(1), For: seconds(1), From: []string{"a-0"}}}, nil},
		{"a daemon revoked", 2, []Fault{
			{Kind: Revoke, At: seconds(1), From: []string{"a-1"}},
			{Kind: Crash, At: seconds(6), For: seconds(1), From: []string{"a-1"}},
		}, []string{"command: daemon unrevoke"}},
		{"command: daemon revoke", 2, []Fault{{Kind: Revoke, At: seconds(1), From: []string{"b-2"}}}, []string{"a voter died"}},
		{"command: daemon unrevoke", 2, []Fault{{Kind: Revoke, At: seconds(1), For: seconds(5), From: []string{"b-2"}}}, nil},
		{"a disk lost", 2, []Fault{{Kind: Amnesia, At: seconds(1), For: seconds(1), From: []string{"a-0"}}}, []string{"a voter returned"}},
		{"a voter paused for an election", 2, []Fault{{Kind: Pause, At: seconds(1), For: seconds(4), From: []string{"a-0"}}}, nil},
		{"a cut in one direction", 2, []Fault{{Kind: Cut, At: seconds(1), For: seconds(4), From: []string{"a"}, To: []string{"b"}, OneWay: true}}, nil},
		{"a clock off by an hour", 2, []Fault{{Kind: ClockStep, At: seconds(1), For: seconds(4), From: []string{"a"}, Offset: time.Hour}}, nil},
		{"all diskless daemons died at once", 2, []Fault{{Kind: Crash, At: seconds(1), For: seconds(1), From: []string{"b-1", "b-2"}}}, nil},
		{"the format of the record raised", 2, []Fault{version(Upgrade, seconds(1))}, []string{"a downgrade before the raise", "a disk of a later format refused"}},
		{"a downgrade before the raise", 2, []Fault{version(Upgrade, seconds(1), "a-0"), version(Downgrade, seconds(4), "a-0")}, []string{"the format of the record raised"}},
		{"a disk of a later format refused", 2, []Fault{version(Upgrade, seconds(1)), version(Downgrade, seconds(9), "a-0")}, nil},
		{
			"an older version that cannot read the record", 2,
			[]Fault{{Kind: Crash, At: seconds(1), For: seconds(9), From: []string{"a-1"}}, version(Upgrade, seconds(1), "a-0", "b")},
			nil,
		},
	} {
		cfg := quick(t)
		cfg.Regions = []Region{{"a", c.pods}, {"b", 3}}
		cfg.Duration, cfg.Settle = 12*time.Second, 0
		cfg.Workloads[0].Rate = 5
		cfg.Control, cfg.Diskless = &control.Config{FormatAfter: time.Second}, []string{"b-1", "b-2"}
		play := func() *Result {
			r, err := Run(cfg, Options{})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		if plain[c.pods] == nil {
			plain[c.pods] = play()
		}
		cfg.Faults = c.faults
		r := play()
		if met(r, c.want) == 0 {
			t.Errorf("%q took no effect with its faults", c.want)
		}
		if met(plain[c.pods], c.want) > 0 {
			t.Errorf("%q took effect without a fault", c.want)
		}
		for _, name := range c.without {
			if met(r, name) > 0 {
				t.Errorf("%q took effect with the faults of %q", name, c.want)
			}
		}
	}
}

// names returns daemons of region a.
func names(first, end int) (all []string) {
	for i := first; i < end; i++ {
		all = append(all, daemonName("a", i))
	}
	return all
}

// met returns how often a situation took effect.
func met(r *Result, name string) uint64 {
	i := slices.IndexFunc(r.Situations, func(s situationResult) bool { return s.Name == name })
	return r.Situations[i].Times
}
