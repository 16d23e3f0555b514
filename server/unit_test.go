package server_test

import (
	"testing"

	"github.com/georld/rld/server"
)

func TestUnitProblem(t *testing.T) {
	for _, tt := range []struct {
		unit        int32
		known, want string
	}{
		{
			99, server.Units,
			"limit override with the unknown unit 99; want one of SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, YEAR",
		},
		{
			-1, server.UnitsWithoutWeek,
			"limit override with the unknown unit -1; want one of SECOND, MINUTE, HOUR, DAY, MONTH, YEAR",
		},
		{
			0, server.Units,
			"limit override without a unit; want one of SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, YEAR",
		},
	} {
		if got := server.UnitProblem(tt.unit, tt.known); got != tt.want {
			t.Errorf("unit %d: got %q, want %q", tt.unit, got, tt.want)
		}
	}
}
