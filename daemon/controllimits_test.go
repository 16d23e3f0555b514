package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/daemon/report"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
)

// limitsWorld is a world whose daemons have their limits from files and from
// the control log.
type limitsWorld struct {
	*controlWorld
	files  map[string]string // by daemon, "" for none
	active map[string]*activeLimits
	ends   map[string]func() // stops the loop of a daemon
}

func edgeRules(requests int) string {
	return fmt.Sprintf("domain: edge\ndescriptors:\n  - {key: user, rate_limit: {unit: minute, requests_per_unit: %d}}\n", requests)
}

func newLimitsWorld(t *testing.T, daemons int, founders []string, regions ...string) *limitsWorld {
	t.Helper()
	w := &limitsWorld{
		controlWorld: newControlWorld(t, daemons, founders, regions...),
		files:        map[string]string{}, active: map[string]*activeLimits{}, ends: map[string]func(){},
	}
	open := w.mend
	w.mend = func(r *resident, cc *clusterConfig) {
		open(r, cc)
		l := newActiveLimits(cc.engine, func(set *rules.Set, keys keyRules) {
			cc.engine.SetRules(set, node.MatcherOptions{Blocked: keys.blocked, Resets: keys.resets[0]})
		}, cc.log)
		l.none, _ = rules.NewSet(nil)
		if err := l.follow(cc.control); err != nil {
			t.Fatal(err)
		}
		w.active[r.name] = l
		if w.files[r.name] != "" {
			w.read(r.name, w.files[r.name])
		}
		w.use(r.name)
	}
	t.Cleanup(func() {
		for _, r := range w.residents {
			w.keep(r.name)
		}
	})
	return w
}

