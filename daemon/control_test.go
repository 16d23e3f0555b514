package daemon

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/replica"
)

// Three regions found a cluster by a command at a diskless daemon. A command at
// any daemon reaches all. Daemons that restart keep their id and catch up.
func TestControlBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newControlWorld(t, 2, []string{"us-0", "eu-0", "ap-0"}, "us", "eu", "ap")
		w.diskless = []string{"us-1", "eu-1", "ap-1"}
		for _, r := range w.residents {
			r.start()
			time.Sleep(700 * time.Millisecond)
		}
		// The first message counts, whichever daemon knows the other one first.
		w.within(20*time.Second, "all are connected", w.whole)
		w.within(2*time.Second, "all know each other", func() bool {
			return !slices.ContainsFunc(w.residents, func(r *resident) bool { return !w.met(r.name, 5) })
		})
		w.init("us-1", "us", "eu", "ap")
		w.within(30*time.Second, "all have the record", func() bool { return w.equal(1) })
		begun := uint64(0)
		for _, r := range w.residents {
			begun += w.state(r.name).Events[control.Begun.String()]
		}
		if begun != 1 {
			t.Errorf("the cluster began %d times", begun)
		}
		for i, r := range w.residents {
			w.note(r.name, "from "+r.name)
			w.within(5*time.Second, "all have the command", func() bool { return w.equal(2 + i) })
		}

		eu := w.find("eu-0")
		id := w.state("eu-0").Status.ID
		w.kill(eu)
		w.within(10*time.Second, "the others go on", func() bool { return w.state("us-0").Status.Leader != control.ID{} })
		w.note("us-0", "without eu-0")
		w.within(10*time.Second, "the others have the command", func() bool { return w.equal(8) })
		eu.start()
		w.within(10*time.Second, "eu-0 caught up", func() bool { return w.equal(8) })
		if got := w.state("eu-0").Status; got.ID != id || !got.Votes {
			t.Errorf("eu-0 votes %v as %v, want as %v", got.Votes, got.ID, id)
		}
	})
}

// A disk that is full keeps a daemon neither from serving nor from starting. It
// takes part again as soon as there is room.
func TestControlFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newControlWorld(t, 3, []string{"us-0", "us-1", "us-2"}, "us")
		full := w.folders["us-2"]
		full.full.Store(true)
		w.start()
		w.within(10*time.Second, "all are ready", w.whole)
		if s := w.state("us-2"); !strings.Contains(s.Fault, errNoSpace.Error()) {
			t.Errorf("fault %q, want the one of the disk", s.Fault)
		}
		page := w.report("us-2", "us").ClusterPage().Cluster
		if page.Begun || !strings.Contains(page.Waiting, "is not open") || len(page.Problems) != 1 || !strings.Contains(page.Problems[0], "check the disk of state.dir") {
			t.Errorf("%+v: want the fault of the disk, and what to do", page)
		}
		w.init("us-0", "us")
		w.within(10*time.Second, "two founders begin", func() bool { return w.state("us-0").Record != nil && w.state("us-1").Record != nil })
		full.full.Store(false)
		w.within(20*time.Second, "us-2 follows", func() bool { return w.equal(1) })
		if s := w.state("us-2"); s.Fault != "" {
			t.Errorf("fault %q with room on the disk", s.Fault)
		}

		full = w.folders["us-0"]
		full.full.Store(true)
		w.note("us-1", "while us-0 stores nothing")
		w.within(20*time.Second, "us-0 reports its disk", func() bool { return w.state("us-0").Status.Failing != "" })
		if !w.find("us-0").hits(1, "user", "someone") {
			t.Error("us-0 does not decide")
		}
		full.full.Store(false)
		w.within(20*time.Second, "us-0 stores again", func() bool { return w.state("us-0").Status.Failing == "" && w.equal(2) })
	})
}

// A slow disk delays neither messages of other daemons nor decisions.
func TestControlSlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newControlWorld(t, 1, []string{"us-0", "eu-0", "ap-0"}, "us", "eu", "ap")
		w.start()
		w.within(10*time.Second, "all know each other", func() bool { return w.met("us-0", 2) })
		w.init("us-0", "us", "eu", "ap")
		w.within(30*time.Second, "all have the record", func() bool { return w.equal(1) })
		slow, others := "", []string{}
		w.within(10*time.Second, "there is a leader", func() bool { return w.state("us-0").Status.Leader != control.ID{} })
		for _, r := range w.residents { // a leader with such a disk loses its lead
			if slow == "" && !w.state(r.name).Status.Leads {
				slow = r.name
			} else {
				others = append(others, r.name)
			}
		}
		w.folders[slow].slow.Store(int64(time.Minute))
		w.note(others[0], "stored late")
		begin := time.Now()
		w.within(10*time.Second, "two of three have the command", func() bool {
			return len(w.state(others[0]).Record.History) == 2 && len(w.state(others[1]).Record.History) == 2
		})
		if !w.find(slow).hits(1, "user", "someone") {
			t.Errorf("%s does not decide", slow)
		}
		w.within(30*time.Second, slow+" reads the messages of the others", func() bool {
			p := w.state(slow).Status.Peers
			return time.Since(begin) > 20*time.Second && len(p) == 2 && p[0].Age < 5*time.Second && p[1].Age < 5*time.Second
		})
		w.folders[slow].slow.Store(0)
		w.within(2*time.Minute, slow+" has it too", func() bool { return w.equal(2) })
	})
}

