package load

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// streams answers three checks a stream and then fails. Even ids are denied. It
// does not answer checks of the domain "silent".
type streams struct {
	rldv1.UnimplementedRateLimiterServer
}

func (streams) CheckStream(s grpc.BidiStreamingServer[rldv1.CheckFrame, rldv1.AnswerFrame]) error {
	for n := 0; n < 3; {
		f, err := s.Recv()
		if err != nil {
			return err
		}
		for _, c := range f.Checks {
			if c.Domain == "silent" {
				continue
			}
			code := rldv1.Code_ALLOWED
			if c.Id%2 == 0 {
				code = rldv1.Code_DENIED
			}
			if err := s.Send(&rldv1.AnswerFrame{Answers: []*rldv1.CheckResponse{{Id: c.Id, Code: code}}}); err != nil {
				return err
			}
			n++
		}
	}
	if _, err := s.Recv(); err != nil {
		return err
	}
	return status.Error(codes.Aborted, "three are enough")
}

// TestStreamOpensAgain: a stream that ends fails the calls in flight, and the
// next call opens another one. A check without an answer ends with its context.
func TestStreamOpensAgain(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	rldv1.RegisterRateLimiterServer(g, streams{})
	var serving sync.WaitGroup
	serving.Go(func() { _ = g.Serve(lis) })
	defer serving.Wait()
	defer g.Stop()
	conn, err := grpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s := NewStream(t.Context(), conn)
	defer s.Close()
	call := s.Call(func() *rldv1.CheckRequest { return &rldv1.CheckRequest{Domain: "d"} })
	for id := 1; id <= 8; id++ {
		allowed, err := call(t.Context())
		switch {
		case id%4 == 0:
			if status.Code(err) != codes.Aborted {
				t.Errorf("call %d: error %v, want that of the stream", id, err)
			}
		case err != nil || allowed != (id%2 == 1):
			t.Errorf("call %d: %v, error %v", id, allowed, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	silent := s.Call(func() *rldv1.CheckRequest { return &rldv1.CheckRequest{Domain: "silent"} })
	if _, err := silent(ctx); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a check without an answer: error %v", err)
	}
}

// TestStreamOfSilentPeer: while a stream is opened to a peer that accepts
// connections and is silent, each call ends with its context, and Close does
// not wait. When nothing listens any more, calls fail.
func TestStreamOfSilentPeer(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	for _, want := range []codes.Code{codes.DeadlineExceeded, codes.Unavailable} {
		conn, err := grpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		s := NewStream(context.Background(), conn)
		timeout := time.Minute
		if want == codes.DeadlineExceeded {
			timeout = 20 * time.Millisecond
		}
		var calls sync.WaitGroup
		for range 3 {
			calls.Go(func() {
				call := s.Call(func() *rldv1.CheckRequest { return &rldv1.CheckRequest{Domain: "d"} })
				ctx, cancel := context.WithTimeout(context.Background(), timeout)
				defer cancel()
				if _, err := call(ctx); status.Code(err) != want {
					t.Errorf("error %v, want %s", err, want)
				}
			})
		}
		calls.Wait()
		s.Close()
		conn.Close()
		lis.Close()
	}
}

// TestHTTP: statuses are verdicts or errors by code, a connection that the
// server closes is opened again, and a silent server is a timeout.
func TestHTTP(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/close":
			w.Header().Set("Connection", "close")
		case "/denied":
			w.WriteHeader(http.StatusTooManyRequests)
		case "/failed":
			w.WriteHeader(http.StatusBadGateway)
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		case "/silent":
			<-release
		}
		if r.URL.Path != "/none" {
			_, _ = io.WriteString(w, strings.Repeat("x", 10_000))
		}
	}))
	defer server.Close()
	defer close(release)
	path, dials := "", 0
	h := &HTTP{Denied: []int{429}, Dial: func(ctx context.Context) (net.Conn, error) {
		dials++
		return new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
	}}
	call, closing := h.Call(func() []byte { return []byte("GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n") })
	defer closing()
	for _, c := range []struct {
		path    string
		allowed bool
		code    string
		dials   int
	}{
		{"/", true, "", 1},
		{"/denied", false, "", 1},
		{"/none", true, "", 1},
		{"/failed", false, "HTTP 502", 1},
		{"/close", true, "", 1},
		{"/", true, "", 2},
	} {
		path = c.path
		allowed, err := call(t.Context())
		code := ""
		if err != nil {
			code = codeOf(err)
		}
		if allowed != c.allowed || code != c.code || dials != c.dials {
			t.Errorf("%s: %v, error %v, %d connections; want %+v", c.path, allowed, err, dials, c)
		}
	}
	// As a server does that restarted between two calls.
	server.CloseClientConnections()
	path = "/"
	if allowed, err := call(t.Context()); !allowed || err != nil {
		t.Errorf("after the connections were closed: %v, error %v", allowed, err)
	}
	path = "/silent"
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent server: error %v", err)
	}
}

// TestHTTPHead: an answer to HEAD has no body, though it has the length of one,
// and its connection stays open.
func TestHTTPHead(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "10")
	}))
	defer server.Close()
	dials := 0
	h := &HTTP{Method: "HEAD", Dial: func(ctx context.Context) (net.Conn, error) {
		dials++
		return new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
	}}
	call, closing := h.Call(func() []byte { return []byte("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n") })
	defer closing()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for range 3 {
		if allowed, err := call(ctx); !allowed || err != nil {
			t.Fatalf("%v, error %v", allowed, err)
		}
	}
	if dials != 1 {
		t.Errorf("%d connections, want 1", dials)
	}
}
