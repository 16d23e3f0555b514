//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/internal/admitted"
	rldv1 "github.com/georld/rld/proto/rld/v1"
)

const (
	// forwardWithin is how long beyond the round trip a call waits for an owner
	// of another region: strict.forward_margin, and the machine.
	forwardWithin = 100*time.Millisecond + 60*time.Millisecond
	// openWithin is by how much longer than a local answer one may take that an
	// owner is not asked for any more.
	openWithin = time.Millisecond
)

// The region of the owner is cut off: the others answer by on_failure, late at
// first and then at once, and ask again after the cut.
func TestStrictHomeRegionPartitioned(t *testing.T) {
	n := newNamespaces(t, "us", "eu", "ap")
	c := newCluster(t, n, 3, n.regions...)
	tr := c.traffic(30, aim{strict, "cut", 6}, aim{shared, "cut", 1})
	asker := c.daemon("us-0")
	c.answers(asker, open, "before", "")
	time.Sleep(3 * time.Second)
	trip := asker.farthest(t, strictOwner)
	began := time.Now()
	n.cut(strictOwner, bothWays)

	slowest := c.opens(asker, trip+forwardWithin)
	c.atOnce(asker)
	if s := asker.mustAnswer(t, question{allowed, "cut", 1}); s.Code != rldv1.Code_ALLOWED || s.DegradedReason == "" {
		t.Errorf("on_failure allow: %v, degraded %q, want it passed and said to be degraded", s.Code, s.DegradedReason)
	}
	if status, err := asker.status("/v1/check?" + url.Values{"domain": {domain}, open: {"cut"}}.Encode()); err != nil ||
		status != http.StatusServiceUnavailable {
		t.Errorf("over HTTP %d, %v; want 503, which says that it is rld that failed", status, err)
	}
	c.within(circuitOpen+5*time.Second, "a circuit that is half open", func() string { return asker.logs("event=circuit_breaker_half_open") })
	time.Sleep(time.Until(began.Add(7500 * time.Millisecond)))
	healed := time.Now()
	n.heal(strictOwner)
	c.answers(asker, open, "after", "")
	back := time.Since(healed)
	c.within(patience, "a closed circuit", func() string {
		for i := range 30 { // a circuit closes with a call to its owner, of any region
			asker.mustAnswer(t, question{open, fmt.Sprint("after", i), 1})
			asker.mustAnswer(t, question{strict, fmt.Sprint("after", i), 1})
		}
		return asker.closed()
	})
	closed := time.Since(healed)
	time.Sleep(time.Until(healed.Add(3 * time.Second)))
	tr.stop()
	t.Logf("cut %s off: answers took %s at most until the circuit was open; healed: asked again after %s, all circuits closed after %s",
		strictOwner, slowest, seconds(back), seconds(closed))
	tr.served()
	tr.keptTo(strict, strictLimit, strictLimit)
	tr.keptTo(shared, sharedLimit-sharedReserve, sharedLimit) // the owner's own region seldom needs its reserve
	tr.reserved(began.Add(time.Second), healed)
}

// farthest returns the longest round trip to a daemon of a region.
func (d *daemon) farthest(t testing.TB, region string) time.Duration {
	t.Helper()
	peers, err := d.netcheck()
	if err != nil {
		t.Fatal(err)
	}
	trip := 0.0
	for _, p := range peers {
		if p.Region == region && p.RTTSeconds != nil {
			trip = max(trip, *p.RTTSeconds)
		}
	}
	return time.Duration(trip * float64(time.Second))
}

// opens asks for keys of an owner that is cut off until its circuit is open,
// and returns how long the slowest answer took, which must be within a time.
func (c *cluster) opens(asker *daemon, within time.Duration) time.Duration {
	t := c.t
	t.Helper()
	var slowest time.Duration
	var all []time.Duration
	reasons := map[string]int{}
	for i := 0; i < 100; i++ {
		begin := time.Now()
		s := asker.mustAnswer(t, question{open, "cut", 1})
		took := time.Since(begin)
		slowest, all = max(slowest, took), append(all, took.Round(time.Millisecond))
		reasons[s.DegradedReason]++
		if s.Code != rldv1.Code_DENIED || s.DegradedReason == "" {
			t.Fatalf("ask %d in the cut: %v, degraded %q; want it denied and said to be degraded", i, s.Code, s.DegradedReason)
		}
		if s.DegradedReason == "circuit_breaker_open" {
			t.Logf("%d asks until the circuit was open, the slowest took %s: %v", i, slowest, reasons)
			if slowest > within {
				t.Errorf("an answer took %s, want at most %s: %v", slowest, within, all)
			}
			return slowest
		}
	}
	t.Fatalf("the circuit does not open: %v", reasons)
	return 0
}

