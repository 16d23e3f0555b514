package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStrictReplicas checks which daemons are the strict voters.
func TestStrictReplicas(t *testing.T) {
	c := member()
	c.State.Dir, c.Strict.Replicas = "rights", []string{"d", "b", "c"}
	if diff := cmp.Diff([]string{"b", "c", "d"}, c.StrictReplicas()); diff != "" || c.Strict.Replicas[0] != "d" {
		t.Errorf("%v: %s", c.Strict.Replicas, diff)
	}
	alone, without := Default(), member()
	if got := append(alone.StrictReplicas(), without.StrictReplicas()...); len(got) > 0 {
		t.Errorf("without rights: %v", got)
	}
}
