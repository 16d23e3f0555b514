//go:build e2e

package e2e

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/georld/rld/internal/admitted"
	"github.com/georld/rld/server/admin/api"
)

// longRun reports whether tests take the time that they need: make e2e-long.
func longRun() bool { return os.Getenv("RLD_E2E_LONG") != "" }

// operations is a cluster whose operator does one thing after another, and the
// callers' truth meanwhile.
type operations struct {
	*cluster
	net   *namespaces
	us    *daemon // the operator's
	short bool
	tr    *traffic

	steps   []step
	bounds  []bound
	blocked []span // of the key blocked-0
}

// step is what the operator did, and when.
type step struct {
	name         string
	began, ended time.Time
}

// bound is how many hits of a bounded key a window may admit, from a time on.
type bound struct {
	since time.Time
	total int
}

type span struct{ from, until time.Time }

// hold returns how long a state is kept: less in the short run.
func (o *operations) hold(d time.Duration) time.Duration {
	if o.short {
		return d
	}
	return 2 * d
}

// writeRules writes a file of limits for commands.
func (o *operations) writeRules(name, text string) {
	if err := os.WriteFile(o.file(name), []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
}

// run runs a command that is done when it ends.
func (o *operations) run(at *daemon, command string) {
	o.t.Helper()
	if code, out := at.rld(o.t, command); code != 0 {
		o.t.Fatalf("rld %s at %s: exit code %d: %s", command, at.name, code, out)
	}
}

// until repeats a command until it is done, though it may not be settled yet.
func (o *operations) until(at *daemon, command string) {
	o.t.Helper()
	o.within(2*time.Minute, "rld "+command, func() string {
		code, out := at.rld(o.t, command)
		if code == 0 || code == 3 {
			return ""
		}
		time.Sleep(time.Second)
		return fmt.Sprintf("exit code %d: %s", code, out)
	})
}

// bound notes the greatest number of hits that a window may admit from now on.
func (o *operations) bound(total int) { o.bounds = append(o.bounds, bound{time.Now(), total}) }

// boundOf returns the greatest number of hits that a window may have admitted.
func (o *operations) boundOf(w admitted.Window) int {
	most := 0
	for i, b := range o.bounds {
		over := i+1 < len(o.bounds) && !o.bounds[i+1].since.After(w.Start)
		if b.since.Before(w.End()) && !over {
			most = max(most, b.total)
		}
	}
	return most
}

// living returns the daemons that run.
func (o *operations) living() []*daemon {
	return o.where(func(d *daemon) bool { s, _, _ := d.now(); return s == up })
}

// all waits until the daemons that run list each other.
func (o *operations) all(atMost time.Duration) {
	o.t.Helper()
	o.list(atMost, o.living(), o.living())
}

// loseDisk kills a daemon and deletes what it stored.
func (o *operations) loseDisk(d *daemon) {
	o.t.Helper()
	d.die(o.t)
	if err := os.RemoveAll(o.file(d.name + "-state")); err != nil {
		o.t.Fatal(err)
	}
}

// holdsRights waits until a region holds rights.
func (o *operations) holdsRights(region string) {
	o.t.Helper()
	o.within(2*time.Minute, "rights of region "+region, func() string {
		sum := 0.0
		for _, d := range o.in(region) {
			n, err := d.metric("rld_rights_held_hits")
			if err != nil {
				return err.Error()
			}
			sum += n
		}
		if sum == 0 {
			return "it holds none"
		}
		return ""
	})
}

// keyOf returns the hash of a key.
func (o *operations) keyOf(rule, value string) string {
	o.t.Helper()
	var a api.ExplainAnswer
	q := url.Values{"domain": {domain}, "d": {rule + ":" + value}}
	if err := o.us.get("/v1/explain?"+q.Encode(), &a); err != nil || len(a.Descriptors) != 1 || a.Descriptors[0].Key == "" {
		o.t.Fatalf("the key of %s=%s: %v, %+v", rule, value, err, a)
	}
	return a.Descriptors[0].Key
}

// fillsFrom waits until a window of bounded keys that began after a time has
// nine tenths of a limit.
func (tr *traffic) fillsFrom(since time.Time, limit int, atMost time.Duration) {
	tr.cluster.t.Helper()
	tr.cluster.within(atMost, "a window that is used up", func() string {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		most := 0
		for _, w := range tr.account.Counts() {
			if w.Rule == bounded && w.Start.After(since) {
				most = max(most, w.Total)
			}
		}
		if most < limit*9/10 {
			return fmt.Sprintf("%d of %d at most", most, limit)
		}
		return ""
	})
}

// audit fails the test for a window of a bounded key with more hits than the
// limits in force allow, and for hits of a key that was blocked.
func (o *operations) audit() {
	for _, w := range o.tr.account.Counts() {
		if w.Rule != bounded {
			continue
		}
		if most := o.boundOf(w.Window); w.Total > most {
			o.t.Errorf("%d admitted of %v, want at most %d:\n%s", w.Total, w.Window, most, list(w))
		}
		for h := range w.Hits(admitted.Daemon{}) {
			for _, s := range o.blocked {
				if w.Key == "blocked-0" && h.Sent.After(s.from) && h.Answered.Before(s.until) {
					o.t.Errorf("%v was admitted at %s while it was blocked", w.Window, h.By.Name)
				}
			}
		}
	}
}

// table returns the truth of the callers of each step: the answers, and the
// windows of bounded keys that began in it.
func (o *operations) table() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STEP\tTOOK\tANSWERS\tDEGRADED\tNO ANSWER\tWINDOWS\tUSED UP\tFULLEST\tALLOWED\tOVER")
	for i, s := range o.steps[:len(o.steps)-1] {
		end := o.steps[i+1].began
		during := func(t time.Time) bool { return !t.Before(s.began) && t.Before(end) }
		answers, degraded, none := 0, 0, 0
		for _, c := range o.tr.took {
			if during(c.sent) {
				answers++
				if c.degraded != "" {
					degraded++
				}
			}
		}
		for _, f := range o.tr.failed {
			if during(f.sent) {
				none++
			}
		}
		windows, full, most, allowed, over := 0, 0, 0, 0, 0
		for _, c := range o.tr.account.Counts() {
			if c.Rule != bounded || !during(c.Start) {
				continue
			}
			bound := o.boundOf(c.Window)
			if windows++; c.Total >= bound*9/10 {
				full++
			}
			if c.Total > bound {
				over++
			}
			if c.Total*allowed >= most*bound {
				most, allowed = c.Total, bound
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", s.name, seconds(s.ended.Sub(s.began)), answers, degraded,
			none, windows, full, most, allowed, over)
	}
	w.Flush()
	for _, f := range o.tr.failed[:min(len(o.tr.failed), 5)] {
		fmt.Fprintln(&b, "no answer:", f)
	}
	return "the truth of the callers, by step:\n" + b.String()
}
