package control

import (
	"fmt"
	"testing"
	"time"
)

// A command has one entry, also where a majority takes longer to store it than
// Config.Retry: further entries would be void, and so many that the log never
// comes to rest.
func TestOneEntryForEachCommand(t *testing.T) {
	w := newWorld(t, 1, "a-0", "b-0", "c-0")
	w.heartbeat = 2 * time.Second
	w.between = func(_, _ *machine) time.Duration { return 3 * time.Second }
	for _, name := range w.founders {
		w.add(name[:1], name, true)
	}
	w.run(10 * time.Second)
	if err := w.find("a-0").node.Init(even("a", "b", "c"), true); err != nil {
		t.Fatal(err)
	}
	w.until("led", 3*time.Minute, func() bool { return w.leader() != nil && w.leader().node.raft.complete() })
	l := w.leader()
	w.run(20 * time.Second)
	before := l.node.Record().Version.Index
	const commands = 5
	for i := range commands {
		if _, err := l.node.Submit(Request{Author: "test", Change: Change{Note: &Note{Text: fmt.Sprint(i)}}}); err != nil {
			t.Fatal(err)
		}
	}
	w.until("done", 2*time.Minute, func() bool { return len(l.results) == commands })
	w.run(20 * time.Second)
	if entries := l.node.Record().Version.Index - before; entries != commands || !l.node.Leads() {
		t.Errorf("%d entries of %d commands, by the leader of the first: %v", entries, commands, l.node.Leads())
	}
}
