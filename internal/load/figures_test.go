package load

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		in := append([]float64(nil), c.of...)
		if got := Median(in); got != c.want {
			t.Errorf("median(%v) = %v, want %v", c.of, got, c.want)
		}
		if d := cmp.Diff(c.of, in); d != "" {
			t.Errorf("median changed its values (-want +got):\n%s", d)
		}
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1_000: "1,000", 12_345_678: "12,345,678"} {
		if got := Grouped(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestScaled(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.00 B", 9.994: "9.99 B", 9.996: "10.0 B", 99.96: "100 B", 999.4: "999 B", 999.6: "1.00 KB", 5e9: "5000 MB",
	} {
		if got := Scaled(v, 1e3, "B", "KB", "MB"); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}
