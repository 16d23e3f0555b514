package sim

import (
	"testing"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	epochs "github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim/load"
)

// needsMinutes skips a test of minutes of virtual time in a short run.
func needsMinutes(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("minutes of virtual time")
	}
}

// hard is a cluster of two regions of three daemons that are asked for much
// more than a limit with a budget.
func hard(t testing.TB, limit string) *Config {
	cfg := Default()
	cfg.Name, cfg.Duration, cfg.Settle = "hard", 20*time.Second, 0
	cfg.Regions = []Region{{"eu", 3}, {"us", 3}}
	cfg.Rules = parsed(t, "domain: edge\ndescriptors:\n  - key: org\n    rate_limit: {"+limit+"}\n")
	cfg.Rights.Period = 5 * time.Second
	cfg.Workloads = []load.Workload{{
		Name: "orgs", Domain: "edge", Hits: 1, Rate: 300, Keys: 2,
		Descriptors: [][]rules.Entry{{{Key: "org", Value: load.Drawn}}},
	}}
	return &cfg
}

const fixed = "unit: second, unit_multiplier: 5, requests_per_unit: 200, overage_budget: 10%"

// altered are a rights agent's rights with other allotments.
type altered struct {
	node.Allotments
	base func(inner node.Allotments, rule, total uint64, x, carry int64, regional bool) (uint64, epochs.Reason)
}

func (a *altered) Allotment(rule, total uint64, x, carry int64, regional bool) (uint64, epochs.Reason) {
	return a.base(a.Allotments, rule, total, x, carry, regional)
}

type baseFunc = func(node.Allotments, uint64, uint64, int64, int64, bool) (uint64, epochs.Reason)

// holds replaces the allotments of processes by those of a function.
func holds(f func(w *World, d *Daemon) baseFunc) func(*World, *Daemon, node.Allotments) node.Allotments {
	return func(w *World, d *Daemon, agent node.Allotments) node.Allotments { return &altered{agent, f(w, d)} }
}

// share is an equal part of a total, for any epochs.
func share(w *World, d *Daemon, total uint64, among int) uint64 {
	return total / uint64(len(w.regions)*max(1, among))
}

// rightsAuditors are those that see rights.
var rightsAuditors = []string{"rights", "admitted"}

