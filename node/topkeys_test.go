package node

import (
	"testing"
	"time"
)

// TestHottest checks that the most requested key comes first, with about its
// rate, and that denied hits are counted apart.
func TestHottest(t *testing.T) {
	r := newRig(t, Default())
	r.put(t, "domain: d\ndescriptors: [{key: a, rate_limit: {unit: minute, requests_per_unit: 100}}]")
	ask := func(value string) {
		if err := r.ask("d", 1, "a="+value); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20_000 {
		r.mono += 50 * time.Microsecond
		ask("hot")
		if i%100 == 0 {
			ask(string(rune('b' + i/100%20)))
		}
	}
	all := r.node.Hottest(r.instant())
	if len(all) == 0 {
		t.Fatal("no key is hot")
	}
	first := all[0]
	if first.Asked < 15_000 || first.Asked > 24_000 || first.Denied < 15_000 || first.Rule == nil || first.Used != 100 {
		t.Errorf("the hottest key is %+v, want one with 20,000 hits a second, almost all denied", first)
	}
}