// A damaged journal is refused, and is not changed. The error names the way
// out.
func TestControlDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newControlWorld(t, 1, []string{"us-0"}, "us")
		r := w.residents[0]
		r.start()
		w.within(10*time.Second, "us-0 has joined", func() bool { return w.find("us-0").ready.Load() })
		w.init("us-0", "us")
		w.within(10*time.Second, "the cluster has begun", func() bool { return w.equal(1) })
		w.kill(r)
		path := w.folders["us-0"].Path(replica.ControlFile)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)/2] ^= 1
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			err = w.loop(r, r.world.discard()).open()
			if err == nil || !strings.Contains(err.Error(), "state.dir: journal: "+path+" is damaged at byte") ||
				!strings.Contains(err.Error(), "rld daemon reset") {
				t.Errorf("got %v, want an error with the file and the way out", err)
			}
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, data) {
			t.Errorf("the damaged file was changed: %v", err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		c := w.loop(r, r.world.discard())
		if err := c.open(); err != nil {
			t.Error(err)
		}
		c.close()
	})
}

// A daemon whose journal is put back from an older copy goes on under a new id,
// which its streams prove: all daemons agree with it again.
func TestControlOldDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newControlWorld(t, 1, []string{"us-0", "eu-0", "ap-0"}, "us", "eu", "ap")
		w.start()
		w.within(10*time.Second, "all know each other", func() bool { return w.met("us-0", 2) })
		w.init("us-0", "us", "eu", "ap")
		w.within(30*time.Second, "all have the record", func() bool { return w.equal(1) })
		eu := w.find("eu-0")
		w.kill(eu)
		path := w.folders["eu-0"].Path(replica.ControlFile)
		old, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		eu.start()
		w.note("us-0", "after the copy")
		w.within(20*time.Second, "all have the command", func() bool { return w.equal(2) })
		id := w.state("eu-0").Status.ID
		w.kill(eu)
		if err := os.WriteFile(path, old, 0o600); err != nil {
			t.Fatal(err)
		}
		eu.start()
		w.within(30*time.Second, "eu-0 has another id", func() bool { return w.state("eu-0").Status.ID != id })
		w.within(30*time.Second, "all agree again", func() bool {
			s, o := w.state("eu-0").Status, w.state("us-0").Status
			return s.Version == o.Version && s.Hash == o.Hash && !s.Starting
		})
		w.within(30*time.Second, "the record has the id among the dead ones", func() bool {
			r := w.state("us-0").Record
			return r.DeadID(id) != nil
		})
		if n := len(eu.lines("the control log on disk is older")); n != 1 {
			t.Errorf("%d lines of the log about the old disk, want 1", n)
		}
		if all := w.find("us-0").lines("protocol error"); len(all) != 0 {
			t.Errorf("messages under the new id came on streams of the former one: %v", all)
		}
	})
}

// The journal does not grow without bound: a restart reads the result of its
// rewrites.
func TestControlCompacts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newControlWorld(t, 1, []string{"us-0"}, "us")
		w.compact = 1
		r := w.residents[0]
		r.start()
		w.within(10*time.Second, "us-0 has joined", func() bool { return r.ready.Load() })
		w.init("us-0", "us")
		const notes = 100
		w.within(10*time.Second, "us-0 leads", func() bool { return w.state("us-0").Status.Leads })
		largest, last := int64(0), int64(0)
		rewrites := 0
		for i := range notes {
			w.note("us-0", fmt.Sprint(i))
			w.within(10*time.Second, "the command is done", func() bool { return w.equal(2 + i) })
			size, err := w.folders["us-0"].Size(replica.ControlFile)
			if err != nil {
				t.Fatal(err)
			}
			if size < last {
				rewrites++
			}
			largest, last = max(largest, size), size
		}
		if rewrites < 2 {
			t.Errorf("%d rewrites, of up to %d bytes", rewrites, largest)
		}
		w.kill(r)
		r.start()
		w.within(20*time.Second, "us-0 leads again", func() bool { return w.state("us-0").Status.Leads && w.equal(notes+1) })
	})
}

