package gossip

import "testing"

// An incarnation is of one name, and differs between starts.
func TestDaemonIncarnation(t *testing.T) {
	a := DaemonIncarnation("us", "us-0", 1)
	if a == DaemonIncarnation("us", "us-0", 2) {
		t.Error("two starts have one incarnation")
	}
	for _, c := range []struct {
		region, name string
		want         bool
	}{{"us", "us-0", true}, {"us", "us-1", false}, {"eu", "us-0", false}, {"us-", "us0", false}} {
		if got := IncarnationOf(a, c.region, c.name); got != c.want {
			t.Errorf("%s/%s: %t, want %t", c.region, c.name, got, c.want)
		}
	}
}
