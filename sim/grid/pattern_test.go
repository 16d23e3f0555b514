package grid

import "testing"

// TestPatternNames checks that each pattern has a name of its own.
func TestPatternNames(t *testing.T) {
	named := make(map[string]Pattern)
	for _, p := range Patterns() {
		if other, ok := named[p.String()]; ok || p.String() == "unknown" {
			t.Errorf("patterns %d and %d are both named %q", other, p, p)
		}
		named[p.String()] = p
	}
}
