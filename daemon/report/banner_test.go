package report

import "testing"

// TestReachable: the address of a listener on all addresses is one of its own
// machine.
func TestReachable(t *testing.T) {
	for in, want := range map[string]string{
		"[::]:81": "127.0.0.1:81", "0.0.0.0:81": "127.0.0.1:81", "[::1]:81": "[::1]:81",
		"192.0.2.1:81": "192.0.2.1:81",
	} {
		if got := reachable(in); got != want {
			t.Errorf("%s is reached at %s, want %s", in, got, want)
		}
	}
}
