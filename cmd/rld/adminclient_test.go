package main

import (
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/georld/rld/internal/unixsocket"
	"github.com/georld/rld/server/admin"
	"github.com/georld/rld/server/admin/api"
)

// TestClusterScripts runs testdata/cluster: the commands that ask an admin
// listener. A script has, beside testscript's own commands, exits (see
// TestScripts), and the addresses of admin listeners:
//
//	$DIVERGED  a cluster of three regions, with every fault
//	$WHOLE     one without a fault
//	$LONELY    a daemon with a region that has met no other
//	$ALONE     a daemon without a region
//	$BUDGETS   one with rules that daemons count together, see budgetHandler
//
// and of others, whose answers are named by their faults.
func TestClusterScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/cluster",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": cmdExits},
		Setup: func(env *testscript.Env) error {
			for name, h := range adminHandlers() {
				addr, stop := serveAdmin(h)
				env.Defer(stop)
				env.Setenv(name, addr)
			}
			for name, says := range map[string]string{
				"MUTE":    "",
				"BINARY":  "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00\x40\x00",
				"CUT":     "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"alone\": true",
				"HEADERS": "HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("x", 100<<10) + "\r\n\r\n",
			} {
				if err := listenAndSay(env, name, says); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// adminHandlers are the listeners that speak HTTP, by the name of the variable
// of their address.
func adminHandlers() map[string]http.Handler {
	says := func(status int, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
	}
	return map[string]http.Handler{
		"DIVERGED":  adminHandler(divergedMembers, troubledPeers),
		"WHOLE":     adminHandler(wholeMembers, wholePeers),
		"BUDGETS":   budgetHandler(),
		"LONELY":    adminHandler(onlySelf, func() []api.PeerCheck { return nil }),
		"ALONE":     adminHandler(nil, nil),
		"OLDER":     http.NotFoundHandler(),
		"PAGE":      says(200, "<!doctype html><title>router</title>"),
		"OTHER":     says(200, `{"status": "ok"}`),
		"MISTYPED":  says(200, `{"members": [{"name": 7}], "peers": [{"name": 7}], "rules": [{"name": 7}]}`),
		"TRAILING":  says(200, `{"alone": true, "members": [], "peers": []} and more`),
		"BROKEN":    says(500, "\x1b[31mout of order\nreally"),
		"WORDLESS":  says(503, ""),
		"ELSEWHERE": http.RedirectHandler("http://127.0.0.1:1/members", http.StatusFound),
		"ENDLESS": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			// Until the caller gives up.
			for {
				if _, err := io.WriteString(w, strings.Repeat(" ", 64<<10)); err != nil {
					return
				}
			}
		}),
	}
}

// serveAdmin serves an admin listener as a daemon does: over TCP, and commands
// at a unix socket that is named there.
func serveAdmin(h http.Handler) (addr string, stop func()) {
	lis, err := unixsocket.ListenPrivate()
	if err != nil {
		panic(err)
	}
	socket := admin.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del(api.AddrHeader) // the handler does not know its address
		h.ServeHTTP(w, r)
	}))
	go socket.Serve(lis)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(api.SocketHeader, lis.Addr().String())
		h.ServeHTTP(w, r)
	}))
	return s.Listener.Addr().String(), func() {
		s.Close()
		socket.Close()
	}
}

func adminHandler(m func() []api.Member, p func() []api.PeerCheck) http.Handler {
	return admin.New(admin.Options{
		Metrics: http.NotFoundHandler(),
		Ready:   func() error { return nil },
		Rules:   func() string { return "" },
		Members: m, Netcheck: p,
	})
}

// listenAndSay sets a variable to the address of a listener that writes a
// greeting into each connection, reads the request, and then closes the
// connection if there was a greeting.
func listenAndSay(env *testscript.Env, name, says string) error {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	env.Defer(func() { lis.Close() })
	env.Setenv(name, lis.Addr().String())
	go func() {
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if says == "" {
					_, _ = io.Copy(io.Discard, conn) // to the end of a patient caller
					return
				}
				// The question first: to close with it unread is a reset.
				_, _ = conn.Read(make([]byte, 4<<10))
				_, _ = io.WriteString(conn, says)
			}()
		}
	}()
	return nil
}

func earlier(d time.Duration) *time.Time { return new(time.Now().Add(-d)) }

func wholeMembers() []api.Member {
	hash := api.RulesHash(0x5eed)
	return []api.Member{
		{
			Name: "us-1", Region: "us-east", Incarnation: "00000000000000b1", Addr: "10.0.0.1:7947", Build: "v1.2.3",
			Ready: true, Self: true, Rules: hash, RulesAgree: new(true), Since: earlier(90 * time.Second),
		},
		{
			Name: "eu-1", Region: "eu-west", Incarnation: "00000000000000a1", Addr: "10.1.0.1:7947", Build: "v1.2.3",
			Ready: true, Rules: hash, RulesAgree: new(true), Since: earlier(26 * time.Hour),
		},
	}
}

func onlySelf() []api.Member { return wholeMembers()[:1] }

