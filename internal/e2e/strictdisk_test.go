//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// strictJournal is the file of an acceptor's promises.
const strictJournal = "strict.rld"

// An acceptor whose journal is damaged, and one whose disk is gone, report it
// and do not vote before all others have sent their state.
func TestStrictVotersThatForget(t *testing.T) {
	t.Parallel()
	c := newCluster(t, loopback{}, 3, "us")
	acceptor, hurt, mate := c.daemon("us-0"), c.daemon("us-1"), c.daemon("us-2")
	tr := c.traffic(50, aim{strict, "kept", 4})
	c.votes(patience, c.daemons...)
	time.Sleep(time.Second)
	for _, loss := range []struct {
		said string
		do   func()
	}{
		{"the journal of strict keys is damaged", func() { c.damage(hurt) }},
		{"strict keys: lost disk", func() {
			if err := os.RemoveAll(c.file(hurt.name + "-state")); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		hurt.kill(t)
		loss.do()
		mate.kill(t)
		hurt.start(t)
		c.within(patience, "word of what is lost", func() string { return hurt.logs(loss.said) })
		c.list(patience, []*daemon{acceptor, hurt}, []*daemon{acceptor, hurt})
		// One of three votes, so nothing is admitted.
		for range 10 {
			if on, err := hurt.metric("rld_strict_voting"); err != nil || on != 0 {
				t.Errorf("%s votes (%v, %v) with what it lost, before all others told it", hurt.name, on, err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		before := tr.admitted(strict)
		time.Sleep(time.Second)
		if n := tr.admitted(strict) - before; n > 0 {
			t.Errorf("%d hits admitted with one replica of three that votes", n)
		}
		began := time.Now()
		mate.start(t)
		c.whole(patience)
		c.votes(patience, hurt, mate)
		again := time.Since(began)
		c.within(patience, "strict keys", func() string {
			if tr.admitted(strict) == before {
				return "none are admitted"
			}
			return ""
		})
		t.Logf("%s: %q; voting again %s after the last other one was started", hurt.name, loss.said, seconds(again))
	}
	// Its votes count now: with it and one other voter there is service.
	mate.kill(t)
	time.Sleep(lengths[strict]) // until all former grants have ended
	before := tr.admitted(strict)
	c.within(backWithin, "strict keys with "+acceptor.name+" and "+hurt.name, func() string {
		if tr.admitted(strict) == before {
			return "none are admitted"
		}
		return ""
	})
	tr.stop()
	tr.served(hurt, mate)
	tr.keptTo(strict, strictLimit, strictLimit)
}

// All disks of a region are lost, and its daemons start at once: keys of other
// regions keep their owners, as nothing is announced that nobody could copy.
func TestStrictRegionThatForgets(t *testing.T) {
	t.Parallel()
	c := newCluster(t, loopback{}, 2, "ap", "eu", "us")
	tr := c.traffic(50, aim{strict, "kept", 12})
	c.votes(patience, c.daemons...)
	hurt := []*daemon{c.daemon("eu-0"), c.daemon("eu-1")}
	for _, d := range hurt {
		d.kill(t)
		if err := os.RemoveAll(c.file(d.name + "-state")); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range hurt {
		d.start(t)
	}
	c.within(patience, "word of the lost voters", func() string {
		if _, out := c.daemon("us-0").rld(t, "strict status"); !strings.Contains(out, "run rld strict recover eu") {
			return out
		}
		return ""
	})
	for range 5 {
		before := tr.admitted(strict)
		time.Sleep(2 * lengths[strict])
		if tr.admitted(strict) == before {
			t.Fatal("no strict key has an owner")
		}
	}
	tr.stop()
	tr.keptTo(strict, strictLimit, strictLimit)
}

// damage changes some bytes in the middle of a daemon's journal.
func (c *cluster) damage(d *daemon) {
	c.t.Helper()
	path := filepath.Join(c.file(d.name+"-state"), strictJournal)
	data, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := len(data) / 2; i < min(len(data)/2+4, len(data)); i++ {
		data[i] ^= 0xff
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// votes waits until voters report that they vote.
func (c *cluster) votes(atMost time.Duration, of ...*daemon) {
	c.t.Helper()
	c.within(atMost, "votes", func() string {
		for _, d := range of {
			if on, err := d.metric("rld_strict_voting"); err != nil || on != 1 {
				return fmt.Sprintf("%s does not vote: %v, %v", d.name, on, err)
			}
		}
		return ""
	})
}

// admitted returns how many hits of a rule were admitted so far.
func (tr *traffic) admitted(rule string) int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	n := 0
	for _, w := range tr.account.Counts() {
		if w.Rule == rule {
			n += w.Total
		}
	}
	return n
}

// logs returns "" when the daemon's log, of all its lives, holds a text.
func (d *daemon) logs(text string) string {
	data, err := os.ReadFile(d.log)
	if err == nil && strings.Contains(string(data), text) {
		return ""
	}
	return fmt.Sprintf("%s does not say %q (%v)", d.name, text, err)
}

// metric returns the sum of a metric's series whose labels hold all texts.
func (d *daemon) metric(name string, with ...string) (float64, error) {
	r, err := d.web.Get("http://" + d.at.admin + "/metrics")
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	data, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	if err != nil || r.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: metrics: %s, %w", d.name, r.Status, err)
	}
	sum, found := 0.0, false
	for line := range strings.Lines(string(data)) {
		series, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if base, _, _ := strings.Cut(series, "{"); !ok || base != name {
			continue
		}
		found = true
		holds := true
		for _, text := range with {
			holds = holds && strings.Contains(series, text)
		}
		if !holds {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	if !found {
		return 0, fmt.Errorf("%s has no metric %s", d.name, name)
	}
	return sum, nil
}
