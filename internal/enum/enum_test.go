package enum

import (
	"slices"
	"testing"
)

type color uint8

// TestName holds that a value without a name is unknown.
func TestName(t *testing.T) {
	for v, want := range []string{"red", "green", "unknown"} {
		if got := Name(color(v), "red", "green"); got != want {
			t.Errorf("the name of %d is %q, want %q", v, got, want)
		}
	}
}

// TestAll holds that the values ascend from 0.
func TestAll(t *testing.T) {
	if got := All[color](3); !slices.Equal(got, []color{0, 1, 2}) {
		t.Errorf("3 values are %v", got)
	}
}
