//go:build linux

package kubernetes_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// process is a running container.
type process struct {
	*container
	template pod
	cmd      *exec.Cmd
	log      string // file
	started  time.Time
	ended    chan struct{} // closed when the process is gone
}

// start starts a pod. It ends with the test at the latest.
func (n *node) start(o *overlay, template pod, name, ip string) *process {
	n.t.Helper()
	c := n.container(o, template, name, ip)
	p := &process{container: c, template: template, log: filepath.Join(n.dir, c.pod+".log"), ended: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		n.t.Fatal(err)
	}
	defer log.Close()
	p.cmd = c.run(c.args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.started = time.Now()
	if err := p.begin(); err != nil {
		n.t.Fatalf("%s: %v", c.pod, err)
	}
	n.t.Cleanup(func() {
		if n.t.Failed() {
			n.t.Logf("the end of the log of %s:\n%s", c.pod, p.tail())
		}
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.ended
	})
	return p
}

// begin starts the process from a thread that waits for its end: the kernel
// ends a process with the thread that started it.
func (p *process) begin() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // its caller looks at the state
			close(p.ended)
		}
	}()
	return <-started
}

func (p *process) tail() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.SplitAfter(string(data), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "")
}

// probe asks as the kubelet does: without a proxy, without a connection that
// stays, and a redirect or an answer below 400 is a success.
func (p *process) probe(pr *corev1.Probe) error {
	port := pr.HTTPGet.Port.IntVal
	for _, named := range p.spec.Ports {
		if named.Name == pr.HTTPGet.Port.StrVal {
			port = named.ContainerPort
		}
	}
	timeout := time.Duration(max(1, pr.TimeoutSeconds)) * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	url := fmt.Sprintf("http://%s:%d%s", p.ip, port, pr.HTTPGet.Path)
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	q.Header.Set("User-Agent", "kube-probe/1.37")
	q.Header.Set("Accept", "*/*")
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := web.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode >= http.StatusBadRequest {
		var body bytes.Buffer
		_, _ = body.ReadFrom(http.MaxBytesReader(nil, r.Body, 4<<10)) // for the message
		return fmt.Errorf("%s: %s: %s", url, r.Status, strings.TrimSpace(body.String()))
	}
	return nil
}

// ready waits until the startup probe and then the readiness probe succeed,
// each within its own patience, and then asks the liveness probe once.
func (p *process) ready(t *testing.T) {
	t.Helper()
	startup := p.spec.StartupProbe
	patience := time.Duration(startup.PeriodSeconds*startup.FailureThreshold) * time.Second
	p.await(t, patience, func() error { return p.probe(startup) })
	p.await(t, 20*time.Second, func() error { return p.probe(p.spec.ReadinessProbe) })
	if err := p.probe(p.spec.LivenessProbe); err != nil {
		t.Errorf("%s: %v", p.pod, err)
	}
	t.Logf("%s is ready %.1f s after its start", p.pod, time.Since(p.started).Seconds())
}

// await waits until a condition holds.
func (p *process) await(t *testing.T, patience time.Duration, condition func() error) {
	t.Helper()
	end := time.After(patience)
	for {
		err := condition()
		if err == nil {
			return
		}
		select {
		case <-p.ended:
			t.Fatalf("%s ended: %v", p.pod, p.cmd.ProcessState)
		case <-end:
			t.Fatalf("%s: still not after %v: %v", p.pod, patience, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// delete stops a container as the kubelet does: preStop, SIGTERM, and SIGKILL
// when the grace period is over. Until SIGTERM the daemon goes on.
func (p *process) delete(t *testing.T) {
	before, grace := stop(p.template)
	over := time.After(grace)
	select {
	case <-p.ended:
		t.Errorf("%s ended by itself: %v", p.pod, p.cmd.ProcessState)
		return
	case <-time.After(before):
	}
	if err := p.probe(p.spec.ReadinessProbe); err != nil {
		t.Errorf("%s does not serve until SIGTERM: %v", p.pod, err)
	}
	signaled := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("%s: %v", p.pod, err)
	}
	select {
	case <-p.ended:
		t.Logf("%s ended %.1f s after SIGTERM", p.pod, time.Since(signaled).Seconds())
		if !p.cmd.ProcessState.Success() {
			t.Errorf("%s: %v, want exit code 0\n%s", p.pod, p.cmd.ProcessState, p.tail())
		}
	case <-over:
		t.Errorf("%s is still there after the grace period of %v\n%s", p.pod, grace, p.tail())
	}
}
