package epoch

import (
	"slices"
	"strings"
	"testing"
)

func TestMutationsOfUnion(t *testing.T) {
	one, joins, alone := realms()[0], realms()[1], realms()[3]
	tests := []struct {
		name     string
		realm    *realm
		mutation unionMutation
		script   string
	}{
		{"one daemon acknowledges for its region", one, unionOneVote, `
			learn 0 0; vote 0 0; learn 2 0; vote 2 0; compose 0 0; compose 2 0
			take 2 0; take 2 1; tick 2 0; tick 1 0`},
		{"a joiner without the tables", joins, unionNoTables, `
			learn 0 0; vote 0 0; compose 0 0; learn 1 0; vote 1 0; compose 1 0
			local-learn 0 0; local-ack 0 0; local-learn 2 0; local-ack 2 0; local-take 2 0
			take 1 0; take 1 1; tick 1 0; tick 2 0`},
		{"unsettled epochs of daemons ignored", joins, unionNoUnsettled, `
			local-learn 0 0; local-ack 0 0; local-learn 2 0; local-ack 2 0; local-take 2 0
			learn 0 0; vote 0 0; compose 0 0; learn 1 0; vote 1 0; compose 1 0
			take 1 0; take 1 1; tick 1 0; tick 2 0`},
		{"who let in one that lets in itself alone", alone, unionNoChain, `
			learn 0 0; vote 0 0; learn 1 0; vote 1 0; compose 0 0; compose 1 0
			local-learn 0 0; local-ack 0 0; local-learn 2 0; local-ack 2 0; local-take 2 0
			local-learn 2 1; local-ack 2 1; take 1 0; take 1 1; tick 1 0; tick 2 0`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := *tt.realm
			if sum, bound := playUnion(t, &r, tt.script); sum > bound {
				t.Errorf("with the rule: %d of %d", sum, bound)
			}
			r.mutation = tt.mutation
			sum, bound := playUnion(t, &r, tt.script)
			if sum <= bound {
				t.Fatalf("the schedule reaches %d of %d: want more", sum, bound)
			}
		})
	}
}

// playUnion performs the possible actions of a script.
func playUnion(t *testing.T, r *realm, script string) (sum, bound uint64) {
	t.Helper()
	u := newUnion(r)
	for _, act := range strings.FieldsFunc(script, func(c rune) bool { return c == ';' || c == '\n' }) {
		act = strings.TrimSpace(act)
		if slices.Contains(u.actions(), act) {
			u.do(act)
		} else if r.mutation != unionNone && act != "" {
			t.Fatalf("%q is not possible here: %q", act, u.actions())
		}
	}
	_, sum, bound = u.worst()
	return sum, bound
}