// read gives a daemon other files.
func (w *limitsWorld) read(name, text string) {
	w.t.Helper()
	set, found := limits.Parse([]limits.File{{Name: "limits.yaml", Data: []byte(text)}}, limits.Options{})
	if err := found.Err(); err != nil {
		w.t.Fatal(err)
	}
	own, err := control.NewRuleSet([]control.RuleFile{{Name: "limits.yaml", Text: text}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.active[name].files(set, own, false)
}

// use makes a daemon follow the control log, and keep makes it go on with the
// limits that it has.
func (w *limitsWorld) use(name string) {
	ctx, cancel := context.WithCancel(context.Background())
	var loop sync.WaitGroup
	l := w.active[name]
	loop.Go(func() { l.run(ctx) })
	w.ends[name] = func() {
		cancel()
		loop.Wait()
	}
}

func (w *limitsWorld) keep(name string) {
	if end := w.ends[name]; end != nil {
		end()
		delete(w.ends, name)
	}
}

// kill ends a daemon like kill -9.
func (w *limitsWorld) kill(r *resident) {
	w.keep(r.name)
	w.controlWorld.kill(r)
}

// begin starts all daemons, and a cluster of them.
func (w *limitsWorld) begin(regions ...string) {
	w.t.Helper()
	w.start()
	first, all := w.residents[0].name, len(w.residents)-1
	w.within(10*time.Second, "all know each other", func() bool { return w.met(first, all) })
	w.init(first, regions...)
	w.within(20*time.Second, "all have the record, and a leader", func() bool { return w.equal(1) && w.leader() != "" })
}

func (w *limitsWorld) leader() string {
	for _, r := range w.alive() {
		if w.state(r.name).Status.Leads {
			return r.name
		}
	}
	return ""
}

// submit submits a change at a daemon, and returns its result.
func (w *limitsWorld) submit(name string, c control.LimitsChange) (control.Result, error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return w.loops[name].Submit(ctx, control.Request{Author: "operator", Change: control.Change{Limits: &c}})
}

// change submits a change that is not refused.
func (w *limitsWorld) change(name string, c control.LimitsChange) control.Version {
	w.t.Helper()
	r, err := w.submit(name, c)
	if err != nil || r.Err != nil {
		w.t.Fatalf("%v, %v", err, r.Err)
	}
	return r.Version
}

func rulesChange(t *testing.T, texts ...string) control.LimitsChange {
	t.Helper()
	var files []control.RuleFile
	for i, text := range texts {
		files = append(files, control.RuleFile{Name: fmt.Sprintf("%d.yaml", i), Text: text})
	}
	set, err := control.NewRuleSet(files)
	if err != nil {
		t.Fatal(err)
	}
	return control.LimitsChange{Rules: &control.RulesChange{Set: set}}
}

// requests are those of the rule for users at each live daemon, -1 without the
// rule.
func (w *limitsWorld) requests() []int {
	var all []int
	for _, r := range w.alive() {
		n := -1
		for _, rule := range r.engine.Rules().Rules() {
			if rule.Domain == "edge" && rule.Path == "user" {
				n = int(rule.Limit.Requests)
			}
		}
		all = append(all, n)
	}
	return all
}

// have reports whether all live daemons admit a number of requests.
func (w *limitsWorld) have(n int) bool {
	return !slices.ContainsFunc(w.requests(), func(is int) bool { return is != n })
}

// A lower limit is in force at each daemon as soon as it learns of it, and a
// higher one at all of them at the time that they agreed on.
func TestLimitsOfLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLimitsWorld(t, 2, []string{"us-0", "eu-0", "ap-0"}, "us", "eu", "ap")
		for _, r := range w.residents {
			w.files[r.name] = edgeRules(100)
		}
		w.begin("us", "eu", "ap")
		if !w.have(100) {
			t.Fatalf("%v requests, want those of the files", w.requests())
		}
		begin := time.Now()
		w.change("eu-1", rulesChange(t, edgeRules(40)))
		w.within(time.Second, "all have the lower limit", func() bool { return w.have(40) })
		if took := time.Since(begin); took > time.Second {
			t.Errorf("a lower limit was in force after %v", took)
		}
		w.within(15*time.Second, "it is in force", func() bool { return w.state("us-0").Status.Pending == control.Version{} })

		v := w.change("us-1", rulesChange(t, edgeRules(400)))
		w.within(5*time.Second, "the higher limit is agreed on", func() bool {
			s := w.state("ap-1").Record.Limits.Latest()
			return s.Version == v && s.From != 0
		})
		from := time.UnixMilli(w.state("ap-1").Record.Limits.Latest().From)
		if !w.have(40) || !time.Now().Before(from) {
			t.Errorf("%v requests before %v", w.requests(), from)
		}
		start := from.Add(time.Minute - 1).Truncate(time.Minute)
		time.Sleep(time.Until(start) - 10*time.Millisecond)
		if !w.have(40) {
			t.Errorf("%v requests before the window at %v", w.requests(), start)
		}
		time.Sleep(20 * time.Millisecond)
		if !w.have(400) {
			t.Errorf("%v requests in the window at %v", w.requests(), start)
		}
	})
}

// A change waits for a daemon that does not use it, and the status of each
// daemon names that one.
func TestLimitsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLimitsWorld(t, 2, []string{"us-0", "eu-0"}, "us", "eu")
		w.begin("us", "eu")
		w.keep("eu-1")
		v := w.change("us-0", rulesChange(t, edgeRules(40)))
		w.within(20*time.Second, "each daemon names eu-1", func() bool {
			for _, r := range w.alive() {
				w.loops[r.name].Do(func(n *control.Node) { n.Limits().Ask() })
				if s := w.state(r.name).Status; s.Pending != v || !slices.Equal(s.Waits, []string{"region eu: eu-1"}) {
					return false
				}
			}
			return true
		})
		if !w.have(-1) {
			t.Errorf("%v requests of a rule that is not in force", w.requests())
		}
		w.use("eu-1")
		w.within(15*time.Second, "all have the rule", func() bool { return w.have(40) })
	})
}

