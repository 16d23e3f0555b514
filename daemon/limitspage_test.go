package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/daemon/report"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
)

// page returns the status pages of a daemon.
func (w *limitsWorld) page(name string) *report.Report {
	r := w.report(name, "us", "eu", "ap")
	r.Limits, r.SharedKeys, r.Wall = w.active[name], true, time.Now
	r.LimitsFault = func() string { return "" }
	return r
}

// command executes a command at a daemon.
func (w *limitsWorld) command(name string, c api.LimitsCommandName, q api.LimitsRequest) (api.LimitsCommandAnswer, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), 4*time.Second)
	defer cancel()
	q.Author = "operator"
	return w.page(name).ChangeLimits(ctx, c, q)
}

// keyOf returns the hash of the key of a user.
func (w *limitsWorld) keyOf(user string) string {
	w.t.Helper()
	var c node.Call
	c.Domain, c.Descriptors = "edge", []rules.Descriptor{descriptor(1, "user", user)}
	hits, _, err := w.alive()[0].engine.Peek(w.t.Context(), &c)
	if err != nil {
		w.t.Fatal(err)
	}
	return fmt.Sprintf("%016x", uint64(hits[0].Key))
}

// admit returns how many live daemons admit a call of a user.
func (w *limitsWorld) admit(user string) (n int) {
	for _, r := range w.alive() {
		if r.hits(1, "user", user) {
			n++
		}
	}
	return n
}

// Without a majority, what lowers acts as an emergency override, and all else
// is refused. The override becomes an entry when there is a majority again.
func TestLimitsEmergency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLimitsWorld(t, 1, []string{"us-0", "eu-0", "ap-0"}, "us", "eu", "ap")
		w.begin("us", "eu", "ap")
		w.change("us-0", rulesChange(t, edgeRules(40)))
		w.within(15*time.Second, "all have the rule", func() bool { return w.have(40) })
		for _, name := range []string{"us-0", "ap-0"} {
			w.kill(w.find(name))
		}
		w.within(time.Minute, "eu-0 has no majority", func() bool {
			s := w.state("eu-0").Status
			return s.Leader == control.ID{} && !slices.ContainsFunc(s.Peers, func(p control.PeerStatus) bool { return p.Live })
		})
		block := api.LimitsRequest{ID: "00000000000000aa", Key: w.keyOf("bad"), ForSeconds: 600, Reason: "abuse"}
		for range 2 {
			a, err := w.command("eu-0", api.BlockKey, block)
			if err != nil || !a.Done || !a.Emergency || a.ID != block.ID {
				t.Fatalf("%+v, %v", a, err)
			}
		}
		w.within(time.Second, "eu-0 denies the key", func() bool { return w.admit("bad") == 0 && w.admit("good") == 1 })
		lower := api.LimitsRequest{Rule: "user", Requests: new(uint32(7)), ForSeconds: 600}
		if a, err := w.command("eu-0", api.SetOverride, lower); err != nil || !a.Emergency {
			t.Errorf("%+v, %v", a, err)
		}
		w.within(time.Second, "eu-0 has the lower limit", func() bool { return w.have(7) })
		for name, refused := range map[api.LimitsCommandName]api.LimitsRequest{
			api.SetOverride:   {Rule: "user", Requests: new(uint32(70)), ForSeconds: 600},
			api.UnsetOverride: {Rule: "user"},
			api.UnblockKey:    {Key: block.Key},
			api.ApplyRules:    {Files: []api.LimitsFile{{Name: "a.yaml", Text: edgeRules(3)}}},
		} {
			_, err := w.command("eu-0", name, refused)
			if err == nil || !strings.Contains(err.Error(), "1 of 3 voters are live") || !strings.Contains(err.Error(), "Nothing was changed") {
				t.Errorf("%s: error %v", name, err)
			}
		}
		tried, err := report.ChangeCluster(t.Context(), w.page("eu-0"), api.HoldFormat, api.ChangeRequest{DryRun: true})
		if err != nil || !strings.Contains(tried.Leaderless, "1 of 3 voters are live") {
			t.Errorf("a dry run: %+v, %v: want that there is no leader", tried, err)
		}
		list := w.page("eu-0").LimitsPage().Overrides
		if len(list) != 2 || !list[0].Emergency || list[0].Version != "" || list[0].Reason != "abuse" {
			t.Errorf("%+v", list)
		}
		for _, name := range []string{"us-0", "ap-0"} {
			w.find(name).start()
		}
		w.within(time.Minute, "all deny the key by an entry", func() bool {
			a, err := w.page("us-0").LimitsCommand(block.ID)
			return err == nil && a.Done && a.Version != "" && w.admit("bad") == 0 && w.admit("good") == 3
		})
		w.within(time.Minute, "the block is in force", func() bool {
			a, _ := w.page("us-0").LimitsCommand(block.ID)
			return !a.Pending
		})
		if !slices.ContainsFunc(w.page("us-0").LimitsPage().Overrides, func(o api.LimitsOverride) bool {
			return o.Key == block.Key && o.Emergency && o.Reason == block.Reason
		}) {
			t.Error("the entry lacks the reason of the emergency override")
		}
		if a, err := w.command("us-0", api.UnblockKey, api.LimitsRequest{Key: block.Key}); err != nil || !a.Done {
			t.Errorf("%+v, %v", a, err)
		}
		w.within(30*time.Second, "all admit the key", func() bool { return w.admit("bad") == 3 })
	})
}

