package report

import (
	"strings"
	"testing"
)

// TestWarningsOfVoters: a voter that lost its disk is none of those that are
// reachable, as nobody can copy to it without a majority.
func TestWarningsOfVoters(t *testing.T) {
	for _, tt := range []struct {
		voters
		want string // the beginning
	}{
		{voters{3, 3, nil}, ""},
		{voters{3, 2, nil}, "2 of the 3 voters of us are reachable: after one more failure"},
		{voters{3, 2, []string{"us-0"}}, "2 of the 3 voters of us are reachable: after one more failure"},
		{voters{3, 1, []string{"us-0"}}, "1 of the 3 voters of us are reachable with their watermarks, want at least 2"},
		{voters{3, 1, nil}, "1 of the 3 voters of us are reachable, want at least 2"},
		{voters{3, 1, []string{"us-0", "us-1"}}, "2 of the 3 voters of us run without their watermarks"},
		{voters{1, 1, nil}, "us has 1 voter: after one failure"},
	} {
		n := voters{all: tt.all}
		for range tt.reachable {
			n.add("us-9", true, false)
		}
		for _, name := range tt.lost {
			n.add(name, true, true)
		}
		got := strings.Join(warningsOf("us", n), "\n")
		if !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%+v: %q, want %q", tt.voters, got, tt.want)
		}
	}
}
