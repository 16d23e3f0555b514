package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/epoch"
)

// shares are constant rights in equal parts. A process holds nothing in windows
// that a former one may have used.
type shares struct {
	c      *cluster
	region string
	fence  int64
	// unknown is the fence of Former.
	unknown int64
}

// shares returns the rights of a process that starts now.
func (c *cluster) shares(d *daemon) *shares {
	s := &shares{c: c, region: d.region}
	if d.starts++; d.starts > 1 {
		s.fence = d.instant(c.now).Wall / int64(time.Millisecond)
		s.unknown = s.fence
		if d.left != nil {
			s.fence, s.unknown = max(s.fence, d.left.AsOf), d.unknown
		}
	}
	d.unknown, d.until = s.unknown, s.fence
	return s
}

func (s *shares) Version() uint64 { return 1 }

func (s *shares) Allotment(_, total uint64, x, carry int64, regional bool) (uint64, epoch.Reason) {
	if s.fence != 0 && x-carry <= s.fence {
		return 0, epoch.ReasonFenced
	}
	return s.part(total, regional), epoch.ReasonEpoch
}

func (s *shares) Former(_, total uint64, x, carry int64, regional bool) (uint64, epoch.Reason) {
	if s.unknown != 0 && x-carry <= s.unknown {
		return 0, epoch.ReasonFenced
	}
	return s.part(total, regional), epoch.ReasonEpoch
}

func (s *shares) PartOf(_ string, _, total uint64, _, _ int64, regional bool) uint64 {
	return s.part(total, regional)
}

func (s *shares) RegionPart(_ string, _, total uint64, _, _ int64) uint64 {
	regions := map[string]int{}
	for _, d := range s.c.daemons {
		regions[d.region]++
	}
	return total / uint64(len(regions))
}

func (s *shares) RegionMost(region string, rule, total uint64, x, carry int64) uint64 {
	return s.RegionPart(region, rule, total, x, carry)
}

func (s *shares) RegionAllotment(rule, total uint64, x, carry int64) (uint64, epoch.Reason) {
	return s.RegionPart("", rule, total, x, carry), epoch.ReasonEpoch
}

func (s *shares) part(total uint64, regional bool) uint64 {
	if !regional {
		total = s.RegionPart("", 0, total, 0, 0)
	}
	n := uint64(0)
	for _, d := range s.c.daemons {
		if d.region == s.region {
			n++
		}
	}
	return total / n
}

// rightsOf prints the rights of a daemon to a key.
func (c *cluster) rightsOf(t testing.TB, d *daemon, text string) string {
	t.Helper()
	var call Call
	c.resolve(t, &call, text)
	h, at := &call.Hits()[0], d.instant(c.now)
	now := d.node.millis(at)
	base := d.node.gate.allotment(&d.node.rules, h.Rule, now)
	left := base.Amount
	if e := d.node.keys.live.Find(h.Key); e != nil {
		left = d.node.accountOf(h, ref{where: inLive, entry: e}, now).Left(h.Limit, base, now)
	}
	x, _ := quota.Of(h.Limit).RightsWindow(now)
	moved := d.node.replica.engine.Rights(h.Key, x)
	return fmt.Sprintf("%d left of %d, gave %d, was given %d\n", left, base.Amount, moved.Given, moved.Received)
}

