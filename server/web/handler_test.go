package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/georld/rld/node"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
)

// echo is an engine whose answer is made of the question.
type echo struct{}

func (echo) Rules() *rules.Set { return nil }

func (echo) Check(_ context.Context, c *node.Call) error {
	for _, d := range c.Descriptors {
		l := &rules.Limit{Requests: 10, Unit: rules.Minute, Multiplier: 1}
		path := ""
		for _, e := range d.Entries {
			path += e.Key + "=" + e.Value + ";"
		}
		r := &rules.Rule{Path: path, Limit: l}
		c.Statuses = append(c.Statuses, node.Status{Rule: r, Limit: l, Remaining: d.Hits})
	}
	c.Decision = node.Decision{Allowed: true, Refused: -1}
	return nil
}

// Exchanges are reused; no answer may hold anything of another question.
func TestConcurrentCallersGetTheirOwnAnswers(t *testing.T) {
	h := New(Options{Engine: echo{}})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := 1; i <= 200; i++ {
				text := strings.Repeat("x", (g*31+i*7)%50)
				target := fmt.Sprintf("/v1/check?domain=d&d=user:%d,n:%s&d=i:%d&hits=%d", g, text, i, i)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
				want := fmt.Sprintf(`"user=%d;n=%s;";r=%d;t=0, "i=%d;";r=%d;t=0`, g, text, i, i, i)
				if got := w.Header().Get("RateLimit"); got != want {
					t.Errorf("%s\n got %s\nwant %s", target, got, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

// The body of a 200 is a CheckResponse to any reader of protobuf's JSON.
func TestBodyIsCheckResponse(t *testing.T) {
	x := testExchange()
	x.id = 7
	bucket := &rules.Limit{
		Algorithm: rules.LeakyBucket, Requests: 5, Unit: rules.Week, Multiplier: 2, Burst: 9,
		Name: "a \"name\"", Quota: true,
	}
	shadow := &rules.Limit{Requests: 1, Unit: rules.Second, Multiplier: 1, Shadow: true}
	x.call.Statuses = []node.Status{
		{
			Rule: &rules.Rule{Path: "a > b=*"}, Limit: bucket, Remaining: 3,
			Reset: 1500 * time.Millisecond, Delay: time.Minute,
		},
		{Rule: &rules.Rule{Path: "c"}, Limit: shadow, Over: true, Retry: time.Second, Degraded: node.CellsFull},
		{Rule: &rules.Rule{Path: "d"}, Unlimited: true},
		{},
	}
	x.call.Decision = node.Decision{Allowed: true, WouldDeny: true, Refused: -1}
	v := judge(x, &server.Settings{}, startOfScripts())
	body := encode(v.body(checkForm))
	want := &rldv1.CheckResponse{Id: 7, Code: rldv1.Code_ALLOWED, WouldDeny: true, Statuses: []*rldv1.Status{
		{
			Code: rldv1.Code_ALLOWED, Rule: "a > b=*", Remaining: 3, Mode: rldv1.Mode_QUOTA,
			Limit: &rldv1.Limit{
				RequestsPerUnit: 5, Unit: rldv1.Unit_WEEK, UnitMultiplier: 2, Algorithm: "leaky_bucket",
				Burst: 9, Name: "a \"name\"",
			},
			ResetAfter: durationpb.New(1500 * time.Millisecond), Delay: durationpb.New(time.Minute),
		},
		{
			Code: rldv1.Code_ALLOWED, Rule: "c", Mode: rldv1.Mode_SHADOW,
			Limit: &rldv1.Limit{
				RequestsPerUnit: 1, Unit: rldv1.Unit_SECOND, UnitMultiplier: 1, Algorithm: "fixed_window",
			},
			ResetAfter: durationpb.New(0),
			Degraded:   true, DegradedReason: "cells_full", Reason: "limit",
		},
		{Code: rldv1.Code_ALLOWED, Rule: "d", Unlimited: true},
		{Code: rldv1.Code_ALLOWED},
	}}
	var got rldv1.CheckResponse
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(body, &got); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	if !proto.Equal(&got, want) {
		t.Errorf("got  %v\nwant %v", &got, want)
	}
	strict := strings.Replace(string(body), `"allowed":true,`, "", 1)
	if err := protojson.Unmarshal([]byte(strict), &got); err != nil {
		t.Errorf("more than allowed is beside the message: %v", err)
	}
}

// serve runs the handler behind a real listener.
func serve(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(New(Options{Engine: echo{}}))
	done := make(chan error)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// raw sends bytes and reads one answer.
func raw(t *testing.T, addr, method, request string) (*http.Response, string) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestOnTheWire(t *testing.T) {
	addr := serve(t)
	const head = " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
	tests := []struct {
		name, method, request string
		status                int
		body                  bool
	}{
		{"get", "GET", "GET /v1/check?domain=d&k=v" + head + "\r\n", 200, true},
		{"head", "HEAD", "HEAD /v1/check?domain=d&k=v" + head + "\r\n", 200, false},
		{
			"chunked post without a body", "POST",
			"POST /v1/check?domain=d&k=v" + head + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, true,
		},
		{
			"chunked post, too large", "POST", "POST /v1/check" + head + "Transfer-Encoding: chunked\r\n\r\n" +
				fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", MaxBodyBytes+1, strings.Repeat("x", MaxBodyBytes+1)), 413, true,
		},
		{
			"the longest query", "GET",
			"GET /v1/check?domain=d&k=" + strings.Repeat("v", MaxQueryBytes-len("domain=d&k=")) + head + "\r\n",
			200, true,
		},
		{
			"longer than the server reads", "GET",
			"GET /v1/check?domain=d&k=" + strings.Repeat("v", MaxHeaderBytes+4096) + head + "\r\n", 431, true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp, body := raw(t, addr, tt.method, tt.request)
			if resp.StatusCode != tt.status || (body != "") != tt.body {
				t.Errorf("status %d, want %d, body %.200q", resp.StatusCode, tt.status, body)
			}
			if !tt.body && resp.ContentLength <= 0 {
				t.Errorf("HEAD with Content-Length %d, want that of GET", resp.ContentLength)
			}
		})
	}
}

// A body that ends early is the caller's fault, and the answer reports it.
func TestBodyCutShort(t *testing.T) {
	h := New(Options{Engine: echo{}})
	r := httptest.NewRequest(http.MethodPost, "/v1/check", io.MultiReader(
		strings.NewReader("{"), failing{}))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "the body ended early: gone") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Long bodies are few at a time: one more waits, and is refused when none of
// the others ends. Short ones are answered beside them.
func TestLongBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Options{Engine: echo{}})
		ask := func(body io.Reader) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodPost, "/v1/check", body)
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		const question = `{"domain": "d", "descriptors": [{"entries": [{"key": "k"}]}]}`
		long := func() io.Reader { return strings.NewReader(question + strings.Repeat(" ", shortBody)) }

		var held []*io.PipeWriter
		var ended sync.WaitGroup
		for range longBodies {
			r, w := io.Pipe()
			held = append(held, w)
			ended.Go(func() { ask(r) })
			_, _ = io.WriteString(w, strings.Repeat(" ", shortBody+1)) // to a pipe
		}
		synctest.Wait()
		if w := ask(strings.NewReader(question)); w.Code != http.StatusOK {
			t.Errorf("a short body: %d %s", w.Code, w.Body)
		}
		start := time.Now()
		if w := ask(long()); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("one more long body: %d %s", w.Code, w.Body)
		}
		if d := time.Since(start); d != longBodyTime {
			t.Errorf("it waited %v, want %v", d, longBodyTime)
		}
		waits := make(chan int)
		go func() { waits <- ask(long()).Code }()
		synctest.Wait()
		_ = held[0].CloseWithError(errors.New("gone")) // never fails
		if code := <-waits; code != http.StatusOK {
			t.Errorf("a long body after another ended: %d", code)
		}
		for _, w := range held[1:] {
			_, _ = io.WriteString(w, question) // to a pipe
			_ = w.Close()
		}
		ended.Wait()
		r := httptest.NewRequest(http.MethodPost, "/v1/check", long())
		r.Header.Set("Content-Type", "application/json")
		w := &deadlined{ResponseRecorder: httptest.NewRecorder()}
		if h.ServeHTTP(w, r); w.Code != http.StatusOK || !w.until.Equal(time.Now().Add(longBodyTime)) {
			t.Errorf("a long body after all others: %d %s, read until %v", w.Code, w.Body, w.until)
		}
	})
}

// deadlined notes the deadline of reads.
type deadlined struct {
	*httptest.ResponseRecorder
	until time.Time
}

// SetReadDeadline is for an http.ResponseController.
func (d *deadlined) SetReadDeadline(t time.Time) error {
	d.until = t
	return nil
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("gone") }
