package link

import (
	"errors"
	"net"
	"net/netip"
	"testing"
)

// TestMayDial: a name that resolves to an address that may not be dialed is not
// connected to.
func TestMayDial(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	_, port, _ := net.SplitHostPort(lis.Addr().String())
	addr := net.JoinHostPort("localhost", port)
	not := errors.New("not there")
	for _, want := range []error{nil, not} {
		dial := dialTCP(func(of string, ip netip.Addr) error {
			if of != addr || !ip.IsLoopback() {
				t.Errorf("asked for %s at %s", of, ip)
			}
			return want
		})
		conn, err := dial(t.Context(), addr)
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
		if err == nil {
			conn.Close()
		}
	}
}