// atOnce compares answers by an open circuit with local ones, one after the
// other. A machine that is busy with something else may take some tries: an
// answer that waits for an owner takes a hundred times as long.
func (c *cluster) atOnce(asker *daemon) {
	t := c.t
	t.Helper()
	const calls, tries = 300, 6
	for try := 1; ; try++ {
		var local, strict []time.Duration
		for range calls {
			begin := time.Now()
			asker.mustAnswer(t, question{kept, "base", 1})
			local = append(local, time.Since(begin))
			begin = time.Now()
			if s := asker.mustAnswer(t, question{open, "cut", 1}); s.DegradedReason == "circuit_breaker_open" {
				strict = append(strict, time.Since(begin)) // and no probe
			}
		}
		is, was := p99(strict), p99(local)
		t.Logf("p99 of %d answers by an open circuit: %v, of local ones %v, %v more", len(strict), is, was, is-was)
		switch {
		case len(strict) < calls/2:
			t.Errorf("%d of %d answers were by an open circuit", len(strict), calls)
			return
		case is-was <= openWithin:
			return
		case try == tries:
			t.Errorf("an answer by an open circuit takes %v longer than a local one, want at most %v", is-was, openWithin)
			return
		}
	}
}

func p99(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)*99/100]
}

// answers waits until a daemon answers for a key with that reason.
func (c *cluster) answers(d *daemon, rule, value, reason string) {
	c.t.Helper()
	c.within(patience, rule+" with reason "+fmt.Sprintf("%q", reason), func() string {
		if s := d.mustAnswer(c.t, question{rule, value, 1}); s.DegradedReason != reason {
			return fmt.Sprintf("%v, degraded %q", s.Code, s.DegradedReason)
		}
		return ""
	})
}

// mustAnswer asks the daemon.
func (d *daemon) mustAnswer(t testing.TB, q question) *rldv1.Status {
	t.Helper()
	s, err := d.client.check(patience, q)
	if err != nil {
		t.Fatalf("%s: %v: %v", d.name, q, err)
	}
	return s
}

// status asks the daemon over HTTP and returns the status of its answer.
func (d *daemon) status(path string) (int, error) {
	r, err := d.web.Get("http://" + d.at.http + path)
	if err != nil {
		return 0, err
	}
	return r.StatusCode, r.Body.Close()
}

// closed returns "" when the daemon reports that a circuit opened, half-opened
// and closed, and that all are closed now.
func (d *daemon) closed() string {
	for _, state := range []string{"open", "half_open", "closed"} {
		if wrong := d.logs("event=circuit_breaker_" + state + " "); wrong != "" {
			return wrong
		}
		if n, err := d.metric("rld_circuit_breaker_transitions_total", `state="`+state+`"`); err != nil || n == 0 {
			return fmt.Sprintf("%s: %v transitions to %s (%v)", d.name, n, state, err)
		}
	}
	if n, err := d.metric("rld_circuit_breaker_state"); err != nil || n != 0 {
		return fmt.Sprintf("%s: states of circuits sum to %v (%v)", d.name, n, err)
	}
	return ""
}

// reserved fails the test unless the regions without the owner kept to their
// reserves, and had them, in windows that were all in the cut.
func (tr *traffic) reserved(began, healed time.Time) {
	t := tr.cluster.t
	t.Helper()
	seen := 0
	for _, w := range tr.account.Counts() {
		if w.Rule != shared || w.Start.Before(began) || w.End().After(healed) {
			continue
		}
		seen++
		var parts []string
		for _, region := range tr.cluster.regions {
			got := w.Admitted(admitted.Daemon{Region: region})
			parts = append(parts, fmt.Sprintf("%s %d", region, got))
			if region != strictOwner && (got > sharedReserve || got == 0) {
				t.Errorf("%s admitted %d of %v in the cut, want its regional reserve of %d", region, got, w.Window, sharedReserve)
			}
		}
		t.Logf("%v, in the cut: %s, of %d", w.Window, strings.Join(parts, ", "), sharedLimit)
	}
	if seen == 0 {
		t.Error("no window was all in the cut")
	}
}
