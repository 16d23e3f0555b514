package daemon

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/config"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/sticky/quorum"
)

// newDisklessWorld returns a region of three durable daemons and so many
// diskless ones that run, of most at the same time or later, with all rights
// held.
func newDisklessWorld(t *testing.T, run, most int) *rightsWorld {
	t.Helper()
	w := newRightsWorld(t, 3+most, "us")
	for i := range most {
		w.diskless = append(w.diskless, pod(i))
	}
	for _, r := range w.residents[:3+run] {
		r.start()
	}
	w.within(10*time.Second, "all have met", func() bool { return w.met("us-0", 2+run) })
	w.init("us-0", "us")
	w.soon(time.Minute, "all daemons hold rights", w.eachHolds)
	return w
}

// pod returns the name of a diskless daemon of such a world.
func pod(i int) string { return fmt.Sprintf("us-%d", 3+i) }

// eachHolds reports whether each daemon holds rights, and all of them together.
func (w *rightsWorld) eachHolds() bool {
	for _, r := range w.alive() {
		if n, _ := w.agents[r.name].Allotment(1, 900, r.engine.Time(r.engine.Now()).Millis(), 0, false); n == 0 {
			return false
		}
	}
	return w.all()
}

// leave begins to stop daemons as SIGTERM does. The function that it returns
// reports whether all are gone.
func (w *rightsWorld) leave(all ...*resident) (gone func() bool) {
	left := make(chan *resident, len(all))
	for _, r := range all {
		go func() {
			r.retire()
			r.cluster.leave()
			left <- r
		}()
	}
	n := 0
	return func() bool {
		for len(left) > 0 {
			r := <-left
			w.end(r) // its files
			n++
		}
		return n == len(all)
	}
}

// TestDisklessAtOnce: all diskless daemons of a region end at once, like kill
// -9, and others of other names start. All rights are held again within 60 s,
// and never more than all.
func TestDisklessAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDisklessWorld(t, 3, 6)
		for i := range 3 {
			w.end(w.find(pod(i)))
		}
		began := time.Now()
		for i := range 3 {
			w.find(pod(3 + i)).start()
		}
		w.soon(time.Minute, "the new daemons hold rights, and nothing is unused", w.eachHolds)
		t.Logf("all is held again %v after the end of the former daemons", time.Since(began))
	})
}

// TestDisklessRoll replaces three diskless daemons one after the other, one
// every ten seconds, by others of other names that start before. At each moment
// at least 95 % of the rights are held, and all of them 10 s later.
func TestDisklessRoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDisklessWorld(t, 3, 6)
		least := uint64(900)
		watch := func(d time.Duration, gone func() bool) {
			for began := time.Now(); time.Since(began) < d; time.Sleep(20 * time.Millisecond) {
				gone()
				held := w.held()
				if least = min(least, held); held > 900 || held*100 < 95*900 {
					w.dump()
					t.Fatalf("%d of 900 held", held)
				}
			}
		}
		for i := range 3 {
			w.find(pod(3 + i)).start()
			watch(5*time.Second, func() bool { return true })
			gone := w.leave(w.find(pod(i)))
			if watch(5*time.Second, gone); !gone() {
				t.Fatalf("%s has not left", pod(i))
			}
		}
		w.soon(10*time.Second, "all is held", w.eachHolds)
		t.Logf("at least %d of 900 held", least)
	})
}

// TestDisklessScaledDown: seven of ten diskless daemons leave at once. All
// rights are held within 40 s, without a command.
func TestDisklessScaledDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDisklessWorld(t, 10, 10)
		began := time.Now()
		var leavers []*resident
		for i := range 7 {
			leavers = append(leavers, w.find(pod(i)))
		}
		gone := w.leave(leavers...)
		w.soon(40*time.Second, "the others hold all", func() bool { return gone() && w.eachHolds() })
		t.Logf("all is held %v after seven of ten began to leave", time.Since(began))
	})
}

// TestDisklessParts: the parts of a diskless daemon have no folder, and what
// they make of rights is that of a member without a disk.
func TestDisklessParts(t *testing.T) {
	c := config.Default()
	c.Region, c.Name, c.State.Diskless, c.Strict.Replicas = "us", "us-7", true, []string{"us-0"}
	d := &daemon{Options: Options{Config: c, Log: (&world{}).discard()}}
	if err := d.openAgent(); err != nil {
		t.Fatal(err)
	}
	if s := d.storage("rights"); !s.Diskless || !d.agent.storage.Diskless || !d.agent.config.Diskless || d.agent.lock != nil {
		t.Errorf("storage %+v, agent %+v: want a diskless one", s, d.agent.config)
	}
	loop, log, found, err := new(replica.Storage{Diskless: true, Fence: 7}).OpenAcceptor(quorum.Config{
		Region: c.Region, Name: "us-0",
	})
	if err != nil || log != nil || found.Fault != nil || found.Damage != nil {
		t.Fatalf("acceptor: log %v, found %+v, %v", log, found, err)
	}
	if s := loop.Acceptor.Status(); s.Voting || !strings.Contains(s.Reason, "diskless") {
		t.Errorf("an acceptor: voting %v, %q; want that it is diskless", s.Voting, s.Reason)
	}
	if err := log.Append(nil, loop); err != nil || log.ShouldCompact() || log.Size() != 0 || log.Close() != nil {
		t.Errorf("a log without a file: %v, %d bytes", err, log.Size())
	}
}

// TestDisklessWithoutDurable: a diskless daemon holds nothing a while after all
// daemons with a disk have ended, and reports the reason. It holds rights again
// when they are back.
func TestDisklessWithoutDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDisklessWorld(t, 2, 2)
		for _, r := range w.residents[:3] {
			w.end(r)
		}
		f := w.agents[pod(0)]
		w.within(31*time.Second, "it holds nothing", func() bool { return !f.Status().Holds })
		if why := f.Status().Reason; why != epoch.ReasonAlone || !strings.Contains(f.WhyNot(why), "start those that are down") {
			t.Errorf("it holds nothing: %v, %s; want that too few extend its rights, and the remedy", why, f.WhyNot(why))
		}
		for _, r := range w.residents[:3] {
			w.restart(r, false)
		}
		w.soon(time.Minute, "all is held again", w.eachHolds)
	})
}

// TestDisklessEndWhileAway: all daemons with a disk stop, and the diskless ones
// that took over their rights end like kill -9 before they are back. They hold
// nothing, and report what to do.
func TestDisklessEndWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDisklessWorld(t, 2, 2)
		durable := slices.Clone(w.residents[:3])
		w.soon(time.Minute, "those with a disk are gone", w.leave(durable...))
		w.soon(time.Minute, "the others hold all", w.all)
		for _, r := range w.residents[3:5] {
			w.end(r)
		}
		for _, r := range durable {
			w.restart(r, false)
		}
		f := w.agents["us-0"]
		w.within(30*time.Second, "it reports the remedy", func() bool {
			why := f.Status().Reason
			return why == epoch.ReasonLeftOut && strings.Contains(f.WhyNot(why), "remove it with --stopped, and add it again")
		})
	})
}