// A blocked key is denied everywhere, until its override ends.
func TestLimitsBlockedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLimitsWorld(t, 1, []string{"us-0", "eu-0"}, "us", "eu")
		for _, r := range w.residents {
			w.files[r.name] = edgeRules(1_000)
		}
		w.begin("us", "eu")
		var c node.Call
		c.Domain, c.Descriptors = "edge", []rules.Descriptor{descriptor(1, "user", "bad")}
		hits, _, err := w.find("us-0").engine.Peek(t.Context(), &c)
		if err != nil {
			t.Fatal(err)
		}
		key := fmt.Sprintf("%016x", uint64(hits[0].Key))
		allowed := func(user string) (n int) {
			for _, r := range w.alive() {
				if r.hits(1, "user", user) {
					n++
				}
			}
			return n
		}
		if n := allowed("bad"); n != 2 {
			t.Fatalf("%d daemons admit the key before", n)
		}
		block := control.OverrideChange{Override: control.Override{Target: control.Target{Key: key}, Setting: control.Setting{Block: true}, For: 60_000}}
		w.change("eu-0", control.LimitsChange{Override: &block})
		w.within(time.Second, "all deny the key", func() bool { return allowed("bad") == 0 })
		if n := allowed("good"); n != 2 {
			t.Errorf("%d daemons admit another key", n)
		}
		time.Sleep(50 * time.Second)
		if n := allowed("bad"); n != 0 {
			t.Errorf("%d daemons admit the key within its minute", n)
		}
		w.within(12*time.Second, "all admit the key again", func() bool { return allowed("bad") == 2 })
		if n := len(w.find("us-0").lines("an override ended", key+": block by operator")); n != 1 {
			t.Errorf("%d lines of the log about the end of the override, want 1", n)
		}
	})
}

// A key that was reset has its limit once more in the window that runs, at all
// daemons together. No daemon gives more back: not at
// the end of the window either. A reset keeps nobody from a block.
func TestLimitsResetKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLimitsWorld(t, 1, []string{"us-0", "eu-0"}, "us", "eu")
		for _, r := range w.residents {
			w.files[r.name] = edgeRules(50)
		}
		w.begin("us", "eu")
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + time.Second)))
		// Spends what is left of the key at all daemons, each second of some.
		spend := func(user string) (n int) {
			for range 5 {
				for range 30 {
					for _, r := range w.alive() {
						if r.hits(1, "user", user) {
							n++
						}
					}
				}
				time.Sleep(time.Second)
			}
			return n
		}
		eventual := 3 * 50 // two daemons may each admit some more before they know of the other
		if n := spend("bad"); n < 50 || n > eventual {
			t.Fatalf("%d hits admitted, want 50 or some more", n)
		}
		if n := spend("bad"); n != 0 {
			t.Fatalf("%d hits admitted of a key that is used up", n)
		}
		key := w.keyOf("bad")
		reset := control.OverrideChange{Override: control.Override{Target: control.Target{Key: key}, Setting: control.Setting{Reset: true}}}
		w.change("eu-0", control.LimitsChange{Override: &reset})
		w.within(time.Second, "all daemons know of the reset", func() bool {
			for _, r := range w.alive() {
				var c node.Call
				c.Domain, c.Descriptors = "edge", []rules.Descriptor{descriptor(1, "user", "bad")}
				hits, _, err := r.engine.Peek(t.Context(), &c)
				if err != nil || c.Statuses[0].ResetAt == 0 || fmt.Sprintf("%016x", uint64(r.engine.OriginalKey(hits[0].Key))) != key {
					return false
				}
			}
			return true
		})
		if n := spend("bad"); n < 50 || n > eventual {
			t.Errorf("%d hits admitted after the reset, want 50 or some more", n)
		}
		if n := spend("bad"); n != 0 {
			t.Errorf("%d hits admitted once the key is used up again", n)
		}
		// The next window has its limit, and a block is not kept by a reset.
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + time.Second)))
		if n := spend("bad"); n < 50 || n > eventual {
			t.Errorf("%d hits admitted in the next window", n)
		}
		block := control.OverrideChange{Override: control.Override{Target: control.Target{Key: key}, Setting: control.Setting{Block: true}, For: 60_000}}
		w.change("eu-0", control.LimitsChange{Override: &block})
		w.within(time.Second, "all deny the key", func() bool { return w.admit("bad") == 0 })
		if n := len(w.find("us-0").lines("an override ended", "reset")); n != 0 {
			t.Errorf("%d lines of the log about the end of a reset", n)
		}
	})
}

