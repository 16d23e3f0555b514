//go:build e2e

package gateways

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long anything may take that has no bound of its own. Nothing
// waits longer than it must.
const patience = 20 * time.Second

// parent starts processes on one thread that lives as long as the tests: the
// kernel ends a process with the thread that started it.
var parent chan func()

// startParent starts the thread; the returned function ends it.
func startParent() (stop func()) {
	parent = make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range parent {
			f()
		}
	}()
	return func() { close(parent) }
}

// process is a program that runs.
type process struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{} // closed when it is gone
}

// startProcess starts a command of a shell in a folder. It ends with the test,
// even if the test is killed.
func startProcess(t *testing.T, folder, name, command string, env ...string) *process {
	t.Helper()
	p := &process{log: filepath.Join(folder, name+".log"), ended: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p.cmd = exec.Command("sh", "-c", "exec "+command)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = folder, log, log
	p.cmd.Env = append(environ(folder), env...)
	// SIGTERM, so that nginx ends its workers.
	p.cmd.SysProcAttr = dieWithParent(syscall.SIGTERM)
	started := make(chan error)
	parent <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	go func() {
		_ = p.cmd.Wait() // logTail shows why
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			t.Logf("the end of the log of %s:\n%s", name, p.logTail(20))
		}
	})
	return p
}

// environ returns the environment of processes: nothing that sets rld up, and
// no files outside the folder.
func environ(folder string) []string {
	var kept []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "RLD_") && !strings.HasPrefix(kv, "XDG_") && !strings.HasPrefix(kv, "HOME=") {
			kept = append(kept, kv)
		}
	}
	return append(kept, "HOME="+folder)
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatalf("%v: %v: %v", p.cmd.Args, s, err)
	}
}

// kill ends the process at once and waits until it is gone.
func (p *process) kill(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	<-p.ended
}

// freeze stops the process in its tracks, and waits until all of its threads
// have stopped.
func (p *process) freeze(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGSTOP)
	until(t, "all threads stop", func() error {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
		for _, file := range threads {
			stat, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			// The state follows the name, which ends with the last parenthesis.
			if _, state, _ := strings.Cut(string(stat), ") "); !strings.HasPrefix(state, "T") {
				return fmt.Errorf("%s: %.60s", file, stat)
			}
		}
		return nil
	})
}

// stop asks the process to end, and kills it if it does not.
func (p *process) stop(t *testing.T) {
	_ = p.cmd.Process.Signal(syscall.SIGCONT) // it may be frozen or gone
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.ended
		t.Errorf("%v did not end within %v of SIGTERM", p.cmd.Args, patience)
	}
}

// gone reports whether the process has ended.
func (p *process) gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// logTail returns the last lines of the log.
func (p *process) logTail(lines int) string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := strings.SplitAfter(strings.TrimSuffix(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "")
}

// waitFor waits until a process listens at an address.
func (p *process) waitFor(t *testing.T, addr string) {
	t.Helper()
	until(t, fmt.Sprintf("%v listens at %s", p.cmd.Args, addr), func() error {
		if p.gone() {
			t.Fatalf("%v has ended:\n%s", p.cmd.Args, p.logTail(20))
		}
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err
	})
}

// until waits until a condition holds: it returns nil.
func until(t *testing.T, what string, holds func() error) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v: %v", what, patience, err)
		}
	}
}