// TestLimitsRefuses: each bad command has a clear refusal, and changes nothing.
func TestLimitsRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLimitsWorld(t, 1, []string{"us-0", "eu-0", "ap-0"}, "us", "eu", "ap")
		w.start()
		w.within(10*time.Second, "all know each other", func() bool { return w.met("us-0", 2) })
		one := []api.LimitsFile{{Name: "a.yaml", Text: edgeRules(3)}}
		if _, err := w.command("us-0", api.ApplyRules, api.LimitsRequest{Files: one}); err == nil || !strings.Contains(err.Error(), "first run rld cluster init") {
			t.Errorf("error %v", err)
		}
		w.init("us-0", "us", "eu", "ap")
		w.within(20*time.Second, "there is a leader", func() bool { return w.leader() != "" })
		w.change("us-0", rulesChange(t, edgeRules(40)))
		w.within(15*time.Second, "all have the rule", func() bool { return w.have(40) })
		before := w.state("us-0").Record.Changes
		past := time.Now().Add(-time.Hour)
		large := strings.Repeat("# a comment that has a line of its own\n", 4<<20/39+2)
		for _, tc := range []struct {
			name    string
			command api.LimitsCommandName
			request api.LimitsRequest
			want    string
		}{
			{"id", api.UnsetOverride, api.LimitsRequest{ID: "7", Rule: "user"}, "want 16 hexadecimal digits"},
			{"fault", api.ApplyRules, api.LimitsRequest{Files: []api.LimitsFile{{Name: "a.yaml", Text: "domain: 7\ndescriptors: []\nx: y"}}}, "a.yaml:3:1: "},
			{"size", api.ApplyRules, api.LimitsRequest{Files: []api.LimitsFile{{Name: "a.yaml", Text: large}}}, "want at most 1000 with 4194304"},
			{"other version", api.ApplyRules, api.LimitsRequest{Files: one, IfVersion: "77"}, "use --if-version 3"},
			{"version that never was", api.RollBackRules, api.LimitsRequest{Version: "99"}, "version 99 is none of the rules"},
			{"unknown rule", api.SetOverride, api.LimitsRequest{Rule: "users", Requests: new(uint32(7)), ForSeconds: 60}, `do you mean "user"?`},
			{"in the past", api.SetOverride, api.LimitsRequest{Rule: "user", Requests: new(uint32(7)), ForSeconds: 60, From: &past}, "is in the past"},
			{"for too long", api.SetOverride, api.LimitsRequest{Rule: "user", Requests: new(uint32(7)), ForSeconds: 1e12}, "want a length of 1 ms to 8784h0m0s"},
			{"no budget", api.SetOverride, api.LimitsRequest{Rule: "user", OverageBudget: new(0.02), ForSeconds: 60}, "has no overage_budget"},
			{"bad budget", api.SetOverride, api.LimitsRequest{Rule: "user", OverageBudget: new(-1.0), ForSeconds: 60}, "want 0 to 10"},
			{"no override", api.UnsetOverride, api.LimitsRequest{Rule: "user"}, "has no override"},
			{"other override", api.SetOverride, api.LimitsRequest{Rule: "user", Requests: new(uint32(7)), ForSeconds: 60, IfVersion: "77"}, "there is no override of version 77"},
			{"no key", api.BlockKey, api.LimitsRequest{Key: "ann", ForSeconds: 60}, "want a hash of 16 hexadecimal digits"},
		} {
			for _, dry := range []bool{false, true} {
				tc.request.DryRun = dry
				a, err := w.command("eu-0", tc.command, tc.request)
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s, dry run %t: %+v, %v; want %q", tc.name, dry, a, err, tc.want)
				}
			}
		}
		if rec := w.state("us-0").Record; len(rec.Limits.Overrides) != 0 || len(rec.Limits.Applied) != 1 || rec.Changes-before > 26 {
			t.Errorf("%d overrides and %d versions after refusals", len(rec.Limits.Overrides), len(rec.Limits.Applied))
		}
		r := w.page("us-0")
		r.SharedKeys = false
		_, err := r.ChangeLimits(t.Context(), api.BlockKey, api.LimitsRequest{Key: w.keyOf("bad"), ForSeconds: 60})
		if err == nil || !strings.Contains(err.Error(), "first set cluster.secret_file") {
			t.Errorf("error %v", err)
		}
		if !w.have(40) {
			t.Errorf("%v requests", w.requests())
		}
	})
}

