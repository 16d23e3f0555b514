package report

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// sampled returns a decided call whose only key is in the sample.
func sampled(key uint64, entries ...rules.Entry) (*node.Call, []node.Hit) {
	c := &node.Call{Domain: "edge", Descriptors: []rules.Descriptor{{Entries: entries}}}
	c.Statuses = []node.Status{{Sampled: true}}
	return c, []node.Hit{{Key: crdt.Key(key)}}
}

// TestKeyNamesAreBounded adds many more keys than there is room for. A key with
// many hits stays.
func TestKeyNamesAreBounded(t *testing.T) {
	var x keyNames
	hot, hits := sampled(1<<40, rules.Entry{Key: "user", Value: "hot"})
	for i := range uint64(5 * maxNames) {
		c, h := sampled(i, rules.Entry{Key: "user", Value: fmt.Sprint(i)})
		x.add(c, h)
		if i%(maxNames/4) == 0 {
			x.add(hot, hits)
		}
	}
	if len(x.recent) > maxNames || len(x.former) != maxNames {
		t.Errorf("%d recent and %d former names, want at most %d", len(x.recent), len(x.former), maxNames)
	}
	last := crdt.Key(5*maxNames - 1)
	got := x.of([]node.HotKey{{Key: hits[0].Key}, {Key: last}, {Key: 1}})
	if len(got) != 2 || got[hits[0].Key].text != "user=hot" || got[last].text != fmt.Sprintf("user=%d", uint64(last)) {
		t.Errorf("%+v", got)
	}
	if n := testing.AllocsPerRun(100, func() { x.add(hot, hits) }); n > 0 {
		t.Errorf("%v allocations for a known name", n)
	}
	c, h := sampled(1<<41, rules.Entry{Key: "user", Value: "x"})
	c.Statuses[0].Sampled = false
	if x.add(c, h); len(x.of([]node.HotKey{{Key: h[0].Key}})) > 0 {
		t.Error("a key outside the sample is kept")
	}
}

// TestKeyNamesDoNotWait: add returns if another goroutine holds the lock.
func TestKeyNamesDoNotWait(t *testing.T) {
	var x keyNames
	x.mu.Lock()
	c, h := sampled(1, rules.Entry{Key: "user", Value: "x"})
	x.add(c, h)
	x.mu.Unlock()
	if len(x.recent) > 0 {
		t.Error("kept without the lock")
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range uint64(2_000) {
				c, h := sampled(j*uint64(i+1), rules.Entry{Key: "user", Value: "x"})
				x.add(c, h)
				x.of([]node.HotKey{{Key: h[0].Key}})
			}
		})
	}
	wg.Wait()
}

func TestDescriptorText(t *testing.T) {
	l := &rules.Limit{}
	r := &rules.Rule{Limit: l, Patterns: []string{"", "/api/*"}}
	d := &rules.Descriptor{Entries: []rules.Entry{{Key: "user", Value: "a,b"}, {Key: "path", Value: "/api/x"}}}
	if got := descriptorText(&node.Status{Rule: r, Limit: l}, d); got != "user=a,b,path=/api/*" {
		t.Errorf("pooled: %s", got)
	}
	if got := descriptorText(&node.Status{Rule: r, Limit: &rules.Limit{}}, d); got != "user=a,b,path=/api/x" {
		t.Errorf("with a limit of its own: %s", got)
	}
	d.Entries[0].Value = strings.Repeat("é", maxNameBytes)
	if got := descriptorText(&node.Status{}, d); len(got) > maxNameBytes+3 || !strings.HasSuffix(got, "é...") {
		t.Errorf("long: %q of %d bytes", got, len(got))
	}
}
