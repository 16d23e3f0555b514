package overage

import "testing"

func TestLag(t *testing.T) {
	for _, c := range []struct {
		lag  Lag
		text string // "" for windows that are long enough
	}{
		{Lag{1_000, 500, 3}, "windows of 1 s with views 500 ms old: what is admitted in the first 500 ms of a window " +
			"is not known in other regions yet, and a load that uses up the limit by then goes up to 200% over; " +
			"use overage_budget, consistency: strict or longer windows"},
		{Lag{1_000, 1_500, 2}, "windows of 1 s with views 1.5 s old: what is admitted in the first 1 s of a window " +
			"is not known in other regions yet, and a load that uses up the limit by then goes up to 100% over; " +
			"use overage_budget, consistency: strict or longer windows"},
		{Lag{2_000, 500, 2}, "windows of 2 s with views 500 ms old: what is admitted in the first 500 ms of a window " +
			"is not known in other regions yet, and a load that uses up the limit by then goes up to 100% over; " +
			"use overage_budget, consistency: strict or longer windows"},
		{Lag{2_001, 500, 2}, ""},
		{Lag{1_000, 500, 1}, ""},
		{Lag{1_000, 0, 3}, ""},
	} {
		text := ""
		if c.lag.Short() {
			text = c.lag.String()
		}
		if text != c.text {
			t.Errorf("%+v:\n got %s\nwant %s", c.lag, text, c.text)
		}
	}
}
