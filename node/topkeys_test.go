package node

import (
	"testing"
	"time"

	"github.com/georld/rld/rules"
)

// The key that is asked for most comes first, with about its rate, and what was
// refused is told apart.
func TestHottest(t *testing.T) {
	w := newStrictWorld(t, 1, "domain: d\ndescriptors: [{key: a, rate_limit: {unit: minute, requests_per_unit: 100}}]", 1)
	n := w.daemons[0].node
	ask := func(value string) {
		c := &Call{Domain: "d", Descriptors: []rules.Descriptor{{Entries: []rules.Entry{{Key: "a", Value: value}}, Hits: 1}}}
		if err := w.front.Resolve(c); err != nil {
			t.Fatal(err)
		}
		n.Probe(w.at(), c.Hits(), c.Statuses)
		w.front.Decide(c)
		n.Charge(w.at(), c.Hits(), c.Statuses)
	}
	for i := range 20_000 {
		w.now += 50 * time.Microsecond
		ask("hot")
		if i%100 == 0 {
			ask(string(rune('b' + i/100%20)))
		}
	}
	all := n.Hottest(w.at())
	if len(all) == 0 {
		t.Fatal("no key is hot")
	}
	first := all[0]
	if first.Asked < 15_000 || first.Asked > 24_000 || first.Denied < 15_000 || first.Rule == nil || first.Used != 100 {
		t.Errorf("the hottest key is %+v, want one with 20,000 hits a second, almost all denied", first)
	}
}
