package grid

import (
	"testing"
	"time"

	"github.com/georld/rld/sim"
)

// The values of the design stand in their cells.
func TestDesignOfCells(t *testing.T) {
	for _, size := range []Size{{time.Minute, 500 * time.Millisecond, 1}, {10 * time.Second, 500 * time.Millisecond, 1}} {
		for _, pattern := range Patterns() {
			for _, p := range sim.Policies() {
				if designFor(size, pattern, p) == nil {
					t.Errorf("nothing of %v under %v at %+v", p, pattern, size)
				}
			}
		}
	}
	if designFor(Size{time.Hour, time.Second, 1}, Smooth, sim.Naive) != nil {
		t.Error("something of a size that was not played")
	}
}
