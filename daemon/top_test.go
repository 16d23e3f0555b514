package daemon

import (
	"slices"
	"strings"
	"testing"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
)

// TestTop compares the hottest keys of a daemon with those that calls
// requested.
func TestTop(t *testing.T) {
	d := aloneWith(t, rules.Node{Key: "user", Limit: &rules.Limit{Unit: rules.Hour, Multiplier: 1, Requests: 100}},
		rules.Node{Key: "never", Limit: &rules.Limit{Unit: rules.Hour, Multiplier: 1, Name: "closed"}})
	d.engine.sampled, d.report.HotThreshold = d.report.Sampled, 100
	ask := func(n int, key, value string) {
		for range n {
			c := &node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(1, key, value)}}
			if err := d.engine.CheckAt(d.engine.Now(), c); err != nil {
				t.Fatal(err)
			}
		}
	}
	ask(3_000, "user", "a")
	ask(300, "user", "b")
	ask(1_000, "never", "c")
	a := d.report.Top(api.TopQuery{By: api.TopByHits, N: 10, Reveal: true})
	slices.SortFunc(a.Keys, func(x, y api.TopKey) int { return strings.Compare(x.Text, y.Text) })
	if len(a.Keys) != 3 || !a.Reveals || a.HotPerSecond != 100 || a.SpanSeconds != 1 {
		t.Fatalf("%+v", a)
	}
	for i, want := range []api.TopKey{
		{Domain: "edge", Rule: "never", Name: "closed", Text: "never=c"},
		{Domain: "edge", Rule: "user", Text: "user=a", Share: new(1.0)},
		{Domain: "edge", Rule: "user", Text: "user=b", Share: new(1.0)},
	} {
		k := a.Keys[i]
		if k.Domain != want.Domain || k.Rule != want.Rule || k.Name != want.Name || k.Text != want.Text || len(k.Key) != 16 ||
			k.DeniedPerSecond <= 0 || k.HitsPerSecond < k.DeniedPerSecond || (k.Share == nil) != (want.Share == nil) {
			t.Errorf("%+v, want %+v", k, want)
		}
	}
	if !a.Keys[1].Hot || *a.Keys[1].Share != 1 {
		t.Errorf("%+v", a.Keys[1])
	}
	for _, k := range d.report.Top(api.TopQuery{By: api.TopByHits, N: 10}).Keys {
		if k.Text != "" {
			t.Errorf("revealed without a request: %s", k.Text)
		}
	}
}
