//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/georld/rld/internal/admitted"
	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// Bounds on calls. A caller that gets no answer asks another daemon of the
// region, as gateways do.
const (
	callTimeout = time.Second
	maxInFlight = 256     // of each daemon's calls
	maxNoted    = 100_000 // errors that are kept
)

// aim is a rule, and how many of its keys are asked for with this name.
type aim struct {
	rule, name string
	keys       int
}

// traffic is callers that ask every daemon at a steady rate, whatever the
// answers are.
type traffic struct {
	cluster *cluster
	aims    []aim
	ended   chan struct{}
	stop    func() // ends the traffic and waits for the answers that are due
	calling sync.WaitGroup

	mu      sync.Mutex // guards what follows
	account admitted.Account
	calls   int // that were answered
	again   int // of those, by another daemon than the first
	took    []timing
	errors  []trouble // at one daemon
	failed  []trouble // at it and at the others of its region
}

// timing is how long a call took at the daemon that was asked first, and what
// it came to.
type timing struct {
	by       admitted.Daemon
	asked    question
	sent     time.Time
	took     time.Duration
	allowed  bool
	left     uint64 // hits that still fit, as far as the daemon knew
	degraded string
}

// String returns the answer as a failure shows it.
func (x timing) String() string {
	verdict := "denied"
	if x.allowed {
		verdict = "allowed"
	}
	return fmt.Sprintf("%s %s by %s (run %d) after %v, %d left", x.sent.UTC().Format("15:04:05.000"), verdict, x.by.Name,
		x.by.Run, x.took, x.left)
}

// trouble is a call without an answer.
type trouble struct {
	at         string
	sent, when time.Time
	err        error
	asked      question
}

// String returns the trouble as a failure shows it.
func (t trouble) String() string {
	return fmt.Sprintf("%s at %s: %v", t.when.Format("15:04:05.000"), t.at, t.err)
}

// traffic starts to ask each daemon so many times a second, for all aims in
// turn.
func (c *cluster) traffic(perSecond int, aims ...aim) *traffic {
	tr := &traffic{cluster: c, aims: aims, ended: make(chan struct{})}
	tr.stop = sync.OnceFunc(func() {
		close(tr.ended)
		tr.calling.Wait()
	})
	c.t.Cleanup(tr.stop) // of a test that failed before
	for i, d := range c.daemons {
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		tr.calling.Go(func() { tr.ask(d, time.Second/time.Duration(perSecond), rng) })
	}
	return tr
}

// ask sends a call to a daemon at every tick: those before it are not waited
// for, up to a bound.
func (tr *traffic) ask(d *daemon, every time.Duration, rng *rand.Rand) {
	t := time.NewTicker(every)
	defer t.Stop()
	slots := make(chan struct{}, maxInFlight)
	for {
		select {
		case <-tr.ended:
			return
		case <-t.C:
		}
		if _, run, _ := d.now(); run == 0 {
			continue // nobody has started it yet
		}
		a := tr.aims[rng.IntN(len(tr.aims))]
		q := question{rule: a.rule, value: fmt.Sprintf("%s-%d", a.name, rng.IntN(a.keys)), hits: 1}
		select {
		case slots <- struct{}{}:
		default:
			tr.note(&tr.failed, trouble{d.name, time.Now(), time.Now(), fmt.Errorf("%d calls wait already", maxInFlight), q})
			continue
		}
		tr.calling.Go(func() {
			tr.call(d, q)
			<-slots
		})
	}
}

// call asks a daemon, and where that gives no answer the others of its region.
func (tr *traffic) call(owner *daemon, q question) {
	mates := tr.cluster.in(owner.region)
	first := slices.Index(mates, owner)
	var last error
	for i := range mates {
		d := mates[(first+i)%len(mates)]
		if _, run, _ := d.now(); run == 0 {
			continue
		}
		who, sent := d.replica(), time.Now()
		s, err := d.client.check(callTimeout, q)
		answered := time.Now()
		if err == nil {
			tr.take(who, q, s, sent, answered, i == 0)
			return
		}
		tr.note(&tr.errors, trouble{d.name, sent, answered, err, q})
		last = err
	}
	tr.note(&tr.failed, trouble{"all of " + owner.region, time.Now(), time.Now(), last, q})
}

