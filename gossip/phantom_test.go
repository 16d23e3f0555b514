package gossip

import (
	"testing"
	"time"

	"github.com/georld/rld/crdt"
)

// Two regions stop under heavy load. The broken estimate follows the last slope
// for three lags and ignores later complete messages. The estimate beyond the
// counts, in percent of the limit, is at most that of one lag, and 0 after
// three lags.
func TestMutationPeerStops(t *testing.T) {
	for _, c := range []struct {
		lag          time.Duration
		ours, broken uint64
	}{
		{500 * time.Millisecond, 17, 49},
		{2 * time.Second, 67, 199},
	} {
		t.Run(c.lag.String(), func(t *testing.T) {
			worst, after := phantom(c.lag, false)
			if worst > c.ours || after != 0 {
				t.Errorf("ours: phantom of %d %% of the limit, %d %% after three lags; want at most %d %%, then 0",
					worst, after, c.ours)
			}
			if worst, _ := phantom(c.lag, true); worst < c.broken {
				t.Errorf("the broken estimate has a phantom of %d %% only, want %d %%: the schedule shows nothing",
					worst, c.broken)
			}
		})
	}
}

// phantom lets b and c count 1,000 hits per second each and stop. It returns
// the greatest estimate of a beyond their counts within three lags, and the
// estimate after that, in percent of a limit of 6,000.
func phantom(lag time.Duration, broken bool) (worst, after uint64) {
	r := newRig(Config{WANInterval: lag}, "a", "b", "c")
	s := &stubborn{rig: r, seen: map[crdt.Incarnation]sighting{}, lag: lag}
	r.taking = s.watch
	for r.now < 8*lag { // the last hits are sent as they are counted
		r.add("b1", 1, 5)
		r.add("c1", 1, 5)
		r.run(step)
	}
	truth := r.of("b1").Own(testKey(1), epoch).P + r.of("c1").Own(testKey(1), epoch).P
	for end := r.now + 3*lag; r.now < end; r.run(step) {
		more := r.extrapolated("a1", 1, ample)
		if broken {
			more = s.extrapolated()
		}
		guess := r.total("a1", 1) + more
		worst, after = max(worst, guess-min(guess, truth)), more
	}
	return worst / 60, after / 60
}

// stubborn extrapolates the counts that a1 receives from the two latest
// messages about an incarnation, for three lags.
type stubborn struct {
	*rig
	lag  time.Duration
	seen map[crdt.Incarnation]sighting
}

// sighting is the count of an incarnation in a message.
type sighting struct {
	p           uint64
	sent, came  time.Duration // by the clocks of the sender and the rig
	hitsASecond uint64
}

func (s *stubborn) watch(m *member, msg *Message) {
	if m.name != "a1" {
		return
	}
	for _, c := range msg.Cells {
		was := s.seen[c.Incarnation]
		is := sighting{p: c.Value.P, sent: sentAt(msg.Nonce), came: s.now}
		if was.p > 0 {
			is.hitsASecond = (is.p - was.p) * 1_000 / uint64((is.sent - was.sent).Milliseconds())
		}
		s.seen[c.Incarnation] = is
	}
}

func (s *stubborn) extrapolated() uint64 {
	sum := uint64(0)
	for _, x := range s.seen {
		sum += x.hitsASecond * uint64(min(s.now-x.came, 3*s.lag).Milliseconds()) / 1_000
	}
	return sum
}
