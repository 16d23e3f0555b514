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
func (b *bench) manyLimits() (string, error) {
	dir := filepath.Join(b.dir, "many")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("limits to start with: %w", err)
	}
	for _, f := range manyRules() {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o600); err != nil {
			return "", fmt.Errorf("limits to start with: %w", err)
		}
	}
	return dir, nil
}

// measureStart measures the time from the start of the process to its first 200
// of /readyz, beside the time of `rld version`.
func measureStart(ctx context.Context, b *bench) (outcome, error) {
	dir, err := b.manyLimits()
	if err != nil {
		return outcome{}, err
	}
	// Built before the first round, not in it.
	path, err := b.rld(ctx)
	if err != nil {
		return outcome{}, err
	}
	readings, err := alternate(ctx, b.rounds(5),
		func() (float64, error) {
			s, err := b.serve(ctx, dir)
			if err != nil {
				return 0, err
			}
			return float64(s.ready), s.stop()
		},
		func() (float64, error) {
			start := time.Now()
			c, err := startChild(ctx, "rld version", b.dir, path, "version")
			if err != nil {
				return 0, err
			}
			_, err = io.Copy(io.Discard, c.out)
			took := time.Since(start)
			return float64(took), errors.Join(err, c.cmd.Wait())
		},
	)
	if err != nil {
		return outcome{}, err
	}
	return compare(nanoseconds, least, readings, "rld version"), nil
}

// measureRSS measures the memory of a daemon that has done nothing for a
// while, beside a no-op gRPC server that has done nothing either.
func measureRSS(ctx context.Context, b *bench) (_ outcome, err error) {
	dir, err := b.manyLimits()
	if err != nil {
		return outcome{}, err
	}
	s, err := b.serve(ctx, dir)
	if err != nil {
		return outcome{}, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	noop, err := startRole(ctx, roleNoop, b.dir)
	if err != nil {
		return outcome{}, err
	}
	defer func() { err = errors.Join(err, noop.stop()) }()
	if _, err := noop.readLine(); err != nil {
		return outcome{}, err
	}
	if err := sleep(ctx, b.rest); err != nil {
		return outcome{}, err
	}
	mine, err := residentBytes(s.cmd.Process.Pid)
	if err != nil {
		return outcome{}, err
	}
	other, err := residentBytes(noop.cmd.Process.Pid)
	if err != nil {
		return outcome{}, err
	}
	return outcome{
		Measured: mine, Beside: other, BesideWhat: "no-op gRPC server", Unit: memory, Ratio: mine / other,
	}, nil
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
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %q: want a number of kB", path, strings.TrimSpace(line))
			}
			return kib * 1_024, nil
		}
	}
	return 0, fmt.Errorf("%s has no VmRSS", path)
}
