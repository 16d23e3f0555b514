package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/georld/rld/limits"
)

// The limits that rld starts with: tenants with a limit of their own and one
// for each of their endpoints, a file a domain.
const (
	startDomains = 10
	startTenants = 20
)

// manyRules returns 1,000 rules as limits files.
func manyRules() []limits.File {
	algorithms := [...]string{"fixed_window", "sliding_window", "sliding_log", "leaky_bucket"}
	files := make([]limits.File, startDomains)
	for d := range files {
		var s strings.Builder
		fmt.Fprintf(&s, "domain: domain-%02d\ndescriptors:\n", d)
		for t := range startTenants {
			fmt.Fprintf(&s, "  - key: tenant\n    value: tenant-%02d\n", t)
			s.WriteString("    rate_limit: {unit: minute, requests_per_unit: 5000, algorithm: token_bucket}\n")
			s.WriteString("    descriptors:\n")
			for e, name := range algorithms {
				fmt.Fprintf(&s, "      - key: endpoint\n        value: /v1/things/%d\n", e)
				fmt.Fprintf(&s, "        rate_limit: {unit: minute, requests_per_unit: 100, algorithm: %s}\n", name)
			}
		}
		files[d] = limits.File{Name: fmt.Sprintf("domain-%02d.yaml", d), Data: []byte(s.String())}
	}
	return files
}

// manyLimits writes the files of manyRules into a folder and returns it.
func (b *bench) manyLimits() string {
	dir := filepath.Join(b.dir, "many")
	check(os.MkdirAll(dir, 0o700))
	for _, f := range manyRules() {
		check(os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o600))
	}
	return dir
}

// measureStart measures the time from the start of the process to its first 200
// of /readyz, beside the time of `rld version`.
func measureStart(ctx context.Context, b *bench) outcome {
	dir := b.manyLimits()
	path := b.rld(ctx) // Built before the first round, not in it.
	readings := alternate(ctx, b.rounds(5),
		func() float64 {
			s := b.serve(ctx, dir)
			check(s.stop())
			return float64(s.ready)
		},
		func() float64 {
			start := time.Now()
			c := must(startChild(ctx, "rld version", b.dir, path, "version"))
			_, err := io.Copy(io.Discard, c.out)
			took := time.Since(start)
			check(errors.Join(err, c.cmd.Wait()))
			return float64(took)
		},
	)
	return compare(nanoseconds, least, readings, "rld version")
}

// measureRSS measures the memory of a daemon that has done nothing for a
// while, beside a no-op gRPC server that has done nothing either.
func measureRSS(ctx context.Context, b *bench) outcome {
	s := b.serve(ctx, b.manyLimits())
	defer finish(s.stop)
	noop := must(startRole(ctx, roleNoop, b.dir))
	defer finish(noop.stop)
	must(noop.readLine())
	check(sleep(ctx, b.rest))
	mine, other := must(residentBytes(s.cmd.Process.Pid)), must(residentBytes(noop.cmd.Process.Pid))
	return compare(memory, mean, [][]float64{{mine}, {other}}, "no-op gRPC server")
}

// residentBytes returns the resident memory of a process from /proc, in bytes.
func residentBytes(pid int) (float64, error) {
	path := filepath.Join("/proc", strconv.Itoa(pid), "status")
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("resident memory: %w", err)
	}
	return parseRSS(path, string(data))
}

// parseRSS reads "VmRSS:   12345 kB".
func parseRSS(path, status string) (float64, error) {
	_, rest, _ := strings.Cut(status, "VmRSS:")
	kib := 0.0
	if _, err := fmt.Sscanf(rest, "%f kB", &kib); err != nil {
		return 0, fmt.Errorf("%s: VmRSS: %w", path, err)
	}
	return kib * 1_024, nil
}
