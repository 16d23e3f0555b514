package grid

import (
	"strings"
	"testing"
)

func TestPatternNames(t *testing.T) {
	for _, p := range Patterns() {
		if got, err := PatternNamed(p.String()); got != p || err != nil {
			t.Errorf("%v: %v, %v", p, got, err)
		}
	}
	if _, err := PatternNamed(""); err == nil || !strings.Contains(err.Error(), "syncburst") {
		t.Errorf("%v: want it to list all", err)
	}
}
