package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/config"
	"github.com/georld/rld/control"
	"github.com/georld/rld/disk"
	"github.com/georld/rld/disk/osdir"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/replica"
)

// rightsWorld is a world whose daemons hold rights of the control log.
type rightsWorld struct {
	*controlWorld
	agents map[string]*rightsLoop
}

func newRightsWorld(t *testing.T, daemons int, regions ...string) *rightsWorld {
	t.Helper()
	var founders []string
	for _, r := range regions {
		founders = append(founders, r+"-0")
	}
	w := &rightsWorld{newControlWorld(t, daemons, founders, regions...), map[string]*rightsLoop{}}
	log := w.mend
	w.mend = func(r *resident, cc *clusterConfig) {
		log(r, cc)
		storage := cc.control.storage
		storage.RefuseDamage, storage.Diskless = false, slices.Contains(w.diskless, r.name)
		cc.agent = &rightsLoop{
			log: cc.log, storage: storage, control: cc.control, news: make(chan struct{}, 1), why: epoch.ReasonNoCluster,
			config: agent.Config{Region: r.region, Name: r.name, DaemonHorizon: agent.DefaultDaemonHorizon, Diskless: storage.Diskless},
		}
		w.agents[r.name], cc.control.written = cc.agent, cc.agent.news
	}
	return w
}

// start starts a daemon, with an empty disk if the former one is lost.
func (w *rightsWorld) restart(r *resident, lost bool) {
	if lost {
		w.folders[r.name] = &weakFolder{Dir: osdir.Dir(w.t.TempDir())}
	}
	r.start()
}

// end ends a daemon.
func (w *rightsWorld) end(r *resident) {
	f := w.agents[r.name]
	w.kill(r)
	if f.lock != nil {
		f.lock.Close()
	}
}

// held returns the rights of 900 in a window that starts now, of the daemons of
// some regions, all without any.
func (w *rightsWorld) held(regions ...string) (sum uint64) {
	for _, r := range w.alive() {
		if len(regions) > 0 && !strings.Contains(strings.Join(regions, " "), r.region) {
			continue
		}
		n, _ := w.agents[r.name].Allotment(1, 900, r.engine.Time(r.engine.Now()).Millis(), 0, false)
		sum += n
	}
	return sum
}

// submit has a daemon submit a command, and waits for its outcome.
func (w *rightsWorld) submit(name string, c control.Change) error {
	w.t.Helper()
	var id control.Number
	err := errors.New("closed")
	w.loops[name].Do(func(n *control.Node) { id, err = n.Submit(control.Request{Author: "test", Change: c}) })
	if err != nil {
		return err
	}
	var o *control.Outcome
	w.within(20*time.Second, "an outcome", func() bool { o = w.state(name).Record.Outcome(id); return o != nil })
	if o.Refused != "" {
		return errors.New(o.Refused)
	}
	return nil
}

// all reports whether nothing of the rights is unused, but for rounding.
func (w *rightsWorld) all() bool { return w.held() >= 895 }

// dump logs why daemons hold nothing.
func (w *rightsWorld) dump() {
	for _, r := range w.alive() {
		w.t.Logf("%s: %+v", r.name, w.agents[r.name].Status())
	}
}

func (w *rightsWorld) soon(atMost time.Duration, what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(atMost); !ok(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			w.dump()
			w.t.Fatalf("not within %v: %s", atMost, what)
		}
		if n := w.held(); n > 900 {
			w.dump()
			w.t.Fatalf("%d of 900 held", n)
		}
	}
}

