//go:build e2e

package gateways

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"
)

// startPolicy is the program that Debian asks whether a package may start its
// service.
const startPolicy = "/usr/sbin/policy-rc.d"

// install installs the packages of the programs that are missing, without
// starting their services. The tests of a program that is missing still are
// skipped, or fail in CI: a test that is always skipped tests nothing.
func install(t *testing.T, missing []string) {
	if len(missing) == 0 {
		return
	}
	t.Logf("apt-get installs %q", missing)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	remove, err := forbidStarts()
	if err != nil {
		t.Logf("no package is installed: %v", err)
		return
	}
	defer remove()
	args := append([]string{"install", "-y", "--no-install-recommends"}, missing...)
	out, err := exec.CommandContext(ctx, "apt-get", args...).CombinedOutput()
	if err != nil {
		// The lists of packages may be missing or old; the second try shows it.
		_ = exec.CommandContext(ctx, "apt-get", "update").Run()
		out, err = exec.CommandContext(ctx, "apt-get", args...).CombinedOutput()
	}
	if err != nil {
		t.Logf("apt-get: %v\n%s", err, out)
	}
}

// forbidStarts has packages start no services until the returned function is
// called.
func forbidStarts() (allow func(), err error) {
	f, err := os.OpenFile(startPolicy, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if errors.Is(err, os.ErrExist) {
		return func() {}, nil // the system has a policy of its own
	}
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString("#!/bin/sh\nexit 101\n")
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(startPolicy)
		return nil, err
	}
	return func() { os.Remove(startPolicy) }, nil
}

// need skips a test without a program.
func need(t *testing.T, program, pkg string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	give := t.Skipf
	if os.Getenv("CI") != "" {
		give = t.Fatalf
	}
	give("%s is missing: install the package %s of Debian", program, pkg)
}
