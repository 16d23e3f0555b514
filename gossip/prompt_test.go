package gossip

import (
	"testing"
	"time"
)

// TestPromptSums: a sum near a limit goes to other regions NearEvery after its
// oldest hit, with the hits until then, and its caller is woken once for it.
func TestPromptSums(t *testing.T) {
	plain := CellMeta{Rule: 1, WindowLength: 60_000}
	r := newRig(Config{}, "a", "b", "c")
	r.run(3*time.Second + step)
	a1, woken, first := r.of("a1"), 0, r.now
	for n := range 2 {
		a1.Add(r.mono(a1), testKey(1), epoch, plain, 1, Room{Left: uint64(29 - n), Limit: 60})
		if a1.Expedited() {
			woken += 1 + len(a1.Messages(r.mono(a1), 0, 7))
		}
		r.run(20 * time.Millisecond)
	}
	for r.total("b1", 1) == 0 && r.now < first+time.Second {
		r.run(step)
	}
	if late := r.now - first; late < NearEvery || late > NearEvery+2*step || r.total("b1", 1) != 2 || woken != 1 {
		t.Errorf("b1 knows of %d hits after %v, and the caller was woken %d times, want 2 hits after %v and once",
			r.total("b1", 1), late, woken, NearEvery)
	}
}

// TestHastySums: a sum that grows so fast that all regions could use up what is
// left is sent at once, also after a long time in which it hardly grew.
func TestHastySums(t *testing.T) {
	plain := CellMeta{Rule: 1, WindowLength: 60_000}
	for _, quiet := range []time.Duration{0, 20 * time.Second} {
		r := newRig(Config{}, "a", "b", "c")
		r.run(3 * time.Second)
		a1 := r.of("a1")
		a1.Add(r.mono(a1), testKey(1), epoch, plain, 1, Room{Left: 499, Limit: 1_000})
		r.run(quiet)
		a1.Add(r.mono(a1), testKey(1), epoch, plain, 400, Room{Left: 99, Limit: 1_000})
		r.run(r.cfg.MinGap + 10*time.Millisecond)
		if got := r.total("b1", 1); got != 401 {
			t.Errorf("after %v: b1 knows of %d hits, want 401", quiet, got)
		}
	}
}

// TestBlockedLinkWaits: a link may not send because its peer acknowledges
// nothing. It has no work in the past then.
func TestBlockedLinkWaits(t *testing.T) {
	r := newRig(Config{FrameCells: 1}, "a", "b")
	r.run(3 * time.Second)
	r.lost = func(_, to *member) bool { return to.name == "b1" }
	a1 := r.of("a1")
	for k := range 3 * maxInflight {
		r.add("a1", k, 1)
	}
	for range 2_000 {
		r.run(step)
		if due := a1.Due(); due <= r.mono(a1) && len(a1.Messages(r.mono(a1), 0, 7)) == 0 && a1.Due() <= r.mono(a1) {
			t.Fatalf("%v after its start: work is due, and nothing to send", r.now)
		}
	}
}
