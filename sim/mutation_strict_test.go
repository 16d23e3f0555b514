package sim

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim/load"
	"github.com/georld/rld/sticky"
)

// homed is a cluster of two regions, one of which is owner to a limit that is
// asked for much more than it has.
func homed(t testing.TB, limit string) *Config {
	cfg := Default()
	cfg.Name, cfg.Duration, cfg.Settle = "homed", 12*time.Second, 0
	cfg.Regions = []Region{{"eu", 3}, {"us", 3}}
	cfg.Members = Members{Join: 100 * time.Millisecond, Leave: 300 * time.Millisecond, Spread: 50 * time.Millisecond}
	cfg.Rules = parsed(t, "domain: edge\ndescriptors:\n  - key: org\n    rate_limit: {"+limit+"}\n")
	cfg.Workloads = []load.Workload{{
		Name: "orgs", Domain: "edge", Hits: 1, Rate: 300, Keys: 2,
		Descriptors: [][]rules.Entry{{{Key: "org", Value: load.Drawn}}},
	}}
	return &cfg
}

// strictAuditors are those that hold owners to account.
var strictAuditors = []string{"admitted", "strict"}

const strictFixed = "unit: second, unit_multiplier: 3, requests_per_unit: 200, consistency: strict, home: eu"

const strictLong = "unit: second, unit_multiplier: 6, requests_per_unit: 200, consistency: strict, home: eu"

// tamper changes messages about strict keys as they arrive.
type tamper = func(w *World, d *Daemon, m *sticky.Message) []*sticky.Message

// credited names a lessee's rights of an owner's grants.
type credited struct {
	holder, owner crdt.Incarnation
	key           crdt.Key
	window        int64
}

// addGrants makes lessees add a grant to the former ones.
func addGrants() tamper {
	sums := make(map[credited]uint64)
	return onGrants(func(d *Daemon, g *sticky.LeaseGrant) {
		k := credited{d.incarnations[0], g.Owner, g.Key, g.Window}
		sums[k] += g.Total
		g.Total = sums[k]
	})
}

// carryGrants makes lessees carry grants of a window into the next.
func carryGrants(window int64) tamper {
	totals := make(map[credited]uint64)
	return onGrants(func(d *Daemon, g *sticky.LeaseGrant) {
		k := credited{d.incarnations[0], g.Owner, g.Key, g.Window}
		before := k
		before.window -= window
		g.Total += totals[before]
		totals[k] = max(totals[k], g.Total)
	})
}

func onGrants(change func(d *Daemon, g *sticky.LeaseGrant)) tamper {
	return func(_ *World, d *Daemon, m *sticky.Message) []*sticky.Message {
		out := *m
		out.Grants = slices.Clone(m.Grants)
		for i := range out.Grants {
			if g := &out.Grants[i]; g.Reason == sticky.NoReason {
				change(d, g)
			}
		}
		return []*sticky.Message{&out}
	}
}

// refundTwice has owners take back twice what holders return.
func refundTwice() tamper {
	totals := make(map[credited]uint64)
	return func(_ *World, d *Daemon, m *sticky.Message) []*sticky.Message {
		for _, g := range m.Grants {
			k := credited{d.incarnations[0], g.Owner, g.Key, g.Window}
			totals[k] = max(totals[k], g.Total)
		}
		out := *m
		out.Requests = slices.Clone(m.Requests)
		for i := range out.Requests {
			a := &out.Requests[i]
			a.Returned = min(2*a.Returned, max(a.Returned, totals[credited{a.Lessee, a.Owner, a.Key, a.Window}]))
		}
		return []*sticky.Message{&out}
	}
}

// oneVote makes owners count the vote of one acceptor for that of all, and no
// other acceptor receives an Accept.
func oneVote(_ *World, d *Daemon, m *sticky.Message) []*sticky.Message {
	out := *m
	if m.From != d.incarnations[0] {
		out.Accepts = nil
	}
	out.Accepted = nil
	all := []*sticky.Message{&out}
	for _, voter := range d.acceptor.Acceptor.Routing().Voters() {
		forged := sticky.Message{From: voter.Incarnation, To: m.To, Stamp: m.Stamp, Number: m.Number}
		for _, v := range m.Accepted {
			v.Voter = voter.ID
			forged.Accepted = append(forged.Accepted, v)
		}
		all = append(all, &forged)
	}
	return all
}

// blindTakeover makes acceptors vote for owners that do not know their
// watermarks.
func blindTakeover() tamper {
	held := make(map[crdt.Key]sticky.Watermarks)
	return func(_ *World, _ *Daemon, m *sticky.Message) []*sticky.Message {
		out := *m
		out.Accepts = slices.Clone(m.Accepts)
		for i := range out.Accepts {
			r := &out.Accepts[i]
			held[r.Key] = held[r.Key].Join(r.Watermarks)
			known, all := r.Known.Join(held[r.Key]), held[r.Key]
			if len(known) > sticky.MaxWatermarks {
				known = all[len(all)-sticky.MaxWatermarks:]
			}
			r.Known = known
		}
		return []*sticky.Message{&out}
	}
}

