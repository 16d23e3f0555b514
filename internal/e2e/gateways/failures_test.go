//go:build e2e

package gateways

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// failing is how many requests meet a failing rld.
	failing = 100
	// late is the delay of a slow rld, far above the timeouts of the proxies:
	// 200 ms.
	late = 5 * time.Second
	// inTime is a delay below them.
	inTime = 20 * time.Millisecond
	// bound is for the p99 of the proxies: their timeouts, and time that a busy
	// machine takes.
	bound = 2 * time.Second
)

// rldFails kills, freezes and delays rld: clients get what the page of the
// proxy states, within the timeouts of the proxy.
func rldFails(t *testing.T, p proxy) {
	awayFromMidnight(t)
	s := newSite(t, p)
	t.Run("killed", func(t *testing.T) {
		answers := s.load(2*failing, keyPath, "killed", func() { s.rld.kill(t) })
		s.among(t, answers, http.StatusOK, p.killed, p.silent)
		s.taken()
		s.expect(t, "killed", s.load(failing, keyPath, "down", nil), p.killed)
	})
	if t.Failed() {
		return
	}
	s.rld = s.startRLD(t, freeAddresses(t, 1)[0])
	s.recovers(t)
	t.Run("frozen", func(t *testing.T) {
		s.rld.freeze(t)
		s.expect(t, "frozen", s.load(failing, keyPath, "frozen", nil), p.silent)
		s.rld.signal(t, syscall.SIGCONT)
		s.recovers(t)
	})
	t.Run("slow", func(t *testing.T) {
		r := newRelay(t, s.asked(), late)
		s := *s
		s.addr = s.startProxy(t, r.addr, freeAddresses(t, 1)[0])
		s.expect(t, "slow", s.load(failing, keyPath, "slow", nil), p.silent)
		r.delay.Store(int64(inTime))
		// Late answers are on their way until the proxy has closed their
		// connections.
		s.recovers(t)
		got := statuses(s.load(2*smallNumber, smallPath, "in time", nil))
		if reached := s.taken(); reached != smallLimit || got[http.StatusOK] != smallLimit {
			t.Errorf("with a delay of %v, %d requests reach the service, want %d; statuses %v", inTime, reached, smallLimit, got)
		}
	})
}

// expect fails unless all answers have a status, the service is reached only if
// it is 200, and the answers come in time.
func (s *site) expect(t *testing.T, what string, answers []answer, status int) {
	t.Helper()
	reached, want, got := s.taken(), 0, statuses(answers)
	if status == http.StatusOK {
		want = len(answers)
	}
	t.Logf("%s: %d requests: statuses %v, %d reached the service, p99 %v", what, len(answers), got, reached, p99(answers))
	if got[status] != len(answers) || reached != want {
		t.Errorf("%s: want the status %d alone, and %d requests at the service", what, status, want)
	}
	s.among(t, answers, status)
}

// among fails unless all answers have one of the statuses and come in time.
func (s *site) among(t *testing.T, answers []answer, allowed ...int) {
	t.Helper()
	for status, n := range statuses(answers) {
		if !strings.Contains(fmt.Sprint(allowed), fmt.Sprint(status)) {
			t.Errorf("%d answers have the status %d, want one of %v", n, status, allowed)
		}
	}
	if got := p99(answers); got > bound {
		t.Errorf("the p99 is %v, want at most %v", got, bound)
	}
}

// recovers waits until rld decides again: a key of its own is limited.
func (s *site) recovers(t *testing.T) {
	t.Helper()
	until(t, "rld decides again", func() error {
		if a := s.get(keyPath, "recovery"); a.status != http.StatusOK || a.header.Get(s.limitHeader()) == "" {
			return fmt.Errorf("status %d, headers %v", a.status, a.header)
		}
		return nil
	})
	s.taken()
}