// TestLimitsLatency measures the time from a command that blocks a key until
// each of nine daemons in three regions denies it.
func TestLimitsLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLimitsWorld(t, 3, []string{"us-0", "eu-0", "ap-0"}, "us", "eu", "ap")
		for _, r := range w.residents {
			w.files[r.name] = edgeRules(1_000_000)
		}
		w.begin("us", "eu", "ap")
		rounds := 200
		if testing.Short() {
			rounds = 20
		}
		var took []time.Duration
		for i := range rounds {
			user := fmt.Sprintf("user-%d", i)
			block := control.OverrideChange{Override: control.Override{Target: control.Target{Key: w.keyOf(user)}, Setting: control.Setting{Block: true}, For: 3_600_000}}
			begin, at := time.Now(), w.residents[i%len(w.residents)].name
			done := make(chan struct{})
			go func() {
				defer close(done)
				w.change(at, control.LimitsChange{Override: &block})
			}()
			open := slices.Clone(w.residents)
			for len(open) > 0 {
				time.Sleep(2 * time.Millisecond)
				open = slices.DeleteFunc(open, func(r *resident) bool {
					denied := !r.hits(1, "user", user)
					if denied {
						took = append(took, time.Since(begin))
					}
					return denied
				})
				if time.Since(begin) > 20*time.Second {
					t.Fatalf("%d daemons admit the key after 20 s", len(open))
				}
			}
			<-done
		}
		slices.Sort(took)
		p99 := took[len(took)*99/100]
		t.Logf("%d rounds: median %v, p99 %v, longest %v", rounds, took[len(took)/2], p99, took[len(took)-1])
		if p99 > time.Second {
			t.Errorf("p99 %v, want at most 1 s", p99)
		}
	})
}

// TestBackup: a backup has the weights, the rules and the overrides that have
// not ended, and a cluster begins with its weights. One that does not fit the
// settings is refused, and nothing begins.
func TestBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLimitsWorld(t, 1, []string{"us-0", "eu-0", "ap-0"}, "us", "eu", "ap")
		w.start()
		w.within(10*time.Second, "all know each other", func() bool { return w.met("us-0", 2) })
		if _, err := report.Backup(w.page("us-0"), time.Now()); err == nil || !strings.Contains(err.Error(), "has not begun") {
			t.Errorf("error %v", err)
		}
		weights := func(us, eu, ap uint32) []api.BackupRegion {
			return []api.BackupRegion{{Name: "us", Weight: us}, {Name: "eu", Weight: eu}, {Name: "ap", Weight: ap}}
		}
		for _, tc := range []struct {
			request api.InitRequest
			want    string
		}{
			{api.InitRequest{Regions: append(weights(500_000, 300_000, 100_000), api.BackupRegion{Name: "sa", Weight: 100_000})}, `region "sa" of the backup is not in the settings of this daemon: add it to regions, or`},
			{api.InitRequest{Regions: weights(500_000, 500_000, 0)}, `region "ap" of the backup has the weight 0`},
			{api.InitRequest{Regions: weights(500_000, 300_000, 200_000)[:2]}, `region "ap" of the settings is not in the backup`},
		} {
			if _, err := w.page("us-0").InitCluster(tc.request); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		}
		all := append(weights(450_000, 270_000, 180_000), api.BackupRegion{Name: "sa", Weight: 100_000})
		if a, err := w.page("us-0").InitCluster(api.InitRequest{Regions: all, Without: []string{"sa"}}); err != nil || !a.UnderWay {
			t.Fatalf("%+v, %v", a, err)
		}
		w.within(20*time.Second, "all have the record, and a leader", func() bool { return w.equal(1) && w.leader() != "" })
		w.change("us-0", rulesChange(t, edgeRules(40)))
		w.within(15*time.Second, "all have the rule", func() bool { return w.have(40) })
		for _, q := range []struct {
			c api.LimitsCommandName
			q api.LimitsRequest
		}{
			{api.SetOverride, api.LimitsRequest{Rule: "user", Requests: new(uint32(7)), ForSeconds: 60}},
			{api.BlockKey, api.LimitsRequest{Key: w.keyOf("bad"), ForSeconds: 3600, Reason: "abuse"}},
			{api.ResetKey, api.LimitsRequest{Key: w.keyOf("good")}},
		} {
			if _, err := w.command("eu-0", q.c, q.q); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * time.Minute) // the override of the rule ends
		b, err := report.Backup(w.page("ap-0"), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]uint32{}
		for _, g := range b.Regions {
			got[g.Name] = g.Weight
		}
		if len(got) != 3 || got["us"] != 500_000 || got["eu"] != 300_000 || got["ap"] != 200_000 {
			t.Errorf("weights %v", got)
		}
		if len(b.Files) != 1 || b.Files[0].Text != edgeRules(40) || len(b.Overrides) != 1 || b.Overrides[0].Command != api.BlockKey || b.Overrides[0].Reason != "abuse" {
			t.Errorf("backup %+v", b)
		}
	})
}
