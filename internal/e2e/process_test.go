//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long anything may take that has no bound of its own. It is
// for a slow machine: nothing waits longer than it must.
const patience = 20 * time.Second

// stopWithin bounds the stop of a daemon, which may wait for 20 s until another
// one has its vote.
const stopWithin = 2 * patience

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

// startCommand starts a process that ends with the tests at the latest.
func startCommand(cmd *exec.Cmd) error {
	cmd.SysProcAttr = dieWithParent()
	started := make(chan error)
	parent <- func() { started <- cmd.Start() }
	return <-started
}

// state is the state in which a test has put a process.
type state int

const (
	down state = iota
	up
	frozen
)

// process is a daemon's process: one run after another.
type process struct {
	argv []string
	log  string // file that all runs append to

	mu    sync.Mutex // guards what follows
	state state
	run   int
	began time.Time
	cmd   *exec.Cmd
	ended chan struct{} // closed when cmd is gone
}

// start begins a new run.
func (p *process) start(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Stderr = log
	cmd.Env = environ()
	ended := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != down {
		t.Fatalf("%s runs already", p.log)
	}
	if err := startCommand(cmd); err != nil {
		t.Fatalf("starting %v: %v", p.argv, err)
	}
	p.cmd, p.ended, p.state, p.began = cmd, ended, up, time.Now()
	p.run++
	go func() {
		_ = cmd.Wait() // the caller of the end knows how it was
		close(ended)
	}()
}

// environ is what daemons see of the environment: nothing that sets them up.
func environ() []string {
	var kept []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "RLD_") {
			kept = append(kept, kv)
		}
	}
	return kept
}

// now returns the state, the run, and its start.
func (p *process) now() (state, int, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state, p.run, p.began
}

// become notes the next state of the process before the test changes it: from
// then on no behavior of the process is a failure.
func (p *process) become(s state) *exec.Cmd {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = s
	return p.cmd
}

// kill ends the process at once (SIGKILL) and waits until it is gone.
func (p *process) kill(t testing.TB) {
	t.Helper()
	p.signal(t, down, syscall.SIGKILL)
	<-p.ended
}

// terminate asks the process to stop (SIGTERM) and waits until it has, in good
// order.
func (p *process) terminate(t testing.TB) {
	t.Helper()
	cmd := p.signal(t, down, syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(stopWithin):
		_ = cmd.Process.Kill() // it may end just now
		<-p.ended
		t.Errorf("%s did not stop within %v of SIGTERM and was killed", filepath.Base(p.log), stopWithin)
	}
	if !cmd.ProcessState.Success() {
		t.Errorf("%s: after SIGTERM: %v, want exit code 0", filepath.Base(p.log), cmd.ProcessState)
	}
}

// freeze stops the process in its tracks (SIGSTOP), thaw lets it go on.
func (p *process) freeze(t testing.TB) { t.Helper(); p.signal(t, frozen, syscall.SIGSTOP) }
func (p *process) thaw(t testing.TB)   { t.Helper(); p.signal(t, up, syscall.SIGCONT) }

func (p *process) signal(t testing.TB, s state, sig syscall.Signal) *exec.Cmd {
	t.Helper()
	cmd := p.become(s)
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatalf("%s: %v: %v", filepath.Base(p.log), sig, err)
	}
	return cmd
}

// end kills the process if it lives, for cleanup: also a frozen one.
func (p *process) end() {
	s, run, _ := p.now()
	if run == 0 || s == down {
		return
	}
	_ = p.become(down).Process.Kill() // it may have ended by itself
	<-p.ended
}

// gone reports whether the process has ended though nobody asked it to.
func (p *process) gone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.ended:
		return p.state != down
	default:
		return false
	}
}

// logTail returns the last lines of the log.
func (p *process) logTail(lines int) string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Sprintf("no log: %v\n", err)
	}
	all := strings.SplitAfter(strings.TrimSuffix(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "") + "\n"
}
