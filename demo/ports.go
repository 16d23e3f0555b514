package demo

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
)

// The range of the daemons' ports, except those of the first daemon. It lies
// below the ephemeral ports of common systems, so that a restarted daemon finds
// its ports free.
const (
	firstPort = 20_000
	lastPort  = 31_999
	portTries = 2_000
)

// freeAddrs returns addresses of loopback on which nobody listens, neither
// over TCP nor over UDP.
func freeAddrs(n int) (addrs []string, err error) {
	var open []io.Closer // until all are found, so that none is found twice
	defer func() {
		for _, c := range open {
			err = errors.Join(err, c.Close())
		}
	}()
	for range portTries {
		if len(addrs) == n {
			return addrs, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		lis, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		open = append(open, lis)
		packets, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		open = append(open, packets)
		addrs = append(addrs, addr)
	}
	return nil, fmt.Errorf("found only %d of %d free ports from %d to %d on 127.0.0.1", len(addrs), n, firstPort, lastPort)
}
