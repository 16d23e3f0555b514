package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Roles of this binary as a child process.
const (
	roleNoop   = "as-noop-server"
	roleClient = "as-client"
	roleRelay  = "as-relay"
)

// stopWait is how long a child may take to end when it is asked to.
const stopWait = 5 * time.Second

// child is a process of ours, which must be started and stopped. It is used
// by one goroutine.
type child struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	errs tail
}

// startChild starts a program in a folder. It is killed when ctx ends and,
// where the system can do that, with the thread that called.
func startChild(ctx context.Context, name, dir, path string, args ...string) (*child, error) {
	c := &child{name: name, cmd: exec.CommandContext(ctx, path, args...)}
	c.cmd.Dir = dir
	c.cmd.Env = environ(os.Environ())
	c.cmd.SysProcAttr = dieWithParent()
	c.cmd.Stderr = &c.errs
	c.cmd.WaitDelay = stopWait
	in, inErr := c.cmd.StdinPipe()
	out, outErr := c.cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c.in, c.out = in, bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// startRole starts this binary in a role.
func startRole(ctx context.Context, role, dir string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("%s: own binary: %w", role, err)
	}
	return startChild(ctx, role, dir, self, role)
}

// environ is what children see of the environment: nothing that would change
// how rld is set up.
func environ(all []string) []string {
	keep := []string{"PATH", "HOME", "TMPDIR", "GOMAXPROCS", "GODEBUG", "GOGC", "GOMEMLIMIT"}
	return slices.DeleteFunc(slices.Clone(all), func(kv string) bool {
		key, _, _ := strings.Cut(kv, "=")
		return !slices.Contains(keep, key)
	})
}

// readLine returns the next line of the child's output. At its end, the error
// includes the last text of the child's standard error.
func (c *child) readLine() (string, error) {
	line, err := c.out.ReadString('\n')
	if err != nil {
		return "", c.failed(fmt.Errorf("no more output: %w", err))
	}
	return strings.TrimSuffix(line, "\n"), nil
}

// killAfter kills the child unless the returned function is called in time.
func (c *child) killAfter(d time.Duration) (inTime func()) {
	t := time.AfterFunc(d, func() { c.cmd.Process.Kill() })
	return func() { t.Stop() }
}

// failed adds the child's name and its standard error to an error.
func (c *child) failed(err error) error {
	if said := strings.TrimSpace(c.errs.String()); said != "" {
		return fmt.Errorf("%s: %w; it said:\n%s", c.name, err, said)
	}
	return fmt.Errorf("%s: %w", c.name, err)
}

// stop sends SIGTERM to the child, waits for it, and kills it after stopWait.
// Ending by the signal is no error.
func (c *child) stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return c.failed(err)
	}
	inTime := c.killAfter(stopWait)
	defer inTime()
	err := c.cmd.Wait()
	state, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && state.Signaled() && state.Signal() == syscall.SIGTERM {
		return nil
	}
	if err != nil {
		return c.failed(err)
	}
	return nil
}

// tailBytes is how much of a child's complaints is kept.
const tailBytes = 4 << 10

// tail is a writer that keeps the last tailBytes. It is safe for concurrent
// use.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write keeps p and never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

// String returns the kept text.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
