package daemon

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
)

// sampled is a decided call whose only descriptor is in the sample.
func sampled(key uint64, entries ...rules.Entry) (*node.Call, []node.Hit) {
	c := &node.Call{Domain: "edge", Descriptors: []rules.Descriptor{{Entries: entries}}}
	c.Statuses = []node.Status{{Sampled: true}}
	return c, []node.Hit{{Key: crdt.Key{Hi: key}}}
}

// TestTextsAreBounded notes many more keys than there is room for: the one that is
// asked for all the time stays.
func TestTextsAreBounded(t *testing.T) {
	var x texts
	hot, hits := sampled(1<<40, rules.Entry{Key: "user", Value: "hot"})
	for i := range uint64(5 * maxTexts) {
		c, h := sampled(i, rules.Entry{Key: "user", Value: fmt.Sprint(i)})
		x.note(c, h)
		if i%(maxTexts/4) == 0 {
			x.note(hot, hits)
		}
	}
	if len(x.all) != maxTexts || len(x.at) != maxTexts {
		t.Errorf("%d texts and %d keys, want %d", len(x.all), len(x.at), maxTexts)
	}
	last := crdt.Key{Hi: 5*maxTexts - 1}
	got := x.of([]node.HotKey{{Key: hits[0].Key}, {Key: last}, {Key: crdt.Key{Hi: 1}}})
	if len(got) != 2 || got[hits[0].Key].text != "user=hot" || got[last].text != fmt.Sprintf("user=%d", last.Hi) {
		t.Errorf("%+v", got)
	}
	if n := testing.AllocsPerRun(100, func() { x.note(hot, hits) }); n > 0 {
		t.Errorf("%v allocations for a text that is known", n)
	}
	c, h := sampled(1<<41, rules.Entry{Key: "user", Value: "x"})
	c.Statuses[0].Sampled = false
	if x.note(c, h); len(x.of([]node.HotKey{{Key: h[0].Key}})) > 0 {
		t.Error("what is not in the sample is kept")
	}
}

// TestTextsAtOnce: whoever cannot have the lock goes on.
func TestTextsAtOnce(t *testing.T) {
	var x texts
	x.mu.Lock()
	c, h := sampled(1, rules.Entry{Key: "user", Value: "x"})
	x.note(c, h)
	x.mu.Unlock()
	if len(x.all) > 0 {
		t.Error("kept without the lock")
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range uint64(2_000) {
				c, h := sampled(j*uint64(i+1), rules.Entry{Key: "user", Value: "x"})
				x.note(c, h)
				x.of([]node.HotKey{{Key: h[0].Key}})
			}
		})
	}
	wg.Wait()
}

func TestTextOf(t *testing.T) {
	l := &rules.Limit{}
	r := &rules.Rule{Limit: l, Patterns: []string{"", "/api/*"}}
	d := &rules.Descriptor{Entries: []rules.Entry{{Key: "user", Value: "a,b"}, {Key: "path", Value: "/api/x"}}}
	if got := textOf(&node.Status{Rule: r, Limit: l}, d); got != "user=a,b,path=/api/*" {
		t.Errorf("pooled: %s", got)
	}
	if got := textOf(&node.Status{Rule: r, Limit: &rules.Limit{}}, d); got != "user=a,b,path=/api/x" {
		t.Errorf("with a limit of its own: %s", got)
	}
	d.Entries[0].Value = strings.Repeat("é", maxTextBytes)
	if got := textOf(&node.Status{}, d); len(got) > maxTextBytes+3 || !strings.HasSuffix(got, "é...") {
		t.Errorf("long: %q of %d bytes", got, len(got))
	}
}

// TestTop asks for the hottest keys of a daemon that a few are asked of.
func TestTop(t *testing.T) {
	d := aloneWith(t, rules.Node{Key: "user", Limit: &rules.Limit{Unit: rules.Hour, Multiplier: 1, Requests: 100}},
		rules.Node{Key: "never", Limit: &rules.Limit{Unit: rules.Hour, Multiplier: 1, Name: "closed"}})
	d.engine.sampled = d.texts.note
	d.cfg.HotKey.Threshold = 100
	ask := func(n int, key, who string) {
		for range n {
			c := &node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(1, key, who)}}
			if err := d.engine.CheckAt(d.engine.Now(), c); err != nil {
				t.Fatal(err)
			}
		}
	}
	ask(3_000, "user", "a")
	ask(300, "user", "b")
	ask(1_000, "never", "c")
	a := d.top(api.TopQuery{By: api.TopByHits, N: 10, Reveal: true})
	slices.SortFunc(a.Keys, func(x, y api.TopKey) int { return strings.Compare(x.Text, y.Text) })
	if len(a.Keys) != 3 || !a.Reveals || a.HotPerSecond != 100 || a.SpanSeconds != 1 {
		t.Fatalf("%+v", a)
	}
	for i, want := range []api.TopKey{
		{Domain: "edge", Rule: "never", Name: "closed", Text: "never=c"},
		{Domain: "edge", Rule: "user", Text: "user=a", Share: new(1.0)}, {Domain: "edge", Rule: "user", Text: "user=b", Share: new(1.0)},
	} {
		k := a.Keys[i]
		if k.Domain != want.Domain || k.Rule != want.Rule || k.Name != want.Name || k.Text != want.Text || len(k.Key) != 32 ||
			k.DeniedPerSecond <= 0 || k.HitsPerSecond < k.DeniedPerSecond || (k.Share == nil) != (want.Share == nil) {
			t.Errorf("%+v, want %+v", k, want)
		}
	}
	if !a.Keys[1].Hot || *a.Keys[1].Share != 1 {
		t.Errorf("%+v", a.Keys[1])
	}
	for _, k := range d.top(api.TopQuery{By: api.TopByHits, N: 10}).Keys {
		if k.Text != "" {
			t.Errorf("told unasked: %s", k.Text)
		}
	}
}