// Schedules that broke other designs of strict keys, and bugs of ours: the
// present owners hold, and with the mutation an auditor reports it.
func TestStrictMutations(t *testing.T) {
	// The crashes fall into all parts of windows: not every takeover finds
	// leases of the owner before.
	crashes := func(cfg *Config, m *mutation) {
		const every = 1310 * time.Millisecond
		cfg.Duration *= 2
		for at := time.Second; at < cfg.Duration; at += every {
			i := int(at/every) % 3
			cfg.Faults = append(cfg.Faults, Fault{
				Kind: Crash, At: at, For: time.Second, From: []string{daemonName("eu", i)},
			})
		}
	}
	blackout := func(region string) func(cfg *Config, m *mutation) {
		return func(cfg *Config, m *mutation) {
			for at := 1500 * time.Millisecond; at < cfg.Duration; at += 1500 * time.Millisecond {
				cfg.Faults = append(cfg.Faults, Fault{Kind: Crash, At: at, For: 20 * time.Millisecond, From: []string{region}})
			}
			cfg.Members.Spread = time.Millisecond
		}
	}
	early := func(cfg *Config, m *mutation) { m.early = true }
	for i, c := range []struct {
		name   string
		limit  string
		world  func(cfg *Config, m *mutation)
		bug    func(cfg *Config, m *mutation)
		caught string
	}{
		{
			name: "a home grants more than a majority holds", world: crashes,
			bug: func(cfg *Config, m *mutation) { m.strict = oneVote }, caught: "strict",
		},
		{
			name: "who takes over ignores what is marked", world: crashes,
			bug: func(cfg *Config, m *mutation) { m.strict = blindTakeover() }, caught: "admitted strict",
		},
		{
			name: "replicas vote before they have stored", limit: strictLong, world: blackout("eu"), bug: early, caught: "admitted",
		},
		{
			name: "grants are added up", bug: func(cfg *Config, m *mutation) { m.strict = addGrants() }, caught: "admitted",
		},
		{
			name: "credit is used after its label", bug: func(cfg *Config, m *mutation) { m.strict = carryGrants(3_000) },
			caught: "admitted",
		},
		{
			name:  "what is returned counts twice",
			limit: "unit: second, unit_multiplier: 3, requests_per_unit: 900, consistency: strict, home: eu",
			world: func(cfg *Config, m *mutation) {
				cfg.Workloads[0].Bursts = &load.Bursts{On: 200 * time.Millisecond, Off: 400 * time.Millisecond}
				cfg.Workloads[0].Rate, cfg.Workloads[0].Keys = 2_000, 1
			},
			bug: func(cfg *Config, m *mutation) { m.strict = refundTwice() }, caught: "admitted",
		},
		{
			name: "a replica that lost its disk votes",
			world: func(cfg *Config, m *mutation) {
				// Watermarks of one window are with eu-0 and eu-1 alone. Then
				// the one is down and the other has forgotten, and eu-2 is
				// back.
				cfg.Rules = parsed(t, "domain: edge\ndescriptors:\n  - key: org\n    rate_limit: {"+
					"unit: hour, requests_per_unit: 200, consistency: strict, home: eu}\n")
				cfg.Faults = []Fault{
					{Kind: Cut, At: 10 * time.Millisecond, For: 4 * time.Second, From: []string{"eu-2"}},
					{Kind: Crash, At: 4 * time.Second, From: []string{"eu-0"}},
					{Kind: Amnesia, At: 4 * time.Second, For: 100 * time.Millisecond, From: []string{"eu-1"}},
				}
			},
			bug: func(cfg *Config, m *mutation) { m.forgetful = true }, caught: "admitted",
		},
		{
			name: "a layout is active before its voters have copied",
			world: func(cfg *Config, m *mutation) {
				cfg.Regions[0].Daemons = 6
				cfg.Workloads[0].Keys, cfg.Workloads[0].Rate = 4, 900
				for at := time.Second; at < cfg.Duration; at += 700 * time.Millisecond {
					cfg.Faults = append(cfg.Faults, Fault{Kind: LayoutChange, At: at})
				}
			},
			bug: func(cfg *Config, m *mutation) { m.uncopied = true }, caught: "admitted",
		},
		{
			name:  "who holds the floor of a region restarts",
			limit: strictLong + ", on_failure: {share: 50%}",
			world: func(cfg *Config, m *mutation) {
				blackout("us")(cfg, m)
				cfg.Faults = append(cfg.Faults, Fault{Kind: Cut, At: 100 * time.Millisecond, From: []string{"us"}, To: []string{"eu"}})
			},
			bug: early, caught: "admitted",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && i%3 != 0 {
				t.Skip("in short every third")
			}
			t.Parallel()
			limit := c.limit
			if limit == "" {
				limit = strictFixed
			}
			play := func(seed uint64, bug func(cfg *Config, m *mutation)) *Result {
				cfg, m := homed(t, limit), &mutation{}
				cfg.Seed += seed
				if c.world != nil {
					c.world(cfg, m)
				}
				if bug != nil {
					bug(cfg, m)
				}
				_, r, err := run(cfg, Options{Auditors: TestAuditors(strictAuditors...)}, m.rig)
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			if r := play(0, nil); r.Code() != ExitFine || r.Admitted == 0 {
				t.Errorf("without the bug: %d admitted, %+v", r.Admitted, violated(r))
			}
			// A schedule may miss a bug, and any change of what is sent is
			// another schedule.
			const seeds = 8
			found := make(map[string]string)
			missed := strings.Fields(c.caught)
			for seed := uint64(0); seed < seeds && len(missed) > 0; seed++ {
				for _, a := range violated(play(seed, c.bug)) {
					found[a.Name] = a.First
				}
				missed = slices.DeleteFunc(missed, func(name string) bool { return found[name] != "" })
			}
			if len(missed) > 0 {
				t.Errorf("auditors %v do not find the bug with %d seeds; others: %v", missed, seeds, slices.Sorted(maps.Keys(found)))
			}
		})
	}
}