// A daemon with other files runs the rules of the log, and reports that. After
// a restart without files and without peers it has them from its disk.
func TestLimitsOfDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLimitsWorld(t, 1, []string{"us-0", "eu-0"}, "us", "eu")
		w.begin("us", "eu")
		w.change("us-0", rulesChange(t, edgeRules(40)))
		w.within(15*time.Second, "all have the rule", func() bool { return w.have(40) })
		eu := w.find("eu-0")
		const other = "domain: other\ndescriptors:\n  - {key: host, rate_limit: {unit: minute, requests_per_unit: 7}}\n"
		w.read("eu-0", edgeRules(70))
		want := []control.DomainSource{{Domain: "edge", From: control.SupplierLog, Agreed: true, Overruled: true}}
		if got := w.active["eu-0"].State(); !slices.Equal(got.Domains, want) || !w.have(40) {
			t.Errorf("%+v, %v requests", got, w.requests())
		}
		if n := len(eu.lines("files of limits differ")); n != 1 {
			t.Errorf("%d lines of the log about the files, want 1", n)
		}
		w.read("eu-0", other)
		want = []control.DomainSource{{Domain: "edge", From: control.SupplierLog, Agreed: true}, {Domain: "other", From: control.SupplierLocal}}
		if got := w.active["eu-0"].State(); !slices.Equal(got.Domains, want) || eu.engine.Rules().Domain("other") == nil || !w.have(40) {
			t.Errorf("%+v, %v requests, rules %v", got, w.requests(), eu.engine.Rules().Domains())
		}
		for _, r := range w.residents {
			w.kill(r)
		}
		eu.start()
		if !w.have(40) || !w.active["eu-0"].supplied() {
			t.Errorf("%v requests after a restart without files", w.requests())
		}
	})
}

// Files are adopted by a command, and after that as soon as all daemons have
// them. What is lower in the files of one daemon acts there before.
func TestLimitsAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLimitsWorld(t, 1, []string{"us-0", "eu-0"}, "us", "eu")
		for _, r := range w.residents {
			w.files[r.name] = edgeRules(100)
		}
		w.begin("us", "eu")
		w.read("us-0", edgeRules(90))
		if w.have(90) {
			t.Fatalf("%v requests by the files of one daemon", w.requests())
		}
		if a, err := w.command("us-0", api.AdoptRules, api.LimitsRequest{DryRun: true}); err != nil || a.Text != "files adopted in edge: 1, of which 0 are lower and 0 higher or moved" {
			t.Errorf("%+v, %v", a, err)
		}
		if _, err := w.command("us-0", api.AdoptRules, api.LimitsRequest{}); err != nil {
			t.Fatal(err)
		}
		w.within(65*time.Second, "all have the files of one daemon", func() bool { return w.have(90) })
		w.read("eu-0", edgeRules(90))
		w.read("eu-0", edgeRules(50))
		w.within(time.Second, "what is lower acts where it is", func() bool {
			return slices.Equal(w.requests(), []int{90, 50}) || slices.Equal(w.requests(), []int{50, 90})
		})
		time.Sleep(time.Minute)
		if n := len(w.state("us-0").Record.Limits.Applied); n != 1 {
			t.Errorf("%d versions of the rules while files differ", n)
		}
		w.read("us-0", edgeRules(50))
		w.within(15*time.Second, "the files of all are adopted", func() bool {
			l := w.state("eu-0").Record.Limits
			return len(l.Applied) == 2 && l.Pending() == control.Version{}
		})
		for _, r := range w.residents {
			w.read(r.name, edgeRules(200))
		}
		w.within(90*time.Second, "what is higher is in force", func() bool { return w.have(200) })
	})
}

