package grid

import (
	"time"

	"github.com/georld/rld/sim"
)

// policyDesigns holds the figures of the simulation of the design, in percent:
// mean and worst overage, and false denials, by pattern in the order of
// Patterns. Three regions of one daemon, a budget of 10 %, 1 % of the messages
// lost. False denials of bursts under budgeted and partition are those of its
// later transfer policy, which is the one in use.
var policyDesigns = []struct {
	window, lag time.Duration
	policy      sim.Policy
	cells       [patternKinds][3]float64
}{
	{time.Minute, 500 * time.Millisecond, sim.Naive, [patternKinds][3]float64{
		{0.6, 0.7, 0}, {10.6, 11.9, 0}, {0.2, 1.1, 0}, {196, 198, 0}, {0, 0, 0}, {0, 0, 0}}},
	{time.Minute, 500 * time.Millisecond, sim.Extrapolated, [patternKinds][3]float64{
		{0.1, 0.2, 0}, {1.6, 2.8, 0}, {0, 0.1, 0}, {196, 198, 0}, {0, 0, 0}, {0, 0, 0}}},
	{time.Minute, 500 * time.Millisecond, sim.Capped, [patternKinds][3]float64{
		{0.1, 0.2, 0}, {1.6, 2.8, 0}, {0, 0.1, 8.6}, {10, 10, 0}, {0, 0, 68.2}, {0, 0, 26.8}}},
	{time.Minute, 500 * time.Millisecond, sim.Budgeted, [patternKinds][3]float64{
		{0.1, 0.2, 0}, {1.6, 2.8, 0}, {0, 0.1, 0}, {10, 10, 0}, {0, 0, 20}, {0, 0, 0}}},
	{time.Minute, 500 * time.Millisecond, sim.Partitioned, [patternKinds][3]float64{
		{0, 0, 0}, {0, 0, 0}, {0, 0, 0.2}, {0, 0, 0}, {0, 0, 22}, {0, 0, 0}}},
	{time.Minute, 500 * time.Millisecond, sim.Static, [patternKinds][3]float64{
		{0, 0, 18.5}, {0, 0, 0}, {0, 0, 22.5}, {0, 0, 0}, {0, 0, 60.9}, {0, 0, 38.2}}},

	{time.Minute, 2 * time.Second, sim.Naive, [patternKinds][3]float64{
		{2.5, 2.9, 0}, {40.8, 42.5, 0}, {0.9, 3.7, 0}, {196, 199, 0}, {0, 0, 0}, {0, 0, 0}}},
	{time.Minute, 2 * time.Second, sim.Extrapolated, [patternKinds][3]float64{
		{0.2, 0.5, 0}, {3, 6.6, 0}, {0.4, 2.9, 0.3}, {195, 198, 0}, {0, 0, 0.1}, {0, 0, 0}}},
	{time.Minute, 2 * time.Second, sim.Capped, [patternKinds][3]float64{
		{0.2, 0.5, 0}, {2.9, 6.5, 0}, {0.1, 0.4, 8.6}, {10, 10, 0}, {0, 0, 68.2}, {0, 0, 26.8}}},
	{time.Minute, 2 * time.Second, sim.Budgeted, [patternKinds][3]float64{
		{0.2, 0.5, 0}, {2.9, 6.5, 0}, {0.4, 1.8, 2.1}, {10, 10, 0}, {0, 0, 55}, {0, 0, 0}}},
	{time.Minute, 2 * time.Second, sim.Partitioned, [patternKinds][3]float64{
		{0, 0, 0}, {0, 0, 0}, {0, 0, 4.3}, {0, 0, 0}, {0, 0, 59}, {0, 0, 0}}},
	{time.Minute, 2 * time.Second, sim.Static, [patternKinds][3]float64{
		{0, 0, 18.5}, {0, 0, 0}, {0, 0, 22.5}, {0, 0, 0}, {0, 0, 60.9}, {0, 0, 38.2}}},

	{10 * time.Second, 500 * time.Millisecond, sim.Naive, [patternKinds][3]float64{
		{4, 4.7, 0}, {65.5, 70.8, 0}, {2.8, 12.6, 0}, {195, 198, 0}, {0, 0, 0}, {0, 0, 0}}},
	{10 * time.Second, 500 * time.Millisecond, sim.Extrapolated, [patternKinds][3]float64{
		{0.5, 1.5, 0}, {1.7, 6.8, 0}, {0.8, 5.5, 0.2}, {195, 198, 0}, {0, 0, 0.1}, {0, 0, 0}}},
	{10 * time.Second, 500 * time.Millisecond, sim.Capped, [patternKinds][3]float64{
		{0.5, 1.3, 0}, {1.7, 6.8, 0}, {0.1, 1.9, 6.6}, {10, 10, 0}, {0, 0, 54.7}, {0, 0, 26.8}}},
	{10 * time.Second, 500 * time.Millisecond, sim.Budgeted, [patternKinds][3]float64{
		{0.5, 1.5, 0}, {1.7, 6.8, 0}, {0.8, 4.7, 3.3}, {10, 10, 0}, {0, 0, 53}, {0, 0, 0}}},
	{10 * time.Second, 500 * time.Millisecond, sim.Partitioned, [patternKinds][3]float64{
		{0, 0, 0.1}, {0, 0, 0.1}, {0, 0, 6}, {0, 0, 0.1}, {0, 0, 57}, {0, 0, 0.1}}},
	{10 * time.Second, 500 * time.Millisecond, sim.Static, [patternKinds][3]float64{
		{0, 0, 18.5}, {0, 0, 0}, {0, 0, 22.5}, {0, 0, 0}, {0, 0, 60.6}, {0, 0, 38.1}}},

	{time.Second, 100 * time.Millisecond, sim.Naive, [patternKinds][3]float64{
		{8.1, 11.5, 0}, {128, 142, 0}, {3.2, 35.2, 0}, {195, 200, 0}, {0, 0.7, 0}, {0, 0, 0}}},
	{time.Second, 100 * time.Millisecond, sim.Extrapolated, [patternKinds][3]float64{
		{0.9, 2.8, 0}, {3.2, 15.6, 0}, {0.6, 9.5, 0.1}, {194, 199, 0}, {0, 0.3, 0.3}, {0, 0, 0}}},
	{time.Second, 100 * time.Millisecond, sim.Capped, [patternKinds][3]float64{
		{0.9, 2.8, 0}, {3, 9.8, 0}, {0, 0, 18.1}, {9.8, 9.9, 0}, {0, 0, 60}, {0, 0, 26.9}}},
	{time.Second, 100 * time.Millisecond, sim.Budgeted, [patternKinds][3]float64{
		{0.9, 2.8, 0}, {3, 9.8, 0}, {0.1, 4.9, 9.3}, {9.8, 9.9, 0}, {0, 0, 60}, {0, 0, 1.2}}},
	{time.Second, 100 * time.Millisecond, sim.Partitioned, [patternKinds][3]float64{
		{0, 0, 0.2}, {0, 0, 0.1}, {0, 0, 11.9}, {0, 0, 0.2}, {0, 0, 63.2}, {0, 0, 1.6}}},
	{time.Second, 100 * time.Millisecond, sim.Static, [patternKinds][3]float64{
		{0, 0, 18.4}, {0, 0, 0.1}, {0, 0, 29.4}, {0, 0, 0.1}, {0, 0, 60.6}, {0, 0, 38.3}}},
}

// designFor returns the figures of the design for a cell, nil for none.
func designFor(size Size, pattern Pattern, p sim.Policy) *sim.GridDesign {
	for i := range policyDesigns {
		if d := &policyDesigns[i]; d.window == size.Window && d.lag == size.Lag && d.policy == p {
			c := d.cells[pattern]
			return &sim.GridDesign{OverageMean: c[0] / 100, OverageWorst: c[1] / 100, FalseDenial: c[2] / 100}
		}
	}
	return nil
}
