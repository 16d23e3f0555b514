package sim

import (
	"testing"
	"time"
)

// Who was there at a time was there, whatever became of it later: somebody who
// took it for dead may believe in it again long after.
func TestTeamsRememberWhoWasThere(t *testing.T) {
	const sec = time.Second
	cfg := small(t)
	s := newWriters(cfg)
	for i := range 2 {
		s.all = append(s.all, &writer{index: i})
	}
	m := newTeams(cfg)
	m.join(0, 1, 1*sec)
	m.leave(0, 1, 2*sec)
	m.join(0, 1, 2*sec+rejoin/2) // as if it had been there throughout
	m.leave(0, 1, 3*sec)
	m.join(0, 1, 3*sec+2*rejoin)
	for _, c := range []struct {
		at   time.Duration
		want bool
	}{
		{1 * sec, false}, {1*sec + 1, true}, {2*sec + rejoin/4, true}, {3 * sec, true},
		{3*sec + rejoin, false}, {3*sec + 3*rejoin, true},
	} {
		if got := len(m.candidates(&s, 0, c.at)) > 0; got != c.want {
			t.Errorf("there at %v: %v, want %v", c.at, got, c.want)
		}
	}
}
