//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// network connects the daemons of a cluster.
type network interface {
	// host returns the address of the daemons of region i.
	host(i int) string
	// ports returns n ports that are free in all regions.
	ports(t testing.TB, n int) []int
	// command returns how to run argv in region i.
	command(i int, argv []string) []string
	// dial connects the test to a daemon, whatever is cut.
	dial(ctx context.Context, addr string) (net.Conn, error)
}

// loopback has all regions at 127.0.0.1.
type loopback struct{}

func (loopback) host(int) string                       { return "127.0.0.1" }
func (loopback) command(_ int, argv []string) []string { return argv }
func (loopback) ports(t testing.TB, n int) []int       { t.Helper(); return freePorts(t, n) }
func (loopback) dial(ctx context.Context, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

// The ports that are tried: below those that systems give to outgoing
// connections, so that no such takes a port while its daemon is down.
const (
	firstPort = 20_000
	lastPort  = 29_999
)

// given are the ports that clusters of this process have had.
var given = struct {
	sync.Mutex
	ports map[int]bool
}{ports: make(map[int]bool)}

// freePorts returns n ports of 127.0.0.1 that are free for TCP and UDP, each
// one once.
func freePorts(t testing.TB, n int) []int {
	t.Helper()
	given.Lock()
	defer given.Unlock()
	var out []int
	start := rand.IntN(lastPort - firstPort)
	for i := range lastPort - firstPort {
		port := firstPort + (start+i)%(lastPort-firstPort)
		if !given.ports[port] && portFree(port) {
			given.ports[port] = true
			if out = append(out, port); len(out) == n {
				return out
			}
		}
	}
	t.Fatalf("%d free ports wanted, %d found between %d and %d", n, len(out), firstPort, lastPort)
	return nil
}

func portFree(port int) bool {
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	lis, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	defer lis.Close()
	conn, err := net.ListenPacket("udp", addr)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}
