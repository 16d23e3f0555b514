package gossip

import (
	"slices"
	"testing"
	"time"
)

// distant is a rig of three regions of four daemons, whose messages across
// take 100 ms, with a limit of 60.
type distant struct {
	*rig
	late [][]Message // messages across of the latest steps
}

func newDistant() *distant {
	d := &distant{rig: newRig(Config{}, "a", "a", "a", "a", "b", "b", "b", "b", "c", "c", "c", "c")}
	d.limit = 60
	d.pass(10 * time.Second)
	return d
}

// pass lets time pass.
func (d *distant) pass(length time.Duration) {
	across := func(msg Message) bool { return d.holder(msg.From).region != d.holder(msg.To).region }
	for end := d.now + length; d.now < end; d.run(step) {
		var delayed []Message
		for _, msg := range d.flight {
			if across(msg) {
				delayed = append(delayed, msg)
			}
		}
		d.flight = slices.DeleteFunc(d.flight, across)
		if d.late = append(d.late, delayed); len(d.late) > int(100*time.Millisecond/step) {
			d.flight, d.late = append(d.flight, d.late[0]...), d.late[1:]
		}
	}
}

// surge calls the daemons of some regions in turn for a key, one each 5 ms. It
// returns the admitted hits.
func (d *distant) surge(k int, length time.Duration, regions ...string) (admitted uint64) {
	turn := slices.DeleteFunc(slices.Clone(d.members), func(m *member) bool { return !slices.Contains(regions, m.region) })
	for i := range int(length / step) {
		if d.call(turn[i%len(turn)].name, k) {
			admitted++
		}
		d.pass(step)
	}
	return admitted
}

// A key that three regions use up before counts of each other arrive: each one
// expects the others to have as many hits as it has itself.
func TestSurgeOfAllRegions(t *testing.T) {
	if got := newDistant().surge(1, 500*time.Millisecond, "a", "b", "c"); got < 55 || got > 72 {
		t.Errorf("%d hits of 60 were admitted, want 55 to 72", got)
	}
}

// A region that is alone with a key uses its whole limit: what it leaves to
// others, it leaves for the time of a message.
func TestSurgeOfOneRegion(t *testing.T) {
	if got := newDistant().surge(1, 1500*time.Millisecond, "a"); got < 60 || got > 62 {
		t.Errorf("%d hits of 60 were admitted, want 60 to 62", got)
	}
}

// A partitioned region is not expected to have hits: the limit is used up
// without it.
func TestSurgeWithoutSilentRegions(t *testing.T) {
	r := newDistant()
	r.lost = func(from, to *member) bool { return from.region != to.region }
	r.run(10 * time.Second)
	k := r.keyOf("a1")
	for i := range 60 {
		if !r.call("a1", k) {
			t.Fatalf("hit %d of 60 is denied although no other region is known to live", i+1)
		}
		r.run(step)
	}
}

// A single hit waits for other messages to the aggregator, but no longer when
// that informs the daemon of the key.
func TestSingleHitsAreSentOnceInformed(t *testing.T) {
	r := newRig(Config{}, "a", "a", "a", "a")
	r.limit = 60
	r.run(3 * time.Second)
	k := r.kept("a1", "a2")
	for r.now%smallEvery != 0 { // nothing is due soon
		r.run(step)
	}
	r.run(100 * time.Millisecond)
	r.call("a3", k)
	r.run(100 * time.Millisecond)
	if got := r.total("a1", k); got != 0 {
		t.Fatalf("the aggregator knows %d hits, want that of a3 to wait", got)
	}
	for range 8 {
		r.call("a4", k)
		r.call("a4", k)
		r.run(step)
	}
	r.run(DefaultInterval)
	if got := r.total("a1", k); got != 17 {
		t.Errorf("the aggregator knows %d of 17 hits after it informed a3 of 16", got)
	}
}

// A notice that what is left is on its way counts for a 200th of the window,
// whatever the lag of the daemon that it informs.
func TestSurgeEnds(t *testing.T) {
	r := newRig(Config{}, "a", "a", "a", "a")
	r.run(3 * time.Second)
	k := r.kept("a1", "a2")
	r.sending = func(_ *member, msg *Message) {
		for i := range msg.Cells {
			if msg.Cells[i].Kind == Others {
				msg.Cells[i].Rate = usesUp
			}
		}
	}
	r.room = Room{Left: 0, Limit: 60}
	a3 := r.of("a3")
	a3.Add(r.mono(a3), testKey(k), epoch, minute, 4, r.room)
	r.run(50 * time.Millisecond)
	r.sending = nil
	if got := r.extrapolated("a3", k, 60); got == 0 {
		t.Fatal("a3 expects no hits: it was not informed")
	}
	r.lost = func(_, to *member) bool { return to.name == "a3" }
	r.run(time.Minute/SurgeLags + step)
	if got := r.extrapolated("a3", k, 60); got != 0 {
		t.Errorf("a3 expects %d hits after a notice ended", got)
	}
}