// The denial of a daemon without rights is degraded, and no more after it
// received some.
func TestNoRightsIsDegraded(t *testing.T) {
	c := &cluster{delay: time.Millisecond, wan: 40 * time.Millisecond, rights: true, cuts: map[[2]string]bool{}}
	for _, n := range []string{"a1", "a2"} {
		c.daemons = append(c.daemons, &daemon{name: n, region: "a"})
	}
	for _, d := range c.daemons {
		c.start(t, d)
	}
	c.put(t, "domain: d\ndescriptors:\n  - {key: k, rate_limit: {unit: minute, requests_per_unit: 100, consistency: partition}}\n")
	a1, call := c.find(t, "a1"), Call{}
	a1.node = nil
	c.start(t, a1) // its use before is lost to it
	c.ask(t, a1, &call, "k=v")
	if st := &call.Statuses[0]; !st.Over || st.Gate != RightsGate || st.Degraded != NoRights {
		t.Errorf("after a restart: over %v by %v, degraded %q, want it refused for want of rights", st.Over, st.Gate, st.Degraded)
	}
	c.pass(time.Second)
	c.ask(t, a1, &call, "k=v") // by now it has peers
	c.pass(time.Second)
	c.ask(t, a1, &call, "k=v")
	if st := &call.Statuses[0]; st.Over || st.Degraded != NotDegraded {
		t.Errorf("with rights of another: over %v by %v, degraded %q, want it admitted", st.Over, st.Gate, st.Degraded)
	}
}

// Without an allotment, on_failure: allow leaves the decision to the known
// counts. The admitted hits use the allotment of a window when it comes back,
// and not that of a bucket, which would owe them for long.
func TestNoRightsAndOnFailureAllows(t *testing.T) {
	c := &cluster{delay: time.Millisecond, wan: 40 * time.Millisecond, rights: true, cuts: map[[2]string]bool{}}
	for _, n := range []string{"a1", "a2"} {
		c.daemons = append(c.daemons, &daemon{name: n, region: "a"})
	}
	for _, d := range c.daemons {
		c.start(t, d)
	}
	c.put(t, `domain: d
defaults: {consistency: partition, on_failure: allow}
descriptors:
  - {key: window, rate_limit: {unit: minute, requests_per_unit: 10}}
  - {key: bucket, rate_limit: {unit: minute, requests_per_unit: 10, algorithm: token_bucket}}
  - {key: closed, rate_limit: {unit: minute, requests_per_unit: 0}}
  - {key: small, rate_limit: {unit: minute, requests_per_unit: 1}}
`)
	a1, call := c.find(t, "a1"), Call{}
	a1.node = nil
	c.start(t, a1) // its use before is lost to it
	for _, key := range []string{"window=v", "bucket=v"} {
		for i := range 10 {
			c.ask(t, a1, &call, key)
			if st := &call.Statuses[0]; st.Over || st.Degraded != NoRights || st.Remaining != uint64(9-i) {
				t.Fatalf("hit %d of %s: over %v by %v, degraded %q, %d remain, want it admitted without rights",
					i+1, key, st.Over, st.Gate, st.Degraded, st.Remaining)
			}
		}
		c.ask(t, a1, &call, key)
		if st := &call.Statuses[0]; !st.Over || st.Gate != EstimateGate {
			t.Errorf("hit 11 of %s: over %v by %v, want it denied by the known counts", key, st.Over, st.Gate)
		}
	}
	c.ask(t, a1, &call, "closed=v")
	if st := &call.Statuses[0]; !st.Over || st.Degraded != NotDegraded {
		t.Errorf("a limit of 0: over %v, degraded %q, want it denied as always", st.Over, st.Degraded)
	}

	c.ask(t, c.find(t, "a2"), &call, "small=v")
	if st := &call.Statuses[0]; !st.Over || st.Gate != RightsGate {
		t.Errorf("with a share of 0: over %v by %v, want it denied for want of rights: that is no failure", st.Over, st.Gate)
	}

	a1.node.gate.source.(*shares).fence = 0 // the allotment is back: 5 of 10
	a1.node.gate.cached = make([]cached, len(a1.node.gate.cached))
	c.pass(18 * time.Second) // three tokens
	c.ask(t, a1, &call, "bucket=v")
	if st := &call.Statuses[0]; st.Over || st.Degraded != NotDegraded {
		t.Errorf("the bucket with rights again: over %v by %v, degraded %q, want it to owe nothing", st.Over, st.Gate, st.Degraded)
	}
	c.ask(t, a1, &call, "window=v")
	if st := &call.Statuses[0]; st.Gate != BothGates {
		t.Errorf("the window with rights again: denied by %v, want both gates: its hits were counted", st.Gate)
	}
}
