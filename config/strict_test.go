package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStrictReplicas checks which daemons are the strict voters.
func TestStrictReplicas(t *testing.T) {
	for _, tc := range []struct {
		name                 string
		daemons, named, want []string
	}{
		{"one", []string{"a"}, nil, []string{"a"}},
		{"two", []string{"b", "a"}, nil, []string{"a", "b"}},
		{"three", []string{"c", "b", "a"}, nil, []string{"a", "b", "c"}},
		{"the first of five", []string{"e", "a", "d", "b", "c"}, nil, []string{"a", "b", "c"}},
		{"named", []string{"a", "b", "c", "d"}, []string{"d", "b", "c"}, []string{"b", "c", "d"}},
		{"one of many", []string{"a", "b", "c", "d"}, []string{"d"}, []string{"d"}},
	} {
		c := member()
		c.State.Dir, c.Rights.Daemons, c.Strict.Replicas = "rights", tc.daemons, tc.named
		before := c
		before.Rights.Daemons, before.Strict.Replicas = append([]string(nil), tc.daemons...), append([]string(nil), tc.named...)
		if diff := cmp.Diff(tc.want, c.StrictReplicas()); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
		if diff := cmp.Diff(before, c); diff != "" {
			t.Errorf("%s: the settings changed: %s", tc.name, diff)
		}
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	alone, without := Default(), member()
	if got := append(alone.StrictReplicas(), without.StrictReplicas()...); len(got) > 0 {
		t.Errorf("without rights: %v", got)
	}
}
