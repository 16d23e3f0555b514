//go:build e2e

package gateways

import (
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// workers is how many clients send at once.
const workers = 16

// answer is what a client received.
type answer struct {
	status  int  // 0 for no answer
	service bool // it is that of the service
	header  http.Header
	took    time.Duration
}

// get sends one request with a key.
func (s *site) get(path, key string) answer {
	r, err := http.NewRequest(http.MethodGet, "http://"+s.addr+path, http.NoBody)
	if err != nil {
		panic(err)
	}
	r.Header.Set("X-Api-Key", key)
	begin := time.Now()
	a, err := s.web.Do(r)
	if err != nil {
		return answer{took: time.Since(begin)}
	}
	defer a.Body.Close()
	_, _ = io.Copy(io.Discard, a.Body) // status and header are what counts
	return answer{a.StatusCode, a.Header.Get(serviceMark) != "", a.Header, time.Since(begin)}
}

// load sends n requests with a key and calls midway, if it is not nil, when
// half of them are answered. It returns all answers.
func (s *site) load(n int, path, key string, midway func()) []answer {
	var (
		mu   sync.Mutex
		out  []answer
		sent int
		wg   sync.WaitGroup
		half = make(chan struct{})
	)
	next := func() bool {
		mu.Lock()
		defer mu.Unlock()
		sent++
		return sent <= n
	}
	for range workers {
		wg.Go(func() {
			for next() {
				a := s.get(path, key)
				mu.Lock()
				if out = append(out, a); len(out) == n/2 {
					close(half)
				}
				mu.Unlock()
			}
		})
	}
	<-half
	if midway != nil {
		midway()
	}
	wg.Wait()
	return out
}

// statuses counts answers by their status.
func statuses(answers []answer) map[int]int {
	out := make(map[int]int)
	for _, a := range answers {
		out[a.status]++
	}
	return out
}

// p99 returns the time in which 99 of 100 answers came.
func p99(answers []answer) time.Duration {
	took := make([]time.Duration, len(answers))
	for i := range answers {
		took[i] = answers[i].took
	}
	slices.Sort(took)
	return took[len(took)*99/100].Round(100 * time.Microsecond)
}

// The limits of the examples.
const (
	keyPath     = "/v1/orders"
	keyLimit    = 1000
	smallPath   = "/v1/reports/march" // per key
	loginPath   = "/login"            // per address
	smallLimit  = 10
	requests    = 10_000
	smallNumber = 13 // requests against a small limit
)

// exactLimit sends far more requests than the limit admits.
func exactLimit(t *testing.T, p proxy) {
	awayFromMidnight(t)
	s := newSite(t, p)
	begin := time.Now()
	answers := s.load(requests, keyPath, "exact", nil)
	took := time.Since(begin)
	reached, got := s.taken(), statuses(answers)
	t.Logf("%d requests in %.1f s: %d reached the service; statuses %v", requests, took.Seconds(), reached, got)
	if reached != keyLimit || got[http.StatusOK] != keyLimit || got[http.StatusTooManyRequests] != requests-keyLimit {
		t.Errorf("want %d, and 429 for all others", keyLimit)
	}
	for _, a := range answers {
		if a.header.Get(s.limitHeader()) == "" || (a.header.Get("Retry-After") == "") != (a.status == http.StatusOK) {
			t.Fatalf("the headers of an answer %d are %v", a.status, a.header)
		}
	}
}