// Schedules that broke earlier designs of rights: the present design holds, and
// with its mutation an auditor reports it.
func TestRightsMutations(t *testing.T) {
	for _, c := range []struct {
		name   string
		limit  string
		world  func(cfg *Config, m *mutation)
		bug    func(cfg *Config, m *mutation)
		caught string
	}{
		{
			name: "more is held than there is", limit: fixed,
			bug: func(cfg *Config, m *mutation) {
				m.rights = holds(func(*World, *Daemon) baseFunc {
					return func(r node.Allotments, rule, total uint64, x, carry int64, regional bool) (uint64, epochs.Reason) {
						n, why := r.Allotment(rule, total, x, carry, regional)
						return n + (n+3)/4, why
					}
				})
			},
			caught: "rights",
		},
		{
			name: "a restart holds its share again", limit: fixed,
			world: func(cfg *Config, m *mutation) {
				cfg.Faults = []Fault{{Kind: Crash, At: 12 * time.Second, For: 50 * time.Millisecond, From: []string{"eu-0"}}}
			},
			bug: func(cfg *Config, m *mutation) {
				m.rights = holds(func(w *World, d *Daemon) baseFunc {
					return func(_ node.Allotments, _, total uint64, _, _ int64, _ bool) (uint64, epochs.Reason) {
						return share(w, d, total, 3), epochs.ReasonEpoch
					}
				})
			},
			caught: "rights",
		},
		{
			name: "a process does not know what the one before used", limit: "unit: hour, requests_per_unit: 2000, consistency: partition",
			world: func(cfg *Config, m *mutation) {
				cfg.Faults = []Fault{{Kind: Leave, At: 5 * time.Second, For: 5 * time.Second, From: []string{"eu-0"}}}
			},
			bug:    func(_ *Config, m *mutation) { m.noUse = true },
			caught: "rights",
		},
		{
			name: "a joiner holds a share before an epoch names it", limit: fixed,
			world: func(cfg *Config, m *mutation) {
				cfg.Faults = []Fault{{
					Kind: Crash, At: 12 * time.Second, For: 50 * time.Millisecond, From: []string{"eu-0"}, Rename: true,
				}}
			},
			bug: func(cfg *Config, m *mutation) {
				m.rights = holds(func(w *World, d *Daemon) baseFunc {
					return func(r node.Allotments, rule, total uint64, x, carry int64, regional bool) (uint64, epochs.Reason) {
						if d.Name != d.owner {
							return share(w, d, total, 3), epochs.ReasonEpoch
						}
						return r.Allotment(rule, total, x, carry, regional)
					}
				})
			},
			caught: "rights",
		},
		{
			name: "who loses its disk says that it never ran", limit: fixed,
			world: func(cfg *Config, m *mutation) {
				cfg.Faults = []Fault{{Kind: Amnesia, At: 12 * time.Second, For: 50 * time.Millisecond, From: []string{"eu-0"}}}
			},
			bug:    func(cfg *Config, m *mutation) { m.forgetful = true },
			caught: "rights",
		},
		{
			name: "a record is not stored before it counts", limit: fixed,
			world: func(cfg *Config, m *mutation) {
				cfg.Faults = []Fault{{Kind: Crash, At: 12 * time.Second, For: 50 * time.Millisecond, From: []string{"eu-0"}}}
			},
			bug:    func(cfg *Config, m *mutation) { m.oneRecord = true },
			caught: "rights",
		},
		{
			name: "a restart after a step back goes by its clock", limit: fixed,
			world: func(cfg *Config, m *mutation) {
				cfg.Faults = []Fault{
					{Kind: ClockStep, At: 11 * time.Second, Offset: -15 * time.Second, From: []string{"eu-0"}},
					{Kind: Crash, At: 12 * time.Second, For: 50 * time.Millisecond, From: []string{"eu-0"}},
				}
			},
			bug: func(cfg *Config, m *mutation) {
				m.rights = holds(func(w *World, d *Daemon) baseFunc {
					fence := d.Instant(w.now).Wall / int64(time.Millisecond)
					if d.starts == 0 {
						fence = 0
					}
					return func(_ node.Allotments, _, total uint64, x, _ int64, _ bool) (uint64, epochs.Reason) {
						if x <= fence {
							return 0, epochs.ReasonFenced
						}
						return share(w, d, total, 3), epochs.ReasonEpoch
					}
				})
			},
			caught: "rights",
		},
		{
			name: "who takes others for dead takes their shares", limit: fixed,
			world: func(cfg *Config, m *mutation) {
				cfg.Members.Leave = time.Second
				cfg.Faults = []Fault{{
					Kind: Cut, At: 6 * time.Second, For: 8 * time.Second, From: []string{"eu-0"}, To: []string{"eu-1", "eu-2"},
				}}
			},
			bug: func(cfg *Config, m *mutation) {
				m.rights = holds(func(w *World, d *Daemon) baseFunc {
					return func(_ node.Allotments, _, total uint64, _, _ int64, _ bool) (uint64, epochs.Reason) {
						return share(w, d, total, w.believed(d)), epochs.ReasonEpoch
					}
				})
			},
			caught: "rights",
		},
		{
			name: "each daemon uses what its region holds", limit: fixed,
			bug: func(cfg *Config, m *mutation) {
				m.rights = holds(func(w *World, d *Daemon) baseFunc {
					return func(r node.Allotments, rule, total uint64, x, carry int64, _ bool) (uint64, epochs.Reason) {
						return r.RegionPart(d.Region, rule, total, x, carry), epochs.ReasonEpoch
					}
				})
			},
			caught: "rights",
		},
		{
			name: "a gift is not charged in full", limit: fixed,
			world: func(cfg *Config, m *mutation) {
				l := &cfg.Workloads[0]
				l.Keys, l.Pinned = 1, true
				l.Pulse = &load.Pulse{Every: 5 * time.Second, Within: 200 * time.Millisecond, Requests: 200}
			},
			bug:    func(cfg *Config, m *mutation) { m.generous = true },
			caught: "admitted",
		},
		{
			name: "a share of a sliding window rises at once", limit: "algorithm: sliding_window, " + fixed,
			world: func(cfg *Config, m *mutation) {
				cfg.Duration, cfg.Node.Ablation.NoEstimate, m.hasty = 40*time.Second, true, true
				cfg.Workloads[0].Moving = &load.Moving{Every: 20 * time.Second, Share: 1}
			},
			bug: func(cfg *Config, m *mutation) {
				m.rights = holds(func(*World, *Daemon) baseFunc {
					return func(r node.Allotments, rule, total uint64, x, _ int64, regional bool) (uint64, epochs.Reason) {
						return r.Allotment(rule, total, x, 0, regional)
					}
				})
			},
			caught: "admitted",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg, m := hard(t, c.limit), &mutation{}
			if c.world != nil {
				c.world(cfg, m)
			}
			_, r, err := run(cfg, Options{Auditors: TestAuditors(rightsAuditors...)}, m.rig)
			if err != nil {
				t.Fatal(err)
			}
			if r.Code() != ExitFine {
				t.Errorf("without the bug: %+v", violated(r))
			}
			c.bug(cfg, m)
			if _, r, err = run(cfg, Options{Auditors: TestAuditors(rightsAuditors...)}, m.rig); err != nil {
				t.Fatal(err)
			}
			found := ""
			for _, a := range violated(r) {
				if a.Name == c.caught {
					found = a.First
				}
			}
			if found == "" {
				t.Errorf("auditor %s does not find the bug; others: %+v", c.caught, violated(r))
			}
		})
	}
}

