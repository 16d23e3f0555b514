package epoch

import "testing"

// Daemons share by weights: the parts of a window, and of those whose history
// counts in it, sum to at most the total, also where daemons leave, return, and
// stop.
func TestExploreParts(t *testing.T) {
	pair := genesis(0, 1, 2, 2, 2)
	leave, back := Epoch{ID: at(1), Members: amounts(1, 4)}, Epoch{ID: at(2), Pred: at(1), Members: amounts(1, 2, 2, 2)}
	for _, s := range []*setup{
		{name: "decrease", clock: 3, carry: 1, proposals: []Epoch{{ID: at(1), Members: amounts(1, 4, 2, 0)}}},
		{name: "leave", clock: 3, carry: 1, stops: 1, crashes: 1, proposals: []Epoch{leave}},
		{name: "leave and crash", clock: 3, crashes: 1, proposals: []Epoch{leave}},
		{name: "leave and return", clock: 2, stops: 1, crashes: 1, proposals: []Epoch{leave, back}},
		{name: "decrease later", clock: 4, carry: 1, lead: 1, proposals: []Epoch{{ID: at(1), Members: amounts(1, 4, 2, 0)}}},
		{name: "leave later", clock: 4, carry: 1, lead: 1, stops: 1, crashes: 1, proposals: []Epoch{leave}},
		{name: "leave later and return", clock: 4, lead: 1, stops: 1, crashes: 1, proposals: []Epoch{leave, back}},
		{name: "resume", large: true, clock: 3, carry: 1, stops: 1, resumes: 1, proposals: []Epoch{{ID: at(1), Members: amounts(1, 3, 2, 1)}}},
		{name: "crash and resume", clock: 3, ahead: 1, crashes: 1, stops: 1, resumes: 1, proposals: []Epoch{leave}},
		{name: "leave and resume", large: true, clock: 3, carry: 1, stops: 1, resumes: 1, proposals: []Epoch{leave}},
		{name: "leave, resume and return", large: true, clock: 2, lead: 1, prune: true, stops: 1, resumes: 1, proposals: []Epoch{leave, back}},
		{name: "resume and crash", large: true, clock: 3, ahead: 1, stops: 2, resumes: 2, crashes: 1, proposals: []Epoch{leave}},
		{name: "stop alone", clock: 3, ahead: 1, stops: 1, crashes: 1, proposals: []Epoch{{ID: at(1), Members: amounts(1, 3, 2, 1)}}},
	} {
		t.Run(s.name, func(t *testing.T) {
			s.parts, s.genesis = true, pair
			limit := worldStates
			if s.large {
				limit /= 5
			}
			n, all, bad := explore(newWorld(s), limit)
			t.Logf("%d states, all: %v", n, all)
			if bad != nil {
				t.Error(bad)
			}
		})
	}
}
