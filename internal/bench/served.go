package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// served is a running rld.
type served struct {
	*child
	grpc, admin string // addresses
	peers, swim string // of a daemon with a region
	clustered   bool
	ready       time.Duration // from its start to the first 200 of /readyz
}

// readyWait bounds how long rld may take to become ready.
const readyWait = 30 * time.Second

// readyPoll is the time between two looks.
const readyPoll = 2 * time.Millisecond

// rld returns the path of the binary to measure, which is built as users
// build it when none was named.
func (b *bench) rld(ctx context.Context) (string, error) {
	if b.rldPath != "" {
		return filepath.Abs(b.rldPath)
	}
	path := filepath.Join(b.dir, "rld")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, "github.com/georld/rld/cmd/rld")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building rld (outside the repository, name a binary with -rld): %w\n%s", err, out)
	}
	b.rldPath = path
	return path, nil
}

// serve starts rld on a file or folder of limits and free ports, and returns
// when it is ready.
func (b *bench) serve(ctx context.Context, limits string, more ...string) (*served, error) {
	path, err := b.rld(ctx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	args := []string{"serve", "--limits", limits,
		"--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0"}
	c, err := startChild(ctx, "rld serve", b.dir, path, append(args, more...)...)
	if err != nil {
		return nil, err
	}
	s := &served{child: c, clustered: slices.Contains(more, "--region")}
	if err := s.await(ctx, start); err != nil {
		// The exit status and the standard error explain more than the missing
		// output.
		if ended := c.stop(); ended != nil {
			return nil, ended
		}
		return nil, err
	}
	return s, nil
}

// await reads the addresses from the banner and waits until /readyz answers
// 200.
func (s *served) await(ctx context.Context, start time.Time) error {
	defer s.killAfter(readyWait)()
	for s.grpc == "" || s.admin == "" {
		line, err := s.readLine()
		if err != nil {
			return err
		}
		if what, addr, ok := listener(line); ok {
			switch what {
			case "gRPC":
				s.grpc = addr
			case "admin":
				s.admin = addr
			}
		}
	}
	if s.clustered {
		for s.swim == "" {
			line, err := s.readLine()
			if err != nil {
				return err
			}
			switch what, addr, _ := listener(line); what {
			case "peers":
				s.peers = addr
			case "swim":
				s.swim = addr
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	for !isReady(ctx, s.admin) {
		select {
		case <-ctx.Done():
			return s.failed(fmt.Errorf("not ready on %s after %v", s.admin, time.Since(start)))
		case <-time.After(readyPoll):
		}
	}
	s.ready = time.Since(start)
	return nil
}

// listener reads a line of the banner that names a listener: what answers
// there, its address, and more.
func listener(line string) (what, addr string, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 2 {
		return "", "", false
	}
	if _, err := netip.ParseAddrPort(fields[1]); err != nil {
		return "", "", false
	}
	return fields[0], fields[1], true
}

func isReady(ctx context.Context, admin string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/readyz", nil)
	if err != nil {
		return false
	}
	// A connection of its own: none is kept from look to look.
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode == http.StatusOK
}
