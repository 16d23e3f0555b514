package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/rules"
)

const strictRules = `
domain: d
descriptors:
  - key: fixed
    rate_limit: {unit: second, requests_per_unit: 7, consistency: strict}
  - key: sliding
    rate_limit: {unit: second, requests_per_unit: 9, algorithm: sliding_window, consistency: strict}
  - key: log
    rate_limit: {unit: second, requests_per_unit: 8, algorithm: sliding_log, consistency: strict}
  - key: bucket
    rate_limit: {unit: second, requests_per_unit: 10, burst: 6, algorithm: token_bucket, consistency: strict}
  - key: leaky
    rate_limit: {unit: second, requests_per_unit: 20, burst: 5, algorithm: leaky_bucket, consistency: strict}
  - key: share
    rate_limit: {unit: second, requests_per_unit: 10, consistency: strict, on_failure: {share: 50%}}
  - key: big
    rate_limit: {unit: second, requests_per_unit: 600, consistency: strict}
`

func strictly(key string, n uint64) rules.Descriptor {
	return rules.Descriptor{Entries: []rules.Entry{{Key: key, Value: "x"}}, Hits: n}
}

// The plain way: asks of any daemon, all answered, no more than the limit and no less.
func TestStrictWindowIsUsedUpAndNoMore(t *testing.T) {
	for _, key := range []string{"fixed", "sliding", "log", "bucket", "leaky", "share"} {
		w := newStrictWorld(t, 1, strictRules, 3, 2)
		for i := range 40 {
			w.ask(w.daemons[i%len(w.daemons)], strictly(key, 1))
			w.pass(15 * time.Millisecond)
		}
		// Buckets mint 6 and 12 in the .6 s that it takes, of which grants may hold some.
		want := map[string]int{"fixed": 7, "sliding": 9, "log": 8, "bucket": 12, "leaky": 17, "share": 6}[key]
		if w.allowed < want*8/10 || w.allowed > want {
			t.Errorf("%s: %d allowed, want %d", key, w.allowed, want)
		}
		if w.failed > 0 {
			t.Errorf("%s: %d calls found no home", key, w.failed)
		}
		w.check(1)
	}
}

// Whatever goes wrong, no limit is exceeded.
func TestStrictHoldsInStorms(t *testing.T) {
	seeds := 400
	if testing.Short() {
		seeds = 60
	}
	sum := [4]int{}
	for seed := range uint64(seeds) {
		w := newStrictWorld(t, seed, strictRules, 3, 1+int(seed%3))
		w.loss = float64(seed%5) / 10
		w.storm()
		w.check(seed)
		sum[0] += w.allowed
		sum[1] += w.denied
		sum[2] += w.failed
		sum[3] += w.waited
	}
	t.Logf("%d allowed, %d denied, %d without a home, %d waited", sum[0], sum[1], sum[2], sum[3])
	if sum[0] < seeds*20 {
		t.Errorf("only %d calls were allowed in %d storms: they show nothing", sum[0], seeds)
	}
}

// storm is a few seconds of everything.
func (w *strictWorld) storm() {
	keys := []string{"fixed", "sliding", "log", "bucket", "leaky", "share", "big"}
	for range 1_000 {
		d := w.daemons[w.rng.IntN(len(w.daemons))]
		switch r := w.rng.IntN(1000); {
		case r < 350:
			if d.node == nil || d.paused {
				continue
			}
			key := keys[w.rng.IntN(len(keys))]
			n := uint64(1 + w.rng.IntN(3))
			if w.rng.IntN(8) == 0 {
				w.ask(d, strictly(key, n), strictly(keys[w.rng.IntN(len(keys))], 1))
			} else {
				w.ask(d, strictly(key, n))
			}
		case r < 970:
			w.pass(time.Duration(1+w.rng.IntN(4)) * time.Millisecond)
		case r < 976:
			w.crashOrStart(d)
		case r < 982:
			d.paused = !d.paused && d.node != nil
		case r < 992:
			o := w.daemons[w.rng.IntN(len(w.daemons))]
			if o != d {
				d.believed[o.name] = !d.believed[o.name]
				w.members()
			}
		default:
			w.pass(time.Duration(w.rng.IntN(400)) * time.Millisecond)
		}
	}
}

func (w *strictWorld) crashOrStart(d *strictDaemon) {
	if d.node == nil {
		w.restart(d, w.rng.IntN(3) == 0)
		return
	}
	down := 0
	for _, o := range w.daemons {
		if o.node == nil {
			down++
		}
	}
	if down < 2 {
		w.crash(d)
	}
}

func (p *parkedCall) String() string { return fmt.Sprint(p.c.Decision, p.c.Statuses) }

// Without faults every call finds its home, a hot key is decided at once for the most
// part, and its window is used up but for what batches hold at the end.
func TestStrictServesAHotKey(t *testing.T) {
	w := newStrictWorld(t, 2, strictRules, 3, 3)
	for range 900 {
		for range 2 {
			w.ask(w.daemons[w.rng.IntN(len(w.daemons))], strictly("big", 1))
		}
		w.pass(time.Millisecond)
	}
	if w.failed > 0 || w.allowed < 570 || w.allowed > 600 {
		t.Errorf("%d of 600 allowed, %d calls found no home", w.allowed, w.failed)
	}
	if calls := w.allowed + w.denied; w.waited > calls/5 {
		t.Errorf("%d of %d calls waited", w.waited, calls)
	}
	w.check(2)
}

// A home that dies costs what was marked and not consumed, at most a chunk, and a
// pause until the others know.
func TestStrictTakeoverCostsAHeadroom(t *testing.T) {
	w := newStrictWorld(t, 4, strictRules, 3, 3)
	ask := func() {
		for _, d := range w.daemons {
			if d.node != nil {
				w.ask(d, strictly("big", 1))
			}
		}
		w.pass(time.Millisecond)
	}
	for range 50 {
		ask()
	}
	owner := w.daemons[0].replica.Routing().Owner(w.anyKey(), 0, false)
	for _, d := range w.daemons {
		if d.name == owner.Name {
			w.crash(d)
		}
	}
	for range 600 {
		ask()
	}
	if w.allowed < 600-20-30 || w.failed > 20 {
		t.Errorf("%d of 600 allowed, %d calls found no home", w.allowed, w.failed)
	}
	w.check(4)
}

// anyKey returns a key that hits were admitted of.
func (w *strictWorld) anyKey() crdt.Key {
	for k := range w.hits {
		return k
	}
	w.t.Fatal("nothing was admitted")
	return crdt.Key{}
}