func divergedMembers() []api.Member {
	out := append(wholeMembers(),
		api.Member{
			Name: "us-0", Region: "us-east", Incarnation: "00000000000000b0", Addr: "10.0.0.0:7947",
			Build: "v1.2.2", Ready: true, Rules: api.RulesHash(7), RulesAgree: new(false), Since: earlier(0),
		},
		api.Member{Name: "ap-0", Region: "ap-south", Incarnation: "00000000000000c0", Addr: "10.2.0.0:7947"},
		api.Member{
			Name: "\x1b[31mred", Region: "ap-south", Incarnation: "00000000000000c1",
			Rules: api.RulesHash(7), RulesAgree: new(false),
		},
	)
	return out
}

func wholePeers() []api.PeerCheck {
	return []api.PeerCheck{{
		Name: "eu-1", Region: "eu-west", Incarnation: "00000000000000a1", Addr: "10.1.0.1:7947", State: api.Connected,
		RTTSeconds: new(0.0803456), StalenessSeconds: new(0.2123), UnsentSeconds: new(0.25),
		ClockOffsetSeconds: new(-0.0121), SentBytesPerSecond: new(1234.5), ReceivedBytesPerSecond: new(0.0),
		SentFrames: 10, ReceivedFrames: 12,
	}}
}

func troubledPeers() []api.PeerCheck {
	return append(wholePeers(),
		api.PeerCheck{
			Name: "us-0", Region: "us-east", Incarnation: "00000000000000b0", Addr: "10.0.0.0:7947", State: api.Silent,
			RTTSeconds: new(0.000142), StalenessSeconds: new(75.25), UnsentSeconds: new(76.0),
			ClockOffsetSeconds: new(2.0), SentBytesPerSecond: new(12_345_678.0), ReceivedBytesPerSecond: new(999.0),
			DroppedFrames: 4_000,
		},
		api.PeerCheck{
			Region: "us-east", Addr: "10.0.0.9:7947", State: api.Refused,
			LastError: "another cluster \x1b[31msecret", LastErrorAt: earlier(3 * time.Second),
		},
		api.PeerCheck{
			Name: "ap-0", Region: "ap-south", Incarnation: "00000000000000c0", Addr: "10.2.0.0:7947", State: api.Backoff,
			LastError: "connection " + strings.Repeat("refused ", 100),
		},
	)
}

func TestFewNames(t *testing.T) {
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprint("n", i))
	}
	for n, want := range map[int]string{
		0: "", 1: "n0", 10: "n0, n1, n2, n3, n4, n5, n6, n7, n8, n9",
		12: "n0, n1, n2, n3, n4, n5, n6, n7, n8, n9 and 2 more",
	} {
		if got := few(names[:n]); got != want {
			t.Errorf("%d names: got %q, want %q", n, got, want)
		}
	}
}

func TestSecondsShown(t *testing.T) {
	for _, tc := range []struct {
		seconds        float64
		age, clockText string
	}{
		{0, "0s", "0s"},
		{4e-8, "40ns", "+40ns"},
		{0.000142449, "142µs", "+142µs"},
		{0.0803456, "80.3ms", "+80.3ms"},
		{0.9999, "1s", "+1s"},
		{12.345, "12.3s", "+12.3s"},
		{-0.25, "-250ms", "-250ms"},
		{90.4, "1m30s", "+1m30s"},
		{-7_300, "-2h1m40s", "-2h1m40s"},
		{1e300, "876000h0m0s", "+876000h0m0s"},
		{math.Inf(-1), "-876000h0m0s", "-876000h0m0s"},
	} {
		if got := secondsShown(&tc.seconds); got != tc.age {
			t.Errorf("%v s: got %s, want %s", tc.seconds, got, tc.age)
		}
		if got := offsetShown(&tc.seconds); got != tc.clockText {
			t.Errorf("offset of %v s: got %s, want %s", tc.seconds, got, tc.clockText)
		}
	}
	if secondsShown(nil) != "-" || offsetShown(nil) != "-" {
		t.Error("what is not known is no number")
	}
}

func TestRateShown(t *testing.T) {
	for rate, want := range map[float64]string{
		0: "0 B/s", 1.4: "1 B/s", 999.4: "999 B/s", 999.5: "1.0 kB/s", 12_345: "12.3 kB/s", 99_960: "100 kB/s",
		999_600: "1.0 MB/s", 12_345_678: "12.3 MB/s", 1.2e10: "12.0 GB/s", 1.2e13: "12000 GB/s", -5_000: "-5.0 kB/s",
	} {
		if got := rateShown(&rate); got != want {
			t.Errorf("%v: got %s, want %s", rate, got, want)
		}
	}
	if rateShown(nil) != "-" {
		t.Error("what is not known is no rate")
	}
}

func TestAgo(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tc := range []struct {
		then *time.Time
		want string
	}{
		{nil, "-"},
		{new(at.Add(-1499 * time.Millisecond)), "1s"},
		{new(at.Add(time.Minute)), "0s"}, // its clock was set back
		{new(time.Time{}), "2562047h47m16.854775807s"},
	} {
		if got := ago(at, tc.then); got != tc.want {
			t.Errorf("%v: got %s, want %s", tc.then, got, tc.want)
		}
	}
}
