package sticky

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// found is a violation and how it came about.
type found struct {
	path       []string
	sum, bound uint64
}

func (f *found) String() string {
	return fmt.Sprintf("%d of %d after:\n\t%s", f.sum, f.bound, strings.Join(f.path, "\n\t"))
}

// explore visits every state that can be reached, up to limit states, and
// returns how many, whether those are all, and the first violation.
func explore(w *world, limit int) (states int, all bool, bad *found) {
	type step struct {
		w     *world
		acts  []string
		taken int
	}
	seen := map[[16]byte]struct{}{w.key(): {}}
	stack := []step{{w: w, acts: w.actions()}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.taken == len(top.acts) {
			stack = stack[:len(stack)-1]
			continue
		}
		act := top.acts[top.taken]
		top.taken++
		w := top.w
		if top.taken < len(top.acts) {
			w = w.clone() // the last action may have the state
		}
		w.do(act)
		k := w.key()
		if _, ok := seen[k]; ok {
			continue
		}
		seen[k] = struct{}{}
		if sum := w.worst(); sum > w.s.limit {
			bad = &found{sum: sum, bound: w.s.limit}
			for _, st := range stack {
				bad.path = append(bad.path, st.acts[st.taken-1])
			}
			return len(seen), false, bad
		}
		if len(seen) >= limit {
			return len(seen), false, nil
		}
		stack = append(stack, step{w: w, acts: w.actions()})
	}
	return len(seen), true, nil
}

// wander takes random actions until none is left or steps are done.
func wander(s *setup, seed uint64, steps int) (w *world, bad *found) {
	rng := rand.New(rand.NewPCG(seed, 1))
	w = newWorld(s)
	var path []string
	for len(path) < steps {
		acts := w.actions()
		if len(acts) == 0 {
			break
		}
		// The newest messages come first more often than not; some runs are
		// all haste, some all delay.
		i := rng.IntN(len(acts))
		if rng.IntN(4) >= int(seed%4) {
			i = max(i, rng.IntN(len(acts)))
		}
		act := acts[i]
		if strings.HasPrefix(act, "crash") || strings.HasPrefix(act, "lose") || strings.HasPrefix(act, "propose") {
			if rng.IntN(6) > 0 {
				continue
			}
		}
		w.do(act)
		path = append(path, act)
		if sum := w.worst(); sum > s.limit {
			return w, &found{path, sum, s.limit}
		}
	}
	return w, nil
}

func scopes() []*setup {
	return []*setup{
		{name: "two homes", daemon: 3, homes: []int{0, 1}, limit: 2, chunk: 1, wants: 2},
	}
}

// TestExplore shows that in small worlds no order of events admits one too many.
// STICKY_LONG=1 explores the large ones to the end too.
func TestExplore(t *testing.T) {
	total := 0
	for _, s := range scopes() {
		t.Run(s.name, func(t *testing.T) {
			limit := 100_000_000
			if s.large && os.Getenv("STICKY_LONG") == "" {
				limit = 20_000
			}
			states, all, bad := explore(newWorld(s), limit)
			total += states
			t.Logf("%d states, all %v", states, all)
			if bad != nil {
				t.Errorf("%v", bad)
			} else if !all && !s.large {
				t.Errorf("cut short after %d states: want all", states)
			}
		})
	}
	t.Logf("%d states", total)
}