// TestRightsOfACluster: nobody holds rights before the cluster begins, and all
// of them afterwards. A daemon whose disk is lost joins anew. A region whose
// disks are all lost is removed, and added again with its empty disks.
func TestRightsOfACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; the complete run has it")
	}
	synctest.Test(t, func(t *testing.T) {
		w := newRightsWorld(t, 3, "ap", "eu", "us")
		w.start()
		w.within(10*time.Second, "all have met", func() bool { return w.met("us-0", 8) && w.met("eu-0", 8) && w.met("ap-0", 8) })
		if n, why := w.agents["us-0"].Allotment(1, 900, time.Now().UnixMilli(), 0, false); n != 0 || why != epoch.ReasonNoCluster {
			t.Errorf("%d held before the cluster began: %v", n, why)
		}
		w.init("us-0", "ap", "eu", "us")
		w.soon(20*time.Second, "all is held", w.all)

		lost := w.find("us-1")
		id := w.state("us-1").Status.ID
		w.end(lost)
		w.restart(lost, true)
		w.soon(60*time.Second, "a daemon without its disk joins", func() bool {
			return w.all() && len(w.agents["us-1"].Status().Daemons) > 0 && w.agents["us-1"].Status().Holds
		})
		if w.state("us-1").Status.ID == id {
			t.Error("a daemon without its disk has its former id")
		}

		for _, name := range []string{"eu-0", "eu-1", "eu-2"} {
			w.end(w.find(name))
		}
		time.Sleep(2 * time.Minute) // the log replaces no voter of the region
		remove := control.Change{Region: &control.RegionChange{Op: control.RemoveRegion, Name: "eu", Stopped: true}}
		if err := w.submit("us-0", remove); err != nil {
			t.Fatal(err)
		}
		w.soon(30*time.Second, "the others hold all", w.all)
		for _, name := range []string{"eu-0", "eu-1", "eu-2"} {
			w.restart(w.find(name), true)
		}
		time.Sleep(20 * time.Second)
		if n := w.held("eu"); n != 0 || !w.all() {
			w.dump()
			t.Errorf("a region that was removed holds %d, all hold %d", n, w.held())
		}
		if err := w.submit("us-0", control.Change{Region: &control.RegionChange{Op: control.AddRegion, Name: "eu", Weight: 400_000}}); err != nil {
			t.Fatal(err)
		}
		w.soon(30*time.Second, "the region holds its share", func() bool { return w.held("eu") >= 357 && w.all() })
	})
}

// TestRemoveDrainedRegion: a region that drains is removed while its daemons
// run. The shares of the others settle, also those of later changes.
func TestRemoveDrainedRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRightsWorld(t, 1, "ap", "eu", "us")
		w.start()
		w.within(10*time.Second, "all have met", func() bool { return w.met("us-0", 2) && w.met("eu-0", 2) && w.met("ap-0", 2) })
		w.init("us-0", "ap", "eu", "us")
		w.soon(20*time.Second, "all is held", w.all)
		change := func(c control.RegionChange) {
			t.Helper()
			if err := w.submit("us-0", control.Change{Region: &c}); err != nil {
				t.Fatal(err)
			}
		}
		change(control.RegionChange{Op: control.DrainRegion, Name: "eu"})
		w.soon(30*time.Second, "the others hold all", func() bool { return w.held("eu") == 0 && w.all() })
		time.Sleep(30 * time.Second)
		change(control.RegionChange{Op: control.RemoveRegion, Name: "eu"})
		change(control.RegionChange{Op: control.WeighRegion, Name: "us", Weight: 900_000})
		w.soon(2*time.Minute, "a later change settles", func() bool { return w.held("us") >= 805 && w.all() })
	})
}

// TestRightsAfterRestarts: daemons go on with their records. One whose record
// is lost, but not its control log, has a new id; that of a former id is kept.
func TestRightsAfterRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRightsWorld(t, 1, "ap", "eu", "us")
		w.start()
		w.within(10*time.Second, "all have met", func() bool { return w.met("us-0", 2) && w.met("eu-0", 2) })
		w.init("us-0", "ap", "eu", "us")
		w.soon(20*time.Second, "all is held", w.all)
		id := w.state("us-0").Status.ID
		us := w.find("us-0")
		w.end(us)
		w.restart(us, false)
		w.soon(20*time.Second, "all is held after a restart", w.all)
		if w.state("us-0").Status.ID != id {
			t.Error("a restart gives a daemon another id")
		}

		w.end(us)
		folder := string(w.folders["us-0"].Dir)
		if err := os.Remove(filepath.Join(folder, replica.RightsFile)); err != nil {
			t.Fatal(err)
		}
		w.restart(us, false)
		w.soon(20*time.Second, "another id", func() bool { return w.state("us-0").Status.ID != id })
		time.Sleep(20 * time.Second)
		if n := w.held("us"); n != 0 {
			w.dump()
			t.Errorf("a daemon whose record is lost holds %d", n)
		}
		if r := w.state("eu-0").Record; r.DeadID(id) == nil {
			t.Error("the former id is not dead")
		}

		w.loops["us-0"].Do(func(n *control.Node) { control.RightsOf(n).Renew("as the test says") })
		w.soon(20*time.Second, "the former record is moved aside", func() bool {
			all, err := os.ReadDir(filepath.Join(folder, "state.former"))
			return err == nil && len(all) == 1
		})
	})
}

