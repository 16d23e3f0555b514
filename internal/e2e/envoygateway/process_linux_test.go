//go:build e2e

package envoygateway

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long anything may take that has no bound of its own. Nothing
// waits longer than it must.
const patience = 20 * time.Second

// process is a program that runs.
type process struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{} // closed when it is gone
}

// start starts a program in the namespace. It ends with the test, even if the
// test is killed.
func (h *host) start(t *testing.T, log string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, log: log, ended: make(chan struct{})}
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := h.do(cmd.Start); err != nil {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	go func() {
		_ = cmd.Wait() // the log has the reason
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the end of %s:\n%s", filepath.Base(log), p.tail(40))
		}
	})
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// tail returns the last lines of the log.
func (p *process) tail(n int) string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.SplitAfter(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "")
}

// until waits for a check to succeed.
func until(t *testing.T, what string, check func() error) time.Duration {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		err := check()
		if err == nil {
			return time.Since(begin)
		}
		if time.Since(begin) > patience {
			t.Fatalf("%s: not within %v: %v", what, patience, err)
		}
	}
}
