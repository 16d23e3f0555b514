package demo

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// The range of the daemons' ports, except those of the first daemon. It lies
// below the ephemeral ports of common systems, so that a restarted daemon finds
// its ports free.
const (
	firstPort = 20_000
	portRange = 12_000
)

// freeAddrs returns addresses of loopback on which nobody listens, neither
// over TCP nor over UDP.
func freeAddrs(n int) ([]string, error) {
	var addrs []string
	start := rand.IntN(portRange)
	for i := range portRange {
		if len(addrs) == n {
			return addrs, nil
		}
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+(start+i)%portRange))
		if free(addr) {
			addrs = append(addrs, addr)
		}
	}
	return nil, fmt.Errorf("found only %d of %d free ports from %d to %d on 127.0.0.1",
		len(addrs), n, firstPort, firstPort+portRange-1)
}

// free reports whether nobody listens on an address.
func free(addr string) bool {
	lis, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	defer lis.Close() // it has no connections
	packets, err := net.ListenPacket("udp", addr)
	if err != nil {
		return false
	}
	return packets.Close() == nil
}