// beginRegion returns a region of three daemons that hold rights and vote, and
// whether they do.
func beginRegion(t *testing.T) (w *rightsWorld, whole func() bool) {
	t.Helper()
	w = newRightsWorld(t, 3, "us")
	w.start()
	w.within(10*time.Second, "all have met", func() bool { return w.met("us-0", 2) && w.met("us-2", 2) })
	w.init("us-0", "us")
	whole = func() bool { return w.all() && w.state("us-0").Record.Voting() == 3 && w.agents["us-2"].Status().Holds }
	w.soon(2*time.Minute, "all hold rights and vote", whole)
	return w, whole
}

// TestDamagedRecord: a daemon with a damaged record goes on under a new id,
// which its region admits. It refuses the file of another daemon, and tries
// again.
func TestDamagedRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, whole := beginRegion(t)
		us, file := w.find("us-2"), w.folders["us-2"].Path(replica.RightsFile)
		change := func(by func([]byte)) (was []byte) {
			t.Helper()
			w.end(us)
			was, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			is := slices.Clone(was)
			by(is)
			if err := os.WriteFile(file, is, 0o600); err != nil {
				t.Fatal(err)
			}
			w.restart(us, false)
			return was
		}
		id := w.state("us-2").Status.ID
		good := change(func(data []byte) { data[0] ^= 1 })
		time.Sleep(15 * time.Second)
		if s := w.agents["us-2"].Status(); w.held("us") > 895 || !strings.Contains(s.Failing, replica.RightsFile) {
			t.Errorf("%d held with a file that is none: %+v", w.held(), s)
		}
		if err := os.WriteFile(file, good, 0o600); err != nil {
			t.Fatal(err)
		}
		w.soon(replica.RetryAfter+10*time.Second, "all is held with the record", whole)
		if w.state("us-2").Status.ID != id {
			t.Error("a record that was foreign for a while gives a daemon another id")
		}

		change(func(data []byte) { data[len(data)-1] ^= 1 })
		w.soon(20*time.Second, "another id", func() bool { return w.state("us-2").Status.ID != id })
		w.soon(2*time.Minute, "all is held under another id", whole)
		if w.state("us-0").Record.DeadID(id) == nil {
			t.Error("the former id is not dead")
		}
		kept, err := filepath.Glob(w.folders["us-2"].Path(filepath.Join("state.former", "*", replica.RightsFile)))
		if err != nil || len(kept) != 1 {
			t.Errorf("%q, %v: want the damaged record", kept, err)
		}
	})
}

// TestFormerRecord: a daemon whose record of rights is a former one goes on
// under a new id, also if all of its files are, and nothing but rights was
// stored since.
func TestFormerRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; the complete run has it")
	}
	for what, files := range map[string][]string{
		"the record alone": {replica.RightsFile}, "all files": {replica.RightsFile, replica.ControlFile},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, whole := beginRegion(t)
				time.Sleep(2 * time.Minute) // nothing but horizons is stored any more
				us, id := w.find("us-2"), w.state("us-2").Status.ID
				former := map[string][]byte{}
				for _, name := range files {
					data, err := os.ReadFile(w.folders["us-2"].Path(name))
					if err != nil {
						t.Fatal(err)
					}
					former[name] = data
				}
				time.Sleep(20 * time.Second)
				w.end(us)
				for name, data := range former {
					if err := os.WriteFile(w.folders["us-2"].Path(name), data, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				w.restart(us, false)
				w.soon(20*time.Second, "another id", func() bool {
					is := w.state("us-2").Status.ID
					return is != id && is != (control.ID{})
				})
				w.soon(2*time.Minute, "all is held under another id", whole)
				if w.state("us-0").Record.DeadID(id) == nil {
					t.Error("the former id is not dead")
				}
			})
		})
	}
}

