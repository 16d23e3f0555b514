package daemon

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/daemon/report"
)

// TestSubmitAwaitsLeader: without a majority of live voters a command is
// refused long before its time is over. With one it waits for the election.
func TestSubmitAwaitsLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := []string{"us-0", "eu-0", "ap-0"}
		w := newLimitsWorld(t, 1, names, "us", "eu", "ap")
		w.begin("us", "eu", "ap")
		w.within(20*time.Second, "three voters", func() bool { return w.leader() != "" && w.state("us-0").Record.Voting() == 3 })
		w.kill(w.find(w.leader()))
		left := slices.DeleteFunc(names, func(n string) bool { return w.loops[n] == nil || w.state(n).Status.Leads })
		at := left[0]
		submit := func() (time.Duration, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			defer cancel()
			began := time.Now()
			_, err := w.loops[at].Submit(ctx, control.Request{Author: "test", Change: control.Change{Note: &control.Note{Text: "one"}}})
			return time.Since(began), err
		}
		w.kill(w.find(left[1]))
		w.within(time.Minute, "no majority", func() bool {
			s := w.state(at)
			return s.Status.Leader == control.ID{} && !s.Electing()
		})
		if took, err := submit(); err != report.ErrNoLeader || took < leaderWithin || took > leaderWithin+time.Second {
			t.Errorf("%v after %v: want %v after %v", err, took, report.ErrNoLeader, leaderWithin)
		}

		w.find(left[1]).start()
		w.within(time.Minute, "an election", func() bool { s := w.state(at); return s.Electing() })
		if took, err := submit(); err != nil {
			t.Errorf("%v after %v: want the command done by the leader to come", err, took)
		}
	})
}
