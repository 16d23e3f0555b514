//go:build e2e

package demo

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
)

// The simulator and the demo play the same trial: the same calls at the same
// times, with the same rules, daemons, delays and partition. The results of the
// simulator must be those of the demo.
func TestSimulatorAgreesWithTheDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	x, real, began, all := playAgreed(t)
	for _, l := range lies() {
		d := differ(x.compare(real, x.simulated(t, began, 1, simSeeds, l.change)))
		t.Logf("of a simulator %s differ:\n%s", l.name, table(d))
		if len(d) == 0 {
			t.Errorf("the demo agrees with a simulator %s as well", l.name)
		}
	}
	for _, f := range differ(all) {
		t.Errorf("%s: %.3f in the demo, where the simulator has %.3f to %.3f: want %.3f to %.3f",
			f.what, f.demo, f.least, f.most, f.low, f.high)
	}
}

// trials is how often the trial is played until one agrees. A machine that
// stands still for a moment makes one trial fail; a fault of the simulator
// makes all fail.
const trials = 3

// playAgreed plays until the simulator agrees, and returns the last trial.
func playAgreed(t *testing.T) (*trial, *outcome, time.Time, []figure) {
	for n := 1; ; n++ {
		x := newTrial()
		real, began := x.play(t)
		all := x.compare(real, x.simulated(t, began, 1, simSeeds, unchanged))
		t.Logf("the demo and %d seeds of the simulator, with the clients of seed %d:\n%s",
			simSeeds, x.options.Seed, table(all))
		if n == trials || len(differ(all)) == 0 {
			return x, real, began, all
		}
		t.Logf("trial %d of at most %d differs", n, trials)
	}
}

// play plays the trial with real daemons and returns what came of it, and when
// the clients began.
func (x *trial) play(t *testing.T) (*outcome, time.Time) {
	t.Helper()
	o := x.options
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	s, err := newShow(&o, x.rules(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.wan.Close()
	defer s.clients.close()
	defer func() {
		s.wan.Heal()
		if err := s.cluster.stop(); err != nil {
			t.Error(err)
		}
	}()
	s.clients.traffic = x.clients()
	if err := s.cluster.start(); err != nil {
		t.Fatal(err)
	}
	s.mustForm(t)
	began := x.next(time.Now())
	time.Sleep(time.Until(began))
	ctx, cancel := context.WithDeadline(t.Context(), began.Add(x.lasts))
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { s.clients.run(ctx) })
	running.Go(func() { s.ages.run(ctx) })
	time.Sleep(time.Until(began.Add(x.from)))
	for _, r := range o.Regions {
		if r != x.cut {
			s.wan.Cut(r, x.cut)
		}
	}
	time.Sleep(time.Until(began.Add(x.to)))
	s.wan.Heal()
	x.reopened = x.reopen(ctx, s, time.Now())
	t.Logf("what was cut was heard of again %s later than by streams that need not be opened", x.reopened)
	running.Wait()
	x.busy(t, s.clients, began)
	return x.counted(t, s, began), began
}

// mustForm begins the cluster, and waits until all daemons hold rights.
func (s *show) mustForm(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go s.cluster.begin(ctx) // ends with ctx
	if s.form(ctx) == 0 {
		t.Fatalf("the daemons do not know each other and hold rights after %s", formLimit)
	}
}

// reopen returns how much longer than the cut itself the regions were without
// word of each other, on average: the time to open streams again, which the
// simulator does not have. Of a link that is whole, the first word is half an
// interval old on average.
func (x *trial) reopen(ctx context.Context, s *show, healed time.Time) time.Duration {
	type link struct{ of, to crdt.Incarnation }
	heard := make(map[link]time.Duration)
	sum, silent := time.Duration(0), true
	for silent && ctx.Err() == nil {
		time.Sleep(reopenLook)
		silent = false
		for _, i := range s.cluster.all {
			r := i.live()
			if r == nil {
				continue
			}
			self := r.handle.Engine().Incarnation()
			for _, l := range r.handle.Links() {
				at := link{of: l.Peer.ID, to: self}
				if (l.Peer.Region == x.cut) == (i.region == slices.Index(x.options.Regions, x.cut)) {
					continue
				}
				if _, ok := heard[at]; ok {
					continue
				}
				as := time.Since(healed) - l.Age
				if l.Age < 0 || as < 0 {
					silent = true
					continue
				}
				heard[at] = as
				sum += as
			}
		}
	}
	half := s.o.base("").Gossip.WANInterval / 2
	return max(0, sum/time.Duration(max(1, len(heard)))-half)
}

const reopenLook = 5 * time.Millisecond

// lateShare is the share of the asks that the demo may leave out for want of
// time, and what else it does not get answered.
const lateShare = 0.005

// busy fails a trial that the machine had no time for.
func (x *trial) busy(t *testing.T, c *clients, began time.Time) {
	t.Helper()
	want := uint64(len(x.trace(began).Entries))
	n := &c.counts
	asked, lost := n.asked.Load(), n.failed.Load()+n.left.Load()+n.unserved.Load()
	t.Logf("%d asks: %d made, %d failed, %d left out, %d unserved",
		want, asked, n.failed.Load(), n.left.Load(), n.unserved.Load())
	few := uint64(lateShare * float64(want))
	if lost > few || asked+few < want || asked > want+few {
		t.Fatalf("of %d asks %d were made and %d of them in vain: this machine has no time for a comparison",
			want, asked, lost)
	}
}

// counted returns the results of the demo: admitted hits and ages of views.
func (x *trial) counted(t *testing.T, s *show, began time.Time) *outcome {
	t.Helper()
	out := x.newOutcome(began)
	ages := s.ages.known()
	out.near, out.far = ages.InRegion, ages.Across
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	counts := s.ledger.account.Counts()
	for i := range ruleCount {
		r := &s.ledger.rules[i]
		full, sum := 0, 0.0
		for _, c := range counts {
			if c.Rule != r.Name {
				continue
			}
			n := x.window(r.Period(), began, c.Start.Sub(began))
			if n < 0 || n >= int64(len(out.worst[i])) {
				t.Fatalf("rule %s: admitted in %v, window %d of %d", r.Name, c.Window, n+1, len(out.worst[i]))
			}
			out.worst[i][n] = max(out.worst[i][n], c.Overage())
			if c.Total >= c.Limit {
				full, sum = full+1, sum+c.Overage()
			}
		}
		if full > 0 {
			out.mean[i] = sum / float64(full)
		}
	}
	return out
}
