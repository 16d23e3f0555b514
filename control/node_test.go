package control

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// three returns a world of three regions with two durable daemons each.
func three(t testing.TB, seed uint64) *world {
	w := newWorld(t, seed, "a-0", "b-0", "c-0")
	for _, region := range []string{"a", "b", "c"} {
		for i := range 2 {
			w.add(region, fmt.Sprintf("%s-%d", region, i), true)
		}
	}
	return w
}

func TestBeginning(t *testing.T) {
	w := three(t, 1)
	if err := w.find("a-1").node.Init(even("a", "b", "c"), true); err == nil {
		t.Error("a daemon begins a cluster without a founder")
	}
	w.run(time.Second)
	if err := w.find("b-0").node.Init(even("a", "b", "c"), true); err != nil {
		t.Fatal(err)
	}
	took := w.until("begun", 10*time.Second, w.equal)
	t.Logf("begun after %v", took)
	t.Logf("leader after %v", w.until("a leader", 10*time.Second, func() bool { return w.leader() != nil }))
	for _, m := range w.machines {
		r := w.submit(m, Change{Note: &Note{"from " + m.name}})
		if r.Err != nil {
			t.Error(r.Err)
		}
	}
	t.Logf("equal after %v", w.until("equal", 5*time.Second, w.equal))
	w.until("five voters", time.Minute, func() bool { return w.leader().node.Record().Voting() == 5 })
	w.until("all confirmed", time.Minute, func() bool {
		for _, m := range w.machines {
			if m.node.Starting() {
				return false
			}
		}
		return true
	})
	t.Log(w.describe())
}

// A command before the first tick: the cluster begins.
func TestInitFirst(t *testing.T) {
	w := newWorld(t, 1, "a-0")
	m := w.add("a", "a-0", true)
	if err := m.node.Init(even("a"), true); err != nil {
		t.Fatal(err)
	}
	w.until("begun", 20*time.Second, func() bool { return m.node.Record() != nil })
}

// Texts that are not UTF-8: they are refused, or a restart reads them.
func TestTextsOnDisk(t *testing.T) {
	for _, c := range []struct{ name, region, reason string }{
		{"a region", "x\xff", ""},
		{"a reason", "a", "x\xff"},
		{"a long reason", "a", strings.Repeat("x", MaxRecordBytes)},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 1, "a-0")
			m := w.add("a", "a-0", true)
			w.run(time.Second)
			if err := m.node.Init([]FirstRegion{{Name: c.region, Weight: Whole}}, true); err != nil {
				return
			}
			w.until("begun", 20*time.Second, func() bool { return w.leader() != nil })
			if c.reason != "" {
				for i := range m.node.record.Voters { // as if another daemon had the only vote
					m.node.record.Voters[i].Daemon[0]++
				}
				if err := m.node.Recover(RecoverRequest{Reason: c.reason}); err != nil {
					return
				}
				w.run(time.Second)
			}
			w.crash(m)
			if _, err := Recover(m.disk, Config{}); err != nil {
				t.Errorf("the daemon cannot start: %.200v", err)
			}
		})
	}
}

// Commands with long texts: the record stays within its bound, and takes
// further commands.
func TestLongHistory(t *testing.T) {
	if testing.Short() {
		t.Skip("it encodes a record of a MiB a thousand times")
	}
	r := (&Founding{Cluster: 1, Regions: even("a", "b"), Founders: []Founder{{Name: "a", Raft: 1}}}).record()
	for i := range maxHistory {
		e := &Entry{
			Format: r.Format, Changes: r.Changes, Before: r.Hash(),
			Command: Command{Request: Number(i + 2), Reason: strings.Repeat("<", maxText)},
			Change:  Change{Note: &Note{Text: strings.Repeat("<", maxText)}},
		}
		next, err := r.apply(Version{r.Version.Recovery, r.Version.Index + 1}, e)
		if err != nil {
			t.Fatalf("command %d: %v", i, err)
		}
		r = next
	}
}
