package quorum

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
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
	seen := map[sum]struct{}{w.key(): {}}
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

// wander takes random actions until none is left or steps are done. Most
// messages arrive once. The path that it returns can be done again step by
// step.
func wander(s *setup, seed uint64, steps int) (w *world, bad *found) {
	rng := rand.New(rand.NewPCG(seed, 1))
	w = newWorld(s)
	repeat, harm := rng.IntN(20), 1+rng.IntN(30)
	var path []string
	for len(path) < steps {
		acts := w.actions()
		if len(acts) == 0 {
			break
		}
		act := acts[rng.IntN(len(acts))]
		switch verb, _, _ := strings.Cut(act, " "); verb {
		case "crash", "lose", "announce", "forget", "poke", "again":
			if rng.IntN(harm) > 0 {
				continue
			}
		}
		l := w.find(act)
		w.do(act)
		if l != nil && rng.IntN(100) >= repeat {
			w.net = slices.DeleteFunc(slices.Clone(w.net), func(o *letter) bool { return o == l })
		}
		path = append(path, act)
		if sum := w.worst(); sum > s.limit {
			return w, &found{path, sum, s.limit}
		}
	}
	return w, nil
}

func scopes() []*setup {
	return []*setup{
		{name: "two homes", daemon: 3, owners: []int{0, 1}, limit: 3, headroom: 2, wants: 2},
		{name: "three homes", large: true, daemon: 3, owners: []int{0, 1, 2}, limit: 1, headroom: 1, wants: 1},
		{name: "home is forgotten", daemon: 3, owners: []int{0}, limit: 3, headroom: 1, wants: 3, rebirth: 1},
		{name: "crash before the store", daemon: 3, owners: []int{0}, limit: 1, headroom: 1, wants: 1, crash: 1, async: true},
		{name: "crash before the store, two homes", large: true, daemon: 3, owners: []int{0, 1}, limit: 1, headroom: 1, wants: 1, crash: 1, async: true},
		{name: "replica crashes", daemon: 3, owners: []int{0, 1}, limit: 1, headroom: 1, wants: 1, crash: 1, mortal: []int{2}},
		{name: "home crashes", daemon: 3, owners: []int{0}, limit: 2, headroom: 1, wants: 1, crash: 1, mortal: []int{0}},
		{name: "replica loses its disk", daemon: 3, owners: []int{0}, limit: 1, headroom: 1, wants: 2, rebirth: 1, lose: 1, mortal: []int{2}},
		{name: "replica loses its disk, two homes", large: true, daemon: 3, owners: []int{0, 1}, limit: 1, headroom: 1, wants: 1, lose: 1, mortal: []int{2}},
		{name: "home loses its disk", daemon: 3, owners: []int{0}, limit: 1, headroom: 1, wants: 1, lose: 1, mortal: []int{0}},
		{name: "any crashes", large: true, daemon: 3, owners: []int{0, 1}, limit: 2, headroom: 2, wants: 1, crash: 1},
		{name: "any disk is lost", large: true, daemon: 3, owners: []int{0, 1}, limit: 2, headroom: 2, wants: 1, lose: 1},
		{name: "two disks are lost", large: true, daemon: 3, owners: []int{0}, limit: 1, headroom: 1, wants: 1, lose: 2},
		{name: "two replicas, two homes", daemon: 2, owners: []int{0, 1}, limit: 2, headroom: 1, wants: 2, crash: 1},
		{name: "replicas change", large: true, daemon: 4, set: []int{0, 1, 2}, change: []int{0, 1, 3}, owners: []int{0, 1}, limit: 1, headroom: 1, wants: 1},
	}
}

// TestExplore checks that in small worlds no order of events admits one too
// many. Large ones are cut short, but with STICKY_LONG=1; -short cuts all.
func TestExplore(t *testing.T) {
	for _, s := range scopes() {
		t.Run(s.name, func(t *testing.T) {
			limit := 100_000_000
			if s.large && os.Getenv("STICKY_LONG") == "" {
				limit = 5_000
			}
			if testing.Short() {
				limit = 1_000
			}
			states, all, bad := explore(newWorld(s), limit)
			if bad != nil {
				t.Errorf("%v", bad)
			} else if !all && !s.large && !testing.Short() {
				t.Errorf("cut short after %d states: want all", states)
			}
		})
	}
}
