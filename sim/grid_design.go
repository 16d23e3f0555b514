package sim

import "time"

// design is what the small simulations found that the estimate gate was
// designed with: one key, three regions, a loss of 1 %.
type design struct{ naive, extrapolated GridFigure }

// notGiven is a figure that they did not give.
const notGiven = -1

// designs holds them in percent, mean and worst. Their smooth load was split
// unevenly, 0.6, 0.3 and 0.1, for which Theorem 1 is about a fifth lower than
// for even shares.
var designs = []struct {
	window, lag  time.Duration
	load         float64
	naive        [2]float64
	extrapolated [2]float64
}{
	{time.Minute, 500 * time.Millisecond, smoothLoad, [2]float64{0.6, 0.7}, [2]float64{0.1, 0.2}},
	{time.Minute, 500 * time.Millisecond, attackLoad, [2]float64{10.6, 11.9}, [2]float64{1.6, 2.8}},
	{time.Minute, 2 * time.Second, smoothLoad, [2]float64{2.5, 2.9}, [2]float64{0.2, 0.5}},
	{time.Minute, 2 * time.Second, attackLoad, [2]float64{40.8, 42.5}, [2]float64{3.0, 6.6}},
	{10 * time.Second, 500 * time.Millisecond, smoothLoad, [2]float64{4.0, 4.7}, [2]float64{0.5, 1.5}},
	{10 * time.Second, 500 * time.Millisecond, attackLoad, [2]float64{65.5, 70.8}, [2]float64{1.7, 6.8}},
	{10 * time.Second, 2 * time.Second, smoothLoad, [2]float64{15.1, notGiven}, [2]float64{0.8, notGiven}},
	{10 * time.Second, 2 * time.Second, attackLoad, [2]float64{200, notGiven}, [2]float64{2.0, notGiven}},
	{time.Second, 500 * time.Millisecond, smoothLoad, [2]float64{38.0, notGiven}, [2]float64{notGiven, notGiven}},
	{time.Second, 500 * time.Millisecond, attackLoad, [2]float64{200, notGiven}, [2]float64{notGiven, notGiven}},
}

// designOf returns what is known of a cell.
func designOf(c GridCell) design {
	for _, d := range designs {
		if d.window == c.Window && d.lag == c.Lag && d.load == c.Load {
			return design{inShares(d.naive), inShares(d.extrapolated)}
		}
	}
	return design{inShares([2]float64{notGiven, notGiven}), inShares([2]float64{notGiven, notGiven})}
}

// inShares turns percent into fractions.
func inShares(percent [2]float64) GridFigure {
	f := GridFigure{Mean: notGiven, Worst: notGiven}
	if percent[0] != notGiven {
		f.Mean = percent[0] / 100
	}
	if percent[1] != notGiven {
		f.Worst = percent[1] / 100
	}
	return f
}