// A daemon that cannot read the rules of the log keeps the former ones, does
// not acknowledge others, and denies blocked keys nevertheless.
func TestLimitsUnusable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLimitsWorld(t, 1, []string{"us-0"}, "us", "eu")
		w.options = func(r *resident) limits.Options {
			o := limits.Options{Replicated: true}
			if r.name == "eu-0" {
				o.NoRights = "eu-0 has no folder"
			}
			return o
		}
		w.files["us-0"], w.files["eu-0"] = edgeRules(100), edgeRules(100)
		w.begin("us", "eu")
		partition := strings.Replace(edgeRules(50), "requests_per_unit: 50", "requests_per_unit: 50, consistency: partition", 1)
		v := w.change("us-0", rulesChange(t, partition))
		w.within(10*time.Second, "eu-0 has the version", func() bool { return w.state("eu-0").Status.Pending == v })
		time.Sleep(15 * time.Second)
		if s := w.active["eu-0"].State(); !strings.Contains(s.Fault, "eu-0 has no folder") {
			t.Errorf("fault %q", s.Fault)
		}
		if s := w.state("us-0").Status; !slices.Equal(s.Waits, []string{"region eu: eu-0"}) {
			t.Errorf("waits for %v", s.Waits)
		}
		if got := w.requests(); !slices.Equal(got, []int{50, 100}) {
			t.Errorf("%v requests, want the lower ones where they are known", got)
		}
		if _, err := w.submit("eu-0", rulesChange(t, partition)); err == nil || !strings.Contains(err.Error(), "eu-0 has no folder") {
			t.Errorf("error %v", err)
		}
		block := control.OverrideChange{Override: control.Override{Target: control.Target{Key: w.keyOf("bad")}, Setting: control.Setting{Block: true}, For: 60_000}}
		w.change("us-0", control.LimitsChange{Override: &block})
		w.within(5*time.Second, "both deny the key", func() bool { return w.admit("bad") == 0 && w.admit("good") == 2 })
		w.change("us-0", rulesChange(t, edgeRules(30)))
		w.within(30*time.Second, "both have other rules", func() bool { return w.have(30) && w.active["eu-0"].State().Fault == "" })
	})
}

// A command has its result, also when it is repeated, and a command without a
// leader is not sent.
func TestLimitsCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLimitsWorld(t, 1, []string{"us-0", "eu-0", "ap-0"}, "us", "eu", "ap")
		w.start()
		w.within(10*time.Second, "all know each other", func() bool { return w.met("us-0", 2) })
		apply := rulesChange(t, edgeRules(40))
		if _, err := w.submit("us-0", apply); err != control.ErrNoCluster {
			t.Errorf("error %v before the cluster has begun", err)
		}
		w.init("us-0", "us", "eu", "ap")
		w.within(20*time.Second, "there is a leader", func() bool { return w.leader() != "" })
		for range 2 {
			r, err := w.loops["eu-0"].Submit(t.Context(), control.Request{ID: 7, Author: "operator", Change: control.Change{Limits: &apply}})
			if err != nil || r.Err != nil || r.ID != 7 {
				t.Fatalf("%+v, %v", r, err)
			}
		}
		r, err := w.submit("ap-0", apply)
		if err != nil || r.Err == nil || !strings.Contains(r.Err.Error(), "nothing to do") {
			t.Errorf("%+v, %v", r, err)
		}
		w.kill(w.find("us-0"))
		w.kill(w.find("ap-0"))
		w.within(time.Minute, "eu-0 has no leader", func() bool { return w.state("eu-0").Status.Leader == control.ID{} })
		if _, err := w.submit("eu-0", rulesChange(t, edgeRules(50))); err != report.ErrNoLeader {
			t.Errorf("error %v without a leader", err)
		}
		w.loops["eu-0"].Do(func(n *control.Node) {
			if got := len(w.loops["eu-0"].waiting); got != 0 {
				t.Errorf("%d commands wait", got)
			}
		})
	})
}
