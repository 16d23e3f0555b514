package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/georld/rld/internal/load"
)

// What forwarding costs is measured beside processes that pass bytes on to each
// other and do nothing else: how long it takes to wake them is the machine's.

// bareBytes is the length of an exchanged message in bytes, about that of a
// lease request or grant.
const bareBytes = 100

// The first byte of a message.
const (
	bareAnswer = iota
	barePass   // to the next one, and its answer back
)

// serveRelay is the main function of a relay process. It reads the address of
// the next relay, an empty line for none, prints its own address, and serves
// until its input ends.
func serveRelay(in io.Reader, out io.Writer) {
	lines := bufio.NewReader(in)
	next, err := lines.ReadString('\n')
	if err != nil {
		return // the parent process has ended
	}
	lis := must(net.Listen("tcp", "127.0.0.1:0"))
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		lis.Close()
	}()
	fmt.Fprintln(out, lis.Addr())
	for {
		conn, err := lis.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		check(err)
		go relay(conn, strings.TrimSpace(next))
	}
}

// relay answers what comes over a connection until it ends.
func relay(conn net.Conn, next string) {
	defer conn.Close()
	var up net.Conn
	if next != "" {
		var err error
		if up, err = net.Dial("tcp", next); err != nil {
			return
		}
		defer up.Close()
	}
	b := make([]byte, bareBytes)
	for {
		if _, err := io.ReadFull(conn, b); err != nil {
			return
		}
		if b[0] == barePass && up != nil {
			if err := exchange(up, b); err != nil {
				return
			}
		}
		if _, err := conn.Write(b); err != nil {
			return
		}
	}
}

// exchange sends bytes and waits for as many.
func exchange(conn net.Conn, b []byte) error {
	if _, err := conn.Write(b); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, b)
	return err
}

// bare is an open loop of exchanges with a relay, one at a time: one that is
// late counts from when it was planned.
func (c *client) bare(ctx context.Context, j job) (result, error) {
	conn, err := net.Dial("tcp", j.Target)
	if err != nil {
		return result{}, fmt.Errorf("connecting to %s: %w", j.Target, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	b := make([]byte, bareBytes)
	if j.Pass {
		b[0] = barePass
	}
	start := time.Now().Add(time.Millisecond)
	call := func(context.Context) (bool, error) {
		if err := exchange(conn, b); err != nil {
			return false, fmt.Errorf("relay at %s: %w", j.Target, err)
		}
		return true, nil
	}
	return counted(start.Add(j.Warm), func(done load.Done) error {
		return load.Open(ctx, []load.Call{call}, j.schedule(start), done)
	})
}

// startRelays starts two relays, of which the second passes on to the first,
// and adds their ends to a cleanup. It returns the address of the second.
func startRelays(ctx context.Context, dir string, relays *cleanup) (target string) {
	for range 2 {
		c := must(startRole(ctx, roleRelay, dir))
		relays.add(c.stop)
		must(fmt.Fprintln(c.in, target))
		target = must(c.readLine())
	}
	return target
}
