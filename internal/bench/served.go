package main

import (
	"context"
	"fmt"
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
	// The addresses; peers and swim are of a daemon with a region.
	grpc, http, admin, peers, swim string

	ready time.Duration // from its start to the first 200 of /readyz
}

// readyWait bounds how long rld may take to become ready.
const readyWait = 30 * time.Second

// readyPoll is the time between two looks.
const readyPoll = 2 * time.Millisecond

// rld returns the path of the binary to measure, which is built as users
// build it when none was named.
func (b *bench) rld(ctx context.Context) string {
	if b.rldPath != "" {
		return must(filepath.Abs(b.rldPath))
	}
	path := filepath.Join(b.dir, "rld")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, "github.com/georld/rld/cmd/rld")
	if out, err := build.CombinedOutput(); err != nil {
		check(fmt.Errorf("building rld (outside the repository, name a binary with -rld): %w\n%s", err, out))
	}
	b.rldPath = path
	return path
}

// serve starts rld on a file or folder of limits, "" for others, and free
// ports, and returns when it is ready.
func (b *bench) serve(ctx context.Context, limits string, more ...string) *served {
	path, start := b.rld(ctx), time.Now()
	args := []string{
		"serve", "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0",
	}
	if limits != "" {
		args = append(args, "--limits", limits)
	}
	s := &served{child: must(startChild(ctx, "rld serve", b.dir, path, append(args, more...)...))}
	if err := s.await(ctx, start, slices.Contains(more, "--region")); err != nil {
		// The exit status and the standard error explain more than the missing
		// output.
		check(s.stop())
		check(err)
	}
	return s
}

// serveMember starts rld as a daemon of a region, with the scratch folder's
// secret.
func (b *bench) serveMember(ctx context.Context, limits, region, name string, more ...string) *served {
	return b.serve(ctx, limits, append(more, "--region", region, "--name", name, "--cluster-secret-file", b.secretFile(),
		"--peer-addr", "127.0.0.1:0", "--swim-addr", "127.0.0.1:0")...)
}

// await reads the addresses from the banner, in a region also those of peers,
// and waits until /readyz answers 200.
func (s *served) await(ctx context.Context, start time.Time, region bool) error {
	defer s.killAfter(readyWait)()
	for s.grpc == "" || s.http == "" || s.admin == "" || region && s.swim == "" {
		line, err := s.readLine()
		if err != nil {
			return err
		}
		switch what, addr, _ := listener(line); what {
		case "gRPC":
			s.grpc = addr
		case "HTTP":
			s.http = addr
		case "admin":
			s.admin = addr
		case "peers":
			s.peers = addr
		case "swim":
			s.swim = addr
		}
	}
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	for _, err := s.page(ctx, readyPath); err != nil; _, err = s.page(ctx, readyPath) {
		if sleep(ctx, readyPoll) != nil {
			return s.failed(fmt.Errorf("not ready on %s after %v: %w", s.admin, time.Since(start), err))
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