// take enters an answer.
func (tr *traffic) take(who admitted.Daemon, q question, s *rldv1.Status, sent, answered time.Time, first bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.calls++
	if first {
		tr.took = append(tr.took, timing{who, q, sent, answered.Sub(sent), s.Code == rldv1.Code_ALLOWED, s.Remaining, s.DegradedReason})
	} else {
		tr.again++
	}
	if s.Code == rldv1.Code_ALLOWED {
		tr.account.Add(windowOf(q, s, sent, answered), limitOf(q.rule), admitted.Hit{By: who, Sent: sent, Answered: answered})
	}
}

func (tr *traffic) note(list *[]trouble, t trouble) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if len(*list) < maxNoted {
		*list = append(*list, t)
	}
}

// served fails the test for calls that got no answer: at any daemon but those
// named, and at a whole region, ever.
func (tr *traffic) served(but ...*daemon) {
	t := tr.cluster.t
	t.Helper()
	var wrong []trouble
	for _, e := range tr.errors {
		if !slices.ContainsFunc(but, func(d *daemon) bool { return d.name == e.at }) {
			wrong = append(wrong, e)
		}
	}
	if len(wrong) > 0 {
		t.Errorf("%d calls got no answer at daemons that nothing was done to; the first: %v", len(wrong), wrong[0])
	}
	if len(tr.failed) > 0 {
		t.Errorf("%d calls got no answer from a whole region; the first: %v", len(tr.failed), tr.failed[0])
	}
	t.Logf("%d calls answered, %d of them by another daemon than the first", tr.calls, tr.again)
}

// maxViewAge is how old views may be that an audit goes by. It would prove
// little with a bound for views that are hardly ever renewed. Far views include
// two of the own region, which are as old as a daemon was frozen.
const maxViewAge = 20 * time.Second

// audit fails the test for windows in which more was admitted than the limit
// and what daemons could not know of each other.
func (tr *traffic) audit() {
	t := tr.cluster.t
	t.Helper()
	r := report{answers: tr.took}
	for _, w := range tr.account.Counts() {
		v := tr.cluster.views(latestOf(w))
		r.enter(w, v, w.Limit+v.Unseen(w, admitted.Daemon{}))
	}
	for _, line := range r.above {
		t.Errorf("admitted too much: %s", line)
	}
	if r.oldest > maxViewAge {
		t.Errorf("views were up to %s old, want at most %v", seconds(r.oldest), maxViewAge)
	}
	if r.full == 0 {
		t.Errorf("no window was used up: the load proves nothing")
	}
	t.Logf("%d windows, %d used up; the most above its limit: %s", r.windows, r.full, r.worst)
}

// report is what an audit found.
type report struct {
	windows, full int
	over          int
	worst         string // the window that was the most above its limit
	above         []string
	oldest        time.Duration
	answers       []timing // from which the last ones of a window are shown
}

func (r *report) enter(w *admitted.Count, v *Views, allowed int) {
	line := fmt.Sprintf("%d of %d admitted, %d allowed with views up to %s and %s old, at %v",
		w.Total, w.Limit, allowed, seconds(v.Near), seconds(v.Far), w.Window)
	if r.windows++; w.Total >= w.Limit {
		r.full++
	}
	if w.Total > allowed {
		r.above = append(r.above, line+"; the answers up to the last hit:\n"+lastAnswers(r.answers, w, 60))
	}
	if over := w.Total - w.Limit; r.worst == "" || over > r.over {
		r.over, r.worst = over, line
	}
	r.oldest = max(r.oldest, v.Far)
}

// lastAnswers returns the answers about the key of a window up to the one that
// admitted its last hit, a line each.
func lastAnswers(all []timing, w *admitted.Count, atMost int) string {
	end := latestOf(w)
	var lines []string
	for _, x := range all {
		if x.asked.rule == w.Rule && x.asked.value == w.Key && !x.sent.After(end) {
			lines = append(lines, fmt.Sprintf("  %v\n", x))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines[max(0, len(lines)-atMost):], "")
}

// list returns the hits of a window in the order of their answers, a line each.
func list(w *admitted.Count) string {
	hits := slices.SortedFunc(maps.Keys(maps.Collect(w.Hits(admitted.Daemon{}))), func(a, b admitted.Hit) int {
		return a.Answered.Compare(b.Answered)
	})
	var b strings.Builder
	for _, h := range hits {
		fmt.Fprintf(&b, "  %s answered by %s (run %d) after %v\n", h.Answered.UTC().Format("15:04:05.000"), h.By.Name,
			h.By.Run, h.Answered.Sub(h.Sent))
	}
	return b.String()
}