// A daemon that leaves waits until its vote is handed over, and not if nobody
// can take it.
func TestControlLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newControlWorld(t, 2, []string{"us-0", "eu-0", "ap-0"}, "us", "eu", "ap")
		w.diskless = []string{"eu-1", "ap-1"}
		w.start()
		w.within(10*time.Second, "all know each other", func() bool { return w.met("us-0", 5) })
		w.init("us-0", "us", "eu", "ap")
		w.within(30*time.Second, "all have the record", func() bool { return w.equal(1) })
		quit := func(name string) time.Duration {
			r, begin := w.find(name), time.Now()
			r.retire()
			r.leave()
			r.cluster = nil
			w.loops[name].close()
			w.loops[name] = nil
			return time.Since(begin)
		}
		if took := quit("us-0"); took > handOverWait+leaveWait {
			t.Errorf("us-0 left after %v", took)
		}
		if !w.votes("us-1", "ap-0") {
			t.Error("us-1 has not taken the vote of us-0")
		}
		if len(w.find("ap-0").lines("a voter was removed", "us/us-0")) != 1 {
			t.Error("the log of ap-0 does not name the daemon whose vote ended")
		}
		if took := quit("eu-0"); took > leaveWait+time.Second {
			t.Errorf("eu-0 left after %v, and nobody could take its vote", took)
		}
	})
}

// Two daemons of one name are not two founders: the one that does not hold the
// name has no part in the control log, although another region reaches it.
func TestControlNameHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newControlWorld(t, 2, []string{"us-0", "eu-0"}, "us", "eu")
		first, second, eu := w.find("us-0"), w.find("us-1"), w.find("eu-0")
		first.start()
		eu.start()
		w.within(10*time.Second, "two have met", func() bool { return w.met("us-0", 1) && w.met("eu-0", 1) })
		holder := w.loops["us-0"]
		second.name, w.folders["us-0"] = "us-0", w.folders["us-1"]
		second.start()
		late := w.loops["us-0"]
		w.within(10*time.Second, "the name is held", func() bool { return second.nameHeldBy() != "" })
		w.within(10*time.Second, "there is a stream to the other region", func() bool { return second.knows("eu-0") })
		time.Sleep(5 * time.Second)
		if n := len(late.State().Status.Peers); n != 0 {
			t.Errorf("the daemon without its name has %d peers in the control log", n)
		}
		late.Do(func(n *control.Node) {
			if err := n.Init([]control.FirstRegion{{Name: "us", Weight: control.Whole}}, true); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(20 * time.Second)
		if late.State().Record != nil || w.state("eu-0").Record != nil || holder.State().Record != nil {
			t.Error("a daemon without its name began a cluster")
		}
		second.kill() // both before the loop of the name ends
		first.kill()
		holder.close()
	})
}

// TestLimitsOnAFullDisk: a daemon that starts on a full disk has no part in the
// control log, and decides by the limits that its record has nevertheless.
func TestLimitsOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLimitsWorld(t, 3, []string{"us-0", "us-1", "us-2"}, "us")
		for _, r := range w.residents {
			w.files[r.name] = strings.Replace(edgeRules(100), "edge", "api", 1)
		}
		w.begin("us")
		w.change("us-0", rulesChange(t, edgeRules(40)))
		w.within(15*time.Second, "all have the lower limit", func() bool { return w.have(40) })
		us := w.find("us-2")
		w.kill(us)
		w.folders["us-2"].full.Store(true)
		us.start()
		for range 3 { // it tries to open the log again every 10 s
			if rules := us.engine.Rules().Rules(); !w.have(40) || len(rules) != 2 {
				t.Errorf("%v requests and %d rules on a full disk, want those of the record and of the files", w.requests(), len(rules))
			}
			time.Sleep(reopenEvery)
		}
		if s := w.state("us-2"); !strings.Contains(s.Fault, errNoSpace.Error()) {
			t.Errorf("fault %q, want the one of the disk", s.Fault)
		}
		if page := w.report("us-2", "us").ClusterPage().Cluster; !page.Begun || len(page.Problems) != 1 || !strings.Contains(page.Problems[0], "check the disk of state.dir") {
			t.Errorf("%+v: want the record, the fault of the disk, and what to do", page)
		}
		w.change("us-0", rulesChange(t, edgeRules(20)))
		w.folders["us-2"].full.Store(false)
		w.within(30*time.Second, "it follows again", func() bool { return w.have(20) })
		if n := len(us.engine.Rules().Rules()); n != 2 {
			t.Errorf("%d rules once the disk has room, want those of the log and of the files", n)
		}
	})
}