// believed is how many daemons of its region a daemon takes to be there.
func (w *World) believed(d *Daemon) int {
	n := 0
	for _, i := range d.known {
		if w.daemons[w.membership.all[i].daemon].Region == d.Region {
			n++
		}
	}
	return n
}

// A bucket that mints less than a token a step does not starve: rights are
// dealt out in fractions of a token.
func TestSlowBucketDoesNotStarve(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes of virtual time")
	}
	admitted := func(whole bool) uint64 {
		cfg := hard(t, "algorithm: token_bucket, unit: minute, requests_per_unit: 50, burst: 30, consistency: partition")
		cfg.Duration, cfg.Workloads[0].Keys, cfg.Workloads[0].Rate = 10*time.Minute, 1, 6
		m := &mutation{}
		if whole {
			token := quota.Of(&rules.Limit{Algorithm: rules.TokenBucket, Requests: 1, Burst: 1}).AllRights().Rate
			m.rights = holds(func(*World, *Daemon) baseFunc {
				return func(r node.Allotments, rule, total uint64, x, carry int64, regional bool) (uint64, epochs.Reason) {
					n, why := r.Allotment(rule, total, x, carry, regional)
					return n / token * token, why
				}
			})
		}
		_, r, err := run(cfg, Options{Auditors: TestAuditors()}, m.rig)
		if err != nil {
			t.Fatal(err)
		}
		if r.Code() != ExitFine {
			t.Errorf("%+v", violated(r))
		}
		return r.Admitted
	}
	const all = 30 + 50*10
	if got := admitted(false); got < all*93/100 || got > all {
		t.Errorf("%d admitted of %d", got, all)
	}
	if got := admitted(true); got > all*98/100 {
		t.Errorf("%d admitted of %d with shares of whole tokens: the test tries nothing", got, all)
	}
}

// While a limit changes, the greatest that is in force anywhere bounds a
// window, and afterwards the new one.
func TestBudgetHoldsWhileALimitChanges(t *testing.T) {
	for _, to := range []string{"40", "900"} {
		cfg := hard(t, fixed)
		cfg.Faults = []Fault{{
			Kind: NewRules, At: 6 * time.Second, For: 2 * time.Second,
			Rules: parsed(t, "domain: edge\ndescriptors:\n  - key: org\n    rate_limit: {unit: second, unit_multiplier: 5, "+
				"requests_per_unit: "+to+", overage_budget: 10%}\n"),
		}}
		r, err := Run(cfg, Options{Auditors: TestAuditors()})
		if err != nil {
			t.Fatal(err)
		}
		if r.Code() != ExitFine {
			t.Errorf("to %s: %+v", to, violated(r))
		}
	}
}

// A wall clock that steps ahead by an hour and back does not bring rights of a
// window that was used.
func TestRightsSurviveAClockThatLeaps(t *testing.T) {
	cfg := hard(t, fixed)
	cfg.Faults = []Fault{
		{Kind: ClockStep, At: 4 * time.Second, For: 7 * time.Second, Offset: time.Hour, From: []string{"eu"}},
		{Kind: Crash, At: 9 * time.Second, For: 20 * time.Millisecond, From: []string{"eu-1"}},
	}
	r, err := Run(cfg, Options{Auditors: TestAuditors(rightsAuditors...)})
	if err != nil {
		t.Fatal(err)
	}
	if r.Code() != ExitFine {
		t.Errorf("%+v", violated(r))
	}
}

// Notes about rights are lost, repeated and late, and rights are still
// conserved.
func TestTransfersOverBadLinks(t *testing.T) {
	cfg := hard(t, fixed)
	cfg.Workloads[0].Pinned, cfg.Workloads[0].Rate = true, 60
	for _, l := range []*Link{&cfg.Network.Region, &cfg.Network.Across} {
		l.Loss, l.Duplicate, l.Reorder = 30*rules.Percent, 30*rules.Percent, 30*rules.Percent
	}
	r, err := RunTwice(cfg, Options{Auditors: TestAuditors()})
	if err != nil {
		t.Fatal(err)
	}
	if r.Code() != ExitFine || r.Rights.Received == 0 {
		t.Errorf("%d received, %+v", r.Rights.Received, violated(r))
	}
}