// TestLockedFolder: a daemon whose folder cannot be locked reports that, and
// holds rights as soon as it can. Then no later run can take up the accounts of
// the former one.
func TestLockedFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRightsWorld(t, 1, "us")
		lock, err := w.folders["us-0"].Lock("lock")
		if err != nil {
			t.Fatal(err)
		}
		w.start()
		if err := w.agents["us-0"].storage.StoreAccounts(&replica.Leftover{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		w.init("us-0", "us")
		time.Sleep(15 * time.Second)
		if s := w.agents["us-0"].Status(); w.held() != 0 || !strings.Contains(s.Failing, "another process") {
			t.Errorf("%d held in the folder of another process: %+v", w.held(), s)
		}
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
		w.soon(replica.RetryAfter+10*time.Second, "all is held", w.all)
		if s := w.agents["us-0"].Status(); s.Failing != "" {
			t.Errorf("%+v: want no fault", s)
		}
		if left, err := w.agents["us-0"].storage.TakeAccounts(); left != nil || err != nil {
			t.Errorf("%+v, %v: want no accounts", left, err)
		}
	})
}

// TestAgentFolder refuses a folder that cannot be written at the start, and one
// that another process uses.
func TestAgentFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	c.Region, c.Name, c.State.Dir = "eu", "eu-0", filepath.Join(file, "folder")
	if err := Run(context.Background(), Options{Config: c, Secret: []byte("one")}); err == nil || !strings.Contains(err.Error(), "state.dir") {
		t.Errorf("%v, want an error that names state.dir", err)
	}
	first := &rightsLoop{log: (&world{}).discard(), storage: replica.Storage{Folder: osdir.Dir(t.TempDir())}}
	second := &rightsLoop{log: first.log, storage: first.storage}
	if err := first.lockFolder(); err != nil {
		t.Fatal(err)
	}
	if err := second.lockFolder(); !errors.Is(err, disk.ErrInUse) {
		t.Errorf("%v: want that another process uses the folder", err)
	}
	first.lock.Close()
}

// TestFence: an acceptor without its journal begins with a number that no clock
// showed to its former run.
func TestFence(t *testing.T) {
	at := time.UnixMilli(1_767_225_600_000)
	d := &daemon{Options: Options{Config: config.Default(), Wall: func() time.Time { return at }}}
	d.Config.Clock.MaxOffset = 250 * time.Millisecond
	if got, want := d.storage("strict").Fence, at.UnixMilli()+500; got != want {
		t.Errorf("fence %d, want %d", got, want)
	}
}

func testNode(region, name string) node.Config {
	c := node.Default()
	c.Region, c.Name = region, name
	return c
}

// TestLimitsWaitForHolders: a change of the rules is in force when all daemons
// that may hold rights have it. Those are also daemons that are not live, until
// their horizon is over.
func TestLimitsWaitForHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRightsWorld(t, 3, "eu", "us")
		w.holders = true
		w.start()
		w.within(10*time.Second, "all have met", func() bool { return w.met("us-0", 5) && w.met("eu-0", 5) })
		w.init("us-0", "eu", "us")
		w.soon(20*time.Second, "all is held", w.all)

		var waits []string
		apply := func(requests int) time.Duration {
			t.Helper()
			change := rulesChange(t, edgeRules(requests))
			if err := w.submit("us-0", control.Change{Limits: &change}); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			w.soon(2*time.Minute, "the change is in force", func() bool {
				for _, r := range w.alive() {
					w.loops[r.name].Do(func(n *control.Node) { n.Limits().InUse(n.Record()) })
					waits = append(waits, w.state(r.name).Status.Waits...)
				}
				return w.state("us-0").Record.Limits.Pending() == control.Version{}
			})
			return time.Since(begin)
		}
		if took := apply(100); took > 5*time.Second {
			t.Errorf("a change took %v", took)
		}
		w.end(w.find("eu-2"))
		w.soon(20*time.Second, "the membership lacks a daemon", func() bool { return w.met("us-0", 4) })
		if took := apply(200); took < 10*time.Second || took > time.Minute {
			t.Errorf("a change took %v while a daemon may hold rights", took)
		}
		if !slices.Contains(waits, "region eu, in which a daemon that may hold rights is not reached: eu-2") {
			slices.Sort(waits)
			t.Errorf("the change waited for %q: want eu-2 named", slices.Compact(waits))
		}
		if took := apply(300); took > 5*time.Second {
			t.Errorf("a change took %v after the horizon", took)
		}
	})
}
