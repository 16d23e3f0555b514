//go:build e2e

package demo

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/georld/rld/internal/admitted"
)

const (
	// loginWindow is the window of logins here.
	loginWindow = 2 * time.Second
	// backWithin is how long after an owner's death its keys may be without
	// service.
	backWithin = 6 * time.Second
)

// TestAStrictLimitHoldsWhileOwnersDie plays the script of testdata with logins
// at 5 in 2 s instead of a minute, so that many windows are seen, and all of
// their owners in us-east, where daemons die. By the demo's own account, over
// all regions, no window of any login ever has more than 5.
func TestAStrictLimitHoldsWhileOwnersDie(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "strict.txt"))
	if err != nil {
		t.Fatal(err)
	}
	o, _ := small(t, "")
	o.Daemons, o.WAN, o.Traffic, o.Log = 3, Global, 500, discard()
	if o.Script, err = ReadScript("strict.txt", string(text), o.Names()); err != nil {
		t.Fatal(err)
	}
	all := NewRules(o.Traffic)
	all[login].Window, all[login].Home = int(loginWindow/time.Second), o.Regions[0]
	p := &play{t: t, limit: int(all[login].Limit), last: map[string]seen{}}
	p.run(o, all)

	row := p.s.ledger.Rows(time.Now())[login]
	t.Logf("%d of %d at most in %d windows of %d accounts, %d of them used up; %d asks denied",
		row.Most, row.MostOf, p.windows, crowds[login].keys, row.Full, row.Denied)
	if row.Worst > 0 || row.Most > p.limit {
		t.Errorf("%d admitted in a window, want at most %d", row.Most, p.limit)
	}
	if row.Full < 30 || row.Denied < 1000 {
		t.Errorf("%d windows used up and %d asks denied: the load proves little", row.Full, row.Denied)
	}
	for _, d := range p.deaths {
		t.Logf("%s: %s", d.what, d)
		for n := range crowds[login].keys {
			account := crowds[login].key(n)
			if after, ok := d.back[account]; !ok || after > backWithin {
				t.Errorf("%s: no login of %s within %s (%s)", d.what, account, backWithin, after)
			}
		}
	}
}

// play is a demo under watch.
type play struct {
	t     *testing.T
	s     *show
	limit int

	mu      sync.Mutex
	last    map[string]seen // by account
	windows int             // with any login, of all accounts
	deaths  []*death
}

// seen is the latest admitted count of an account.
type seen struct {
	window admitted.Window
	total  int
}

// death is a change after which there must be logins again.
type death struct {
	what string
	at   time.Time
	back map[string]time.Duration // by account: the first login of a window that began after it
}

func (d *death) String() string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(d.back)) {
		out = append(out, k+" admitted again after "+d.back[k].Round(10*time.Millisecond).String())
	}
	return strings.Join(out, ", ")
}

// run plays the script, and looks at the ledger all the time.
func (p *play) run(o Options, all []Rule) {
	t := p.t
	t.Helper()
	s, err := newShow(&o, all, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p.s = s
	defer s.wan.Close()
	defer s.clients.close()
	defer func() {
		s.wan.Heal()
		if err := s.cluster.stop(); err != nil {
			t.Error(err)
		}
	}()
	if err := s.cluster.start(); err != nil {
		t.Fatal(err)
	}
	s.mustForm(t)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.clients.run(ctx) })
	running.Go(func() { p.look(ctx) })
	for _, c := range o.Script {
		p.expect(c)
		if err := s.do(ctx, c); err != nil {
			t.Error(err)
		}
	}
	cancel()
	running.Wait()
}

// expect notes that a command must not end the service for long: the death of
// one daemon when no other one is dead, and the end of all deaths and cuts.
func (p *play) expect(c Command) {
	down := 0
	for _, i := range p.s.cluster.all {
		if i.live() == nil {
			down++
		}
	}
	whole := len(p.s.wan.Cuts()) == 0
	switch {
	case c.Verb == Kill && down == 0 && whole, c.Verb == Start && down == 1 && whole, c.Verb == Heal:
		what := strings.TrimSpace(string(c.Verb) + " " + c.Daemon)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.deaths = append(p.deaths, &death{what: what, at: time.Now(), back: map[string]time.Duration{}})
	}
}

// look follows which account is admitted when.
func (p *play) look(ctx context.Context) {
	for tick := time.Tick(5 * time.Millisecond); ctx.Err() == nil; <-tick {
		now, news := time.Now(), p.news()
		p.mu.Lock()
		for _, k := range news {
			began := p.last[k].window.Start
			for _, d := range p.deaths {
				if _, ok := d.back[k]; !ok && began.After(d.at) {
					d.back[k] = now.Sub(d.at)
				}
			}
		}
		p.mu.Unlock()
	}
}

// news returns the accounts that were admitted since the last look.
func (p *play) news() []string {
	l := p.s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	is := make(map[string]seen)
	for _, c := range l.account.Counts() { // the latest window of a key comes last
		if c.Rule == l.rules[login].Name {
			is[c.Key] = seen{c.Window, c.Total}
		}
	}
	var out []string
	for k, now := range is {
		was := p.last[k]
		if now == was {
			continue
		}
		if now.window != was.window {
			p.windows++
		}
		p.last[k] = now
		out = append(out, k)
	}
	return out
}
