//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// hostileCaller is a caller of a daemon with tokens, and an honest one beside
// it.
type hostileCaller struct {
	t            *testing.T
	c            *cluster
	victim, mate *daemon
	honest       string // token for the domain of the limits
	other        string // token for another domain
}

// newToken makes a token, and returns it with its entry for the tokens file.
func newToken(t *testing.T, args ...string) (token, entry string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary, append([]string{"token", "new"}, args...)...).Output()
	found := regexp.MustCompile(`(?s)^token: (\S+)\n.*\n(  - \{.*\}\n)$`).FindStringSubmatch(string(out))
	if err != nil || found == nil {
		t.Fatalf("rld token new: %v\n%s", err, out)
	}
	return found[1], found[2]
}

// post sends a question over HTTP and returns the status and the answer.
func (x *hostileCaller) post(d *daemon, token, body string) (int, string) {
	x.t.Helper()
	r, err := http.NewRequest(http.MethodPost, "http://"+d.at.http+"/v1/check", strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	a, err := d.web.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer a.Body.Close()
	text, _ := io.ReadAll(a.Body)
	return a.StatusCode, string(text)
}

func questionOf(rule, value string, hits int) string {
	return fmt.Sprintf(`{"domain": %q, "descriptors": [{"entries": [{"key": %q, "value": %q}], "hits": %d}]}`, domain, rule, value, hits)
}

// with returns a context with a token.
func (x *hostileCaller) with(token string) context.Context {
	return metadata.AppendToOutgoingContext(x.t.Context(), "authorization", "Bearer "+token)
}

func (x *hostileCaller) check(token, rule, value string, hits uint64) (*rldv1.Status, error) {
	ctx, cancel := context.WithTimeout(x.with(token), 2*time.Second)
	defer cancel()
	a, err := x.victim.client.stub.Check(ctx, &rldv1.CheckRequest{
		Domain:      domain,
		Descriptors: []*rldv1.Descriptor{{Entries: []*rldv1.Entry{{Key: rule, Value: value}}, Hits: &hits}},
	})
	if err != nil {
		return nil, err
	}
	return a.Statuses[0], nil
}

// raw sends bytes on a connection of its own, and returns what comes back.
func (x *hostileCaller) raw(addr, request string) string {
	x.t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		x.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(500 * time.Millisecond))
	_, _ = io.WriteString(conn, request) // the daemon may have closed it
	answer, _ := io.ReadAll(bufio.NewReader(conn))
	return string(answer)
}

// misdeeds are attacks of callers.
var misdeeds = []struct {
	name string
	do   func(x *hostileCaller)
	// metric counts the refusals, in one series; "" for no refusal of its own.
	metric, series string
	log            []string
}{
	{
		name: "wrong tokens", metric: "rld_refused_calls_total", series: `reason="unknown_token"`, log: []string{"reason=unknown_token"},
		do: func(x *hostileCaller) {
			for i := range 200 {
				token := fmt.Sprintf("rld_%064x", i)
				if code, text := x.post(x.victim, token, questionOf(day, "theft", 1)); code != http.StatusUnauthorized {
					x.t.Fatalf("%d: %s", code, text)
				}
				if _, err := x.check(token, day, "theft", 1); status.Code(err) != codes.Unauthenticated {
					x.t.Fatal(err)
				}
			}
		},
	},
	{
		name: "a token of another domain", metric: "rld_refused_calls_total", series: `reason="domain"`, log: []string{"reason=domain", "token=other"},
		do: func(x *hostileCaller) {
			for range 200 {
				if code, text := x.post(x.victim, x.other, questionOf(day, "theft", 1)); code != http.StatusForbidden {
					x.t.Fatalf("%d: %s", code, text)
				}
				if _, err := x.check(x.other, day, "theft", 1); status.Code(err) != codes.PermissionDenied {
					x.t.Fatal(err)
				}
			}
		},
	},
	{name: "random values", metric: "rld_keys_full_total", series: `rule="kept"`, log: nil, do: (*hostileCaller).randomValues},
	{name: "giant values", do: func(x *hostileCaller) {
		giant := strings.Repeat("x", 1<<20)
		for body, want := range map[string]int{
			questionOf(day, giant[:5_000], 1): http.StatusBadRequest,
			questionOf(day, giant, 1):         http.StatusRequestEntityTooLarge,
			strings.Repeat("[", 500_000):      http.StatusBadRequest,
			`{"domain": "e2e", "descriptors": [` + strings.Repeat(`{},`, 300_000) + `{}]}`: http.StatusBadRequest,
		} {
			for range 5 {
				if code, text := x.post(x.victim, x.honest, body); code != want {
					x.t.Errorf("%d bytes: %d, want %d: %.100s", len(body), code, want, text)
				}
			}
		}
		for size, want := range map[int]codes.Code{5_000: codes.InvalidArgument, 5 << 20: codes.ResourceExhausted} {
			if _, err := x.check(x.honest, day, strings.Repeat("x", size), 1); status.Code(err) != want {
				x.t.Errorf("a value of %d bytes over gRPC: %v, want %v", size, err, want)
			}
		}
		head := "GET /v1/check?domain=e2e&d=day:theft HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + x.honest + "\r\nX-Big: " + giant + "\r\n\r\n"
		if a := x.raw(x.victim.at.http, head); strings.Contains(a, " 200 ") {
			x.t.Errorf("headers of a megabyte: %.200s", a)
		}
	}},
	{name: "half-sent messages", do: func(x *hostileCaller) {
		web, rpc := newAttack(x.t, x.victim.at.http), newAttack(x.t, x.victim.at.grpc)
		half := "POST /v1/check HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + x.honest + "\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n" +
			strings.Repeat(" ", 500_000)
		web.hold(200, []byte(half))
		// A message of 1,000,000 bytes is announced, and a little of it comes.
		message := http2Message(1, 1_000_000, make([]byte, 8_000))
		rpc.hold(200, bytes.Join([][]byte{http2Begin(), http2Calls(0, 1, "Check", false), message}, nil))
		x.t.Cleanup(func() { web.stop(); rpc.stop() })
	}},
	{name: "messages without an end", metric: "rld_closed_connections_total", series: `reason="bytes"`, do: func(x *hostileCaller) {
		rpc := newAttack(x.t, x.victim.at.grpc)
		first := append(http2Begin(), http2Calls(0, 4, "Check", false)...)
		for i := range uint32(4) {
			size := 1_000_000
			if i%2 == 1 {
				size = 900_000 // all of it, and not the end of the call
			}
			first = append(first, http2Message(2*i+1, size, make([]byte, 900_000))...)
		}
		rpc.hold(100, first)
		x.t.Cleanup(rpc.stop)
	}},
	{name: "messages byte by byte", metric: "rld_closed_connections_total", series: `reason="pieces"`, do: func(x *hostileCaller) {
		rpc := newAttack(x.t, x.victim.at.grpc)
		first := append(http2Begin(), http2Calls(0, 1, "CheckStream", false)...)
		for range 60_000 {
			first = append(first, http2Frame(0, 0, 1, []byte{0})...)
		}
		rpc.hold(100, first)
		x.t.Cleanup(rpc.stop)
	}},
	{name: "answers that nobody reads", metric: "rld_closed_connections_total", series: `reason="bytes"`, do: func(x *hostileCaller) {
		rpc := newAttack(x.t, x.victim.at.grpc)
		keys := newKeys(0, 270)
		for _, c := range keys.Checks { // with more to answer than to ask
			for len(c.Descriptors) < 10 {
				c.Descriptors = append(c.Descriptors, c.Descriptors[0])
			}
		}
		frame, err := proto.Marshal(keys)
		if err != nil || len(frame) > 60_000 {
			x.t.Fatalf("a frame of %d bytes, %v", len(frame), err)
		}
		const streams = 50
		first := append(http2Begin(), http2Calls(0, streams, "CheckStream", false, [2]string{"authorization", "Bearer " + x.honest})...)
		for i := range uint32(streams) {
			first = append(first, http2Message(2*i+1, len(frame), frame)...)
		}
		rpc.hold(20, first)
		x.t.Cleanup(rpc.stop)
	}},
	{name: "tricks with headers", metric: "rld_refused_calls_total", series: `reason="no_token"`, do: func(x *hostileCaller) {
		body := questionOf(day, "theft", 1)
		right, wrong := "Authorization: Bearer "+x.honest, "Authorization: Bearer rld_wrong"
		const get = "GET /v1/check?domain=e2e&d=day:theft"
		for name, request := range map[string]string{
			"two tokens, the wrong one first": get + " HTTP/1.1\r\nHost: x\r\n" + wrong + "\r\n" + right + "\r\n\r\n",
			"a folded line":                   get + " HTTP/1.1\r\nHost: x\r\nX-A: b\r\n " + right + "\r\n\r\n",
			"a space before the colon":        get + " HTTP/1.1\r\nHost: x\r\nAuthorization : Bearer " + x.honest + "\r\n\r\n",
			"another scheme":                  get + " HTTP/1.1\r\nHost: x\r\nAuthorization: Basic " + x.honest + "\r\n\r\n",
			"a token in the query":            get + "&authorization=Bearer%20" + x.honest + " HTTP/1.1\r\nHost: x\r\n\r\n",
			"a proxy's headers":               get + " HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 127.0.0.1\r\nForwarded: for=127.0.0.1\r\nX-Forwarded-Client-Cert: By=x\r\n\r\n",
			"health with a question":          "GET /healthcheck/../v1/check?domain=e2e&d=day:theft HTTP/1.1\r\nHost: x\r\n\r\n",
			"a path with two slashes":         "GET //v1/check?domain=e2e&d=day:theft HTTP/1.1\r\nHost: x\r\n\r\n",
			"an absolute address":             "GET http://x/healthcheck/%2e%2e/v1/check?domain=e2e&d=day:theft HTTP/1.1\r\nHost: x\r\n\r\n",
			"another method in a header":      "GET /healthcheck HTTP/1.1\r\nHost: x\r\nX-HTTP-Method-Override: POST\r\nX-Original-URL: /v1/check?domain=e2e&d=day:theft\r\n\r\n",
			"HTTP/0.9":                        get + "\r\n\r\n",
			"two lengths": "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + right + "\r\nContent-Length: 0\r\nContent-Length: " +
				fmt.Sprint(len(body)) + "\r\n\r\n" + body,
			"a length and chunks": "POST /healthcheck HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" +
				get + " HTTP/1.1\r\nHost: x\r\n\r\n",
			"a NUL in a name": get + " HTTP/1.1\r\nHost: x\r\nAuthori\x00zation: Bearer " + x.honest + "\r\n\r\n",
		} {
			if a := x.raw(x.victim.at.http, request); strings.Contains(a, "ALLOWED") {
				x.t.Errorf("%s: %s", name, a)
			}
		}
		if s, err := x.check(x.honest, day, "theft", 0); err != nil || s.Remaining != dayLimit {
			x.t.Errorf("%v, %v: hits without a token count", s, err)
		}
	}},
}

// randomValues fills max_keys with the values of one rule.
func (x *hostileCaller) randomValues() {
	ctx, cancel := context.WithTimeout(x.with(x.honest), patience)
	defer cancel()
	stream, err := x.victim.client.stub.CheckStream(ctx)
	if err != nil {
		x.t.Fatal(err)
	}
	const all, frame = 40_000, 50
	go func() {
		for i := 0; i < all && ctx.Err() == nil; i += frame {
			_ = stream.Send(newKeys(i, frame)) // receiving has the error
		}
		_ = stream.CloseSend()
	}()
	answers := 0
	for {
		f, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			x.t.Fatalf("after %d answers: %v", answers, err)
		}
		answers += len(f.Answers)
	}
	if answers != all {
		x.t.Errorf("%d answers to %d keys", answers, all)
	}
	s, err := x.check(x.honest, kept, "one more", 1)
	if err != nil || s.DegradedReason != "keys_full" {
		x.t.Errorf("a new key of the flooded rule: %v, %v", s, err)
	}
}

// TestHostileCaller has callers misbehave at a daemon with tokens: an honest
// caller gets its answers and exact counts, health and peers go on, and
// refusals are counted and named once.
func TestHostileCaller(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	x := &hostileCaller{t: t}
	entries := "tokens:\n"
	for _, make := range []struct {
		token *string
		args  []string
	}{
		{&x.honest, []string{"--name", "honest", "--domain", domain}},
		{&x.other, []string{"--name", "other", "--domain", "cart"}},
	} {
		token, entry := newToken(t, make.args...)
		*make.token, entries = token, entries+entry
	}
	if err := os.WriteFile(tokens, []byte(entries), 0o600); err != nil {
		t.Fatal(err)
	}
	x.c = startCluster(t, loopback{}, plan{
		daemons: []int{2}, later: []int{0}, founding: 1, limits: limitsFile,
		settings: fmt.Sprintf("auth: {tokens_file: %s}\n", tokens),
	}, "us")
	x.victim, x.mate = x.c.daemon("us-0"), x.c.daemon("us-1")
	before := x.victim.resident(t)
	for i, m := range misdeeds {
		t.Run(m.name, func(t *testing.T) {
			x.t, x.c.t = t, t
			was := 0.0
			if m.metric != "" {
				was, _ = x.victim.metric(m.metric, m.series)
			}
			m.do(x)
			x.c.within(patience, "the refusals are counted", func() string {
				if n, err := x.victim.metric(m.metric, m.series); m.metric != "" && (err != nil || n <= was) {
					return fmt.Sprintf("%s{%s} is %v, before %v, %v", m.metric, m.series, n, was, err)
				}
				return ""
			})
			x.served(fmt.Sprint("honest-", i))
			t.Logf("the daemon has grown by %d MB", (x.victim.resident(t)-before)>>20)
			if lines := x.victim.lines(m.log...); m.log != nil && len(lines) != 1 {
				t.Errorf("%d lines with %q, want one:\n%s", len(lines), m.log, strings.Join(lines, ""))
			}
		})
	}
	x.c.t = t
	grown := x.victim.resident(t) - before
	t.Logf("the daemon grew by %d MB", grown>>20)
	if grown > attackRoom {
		t.Errorf("want at most %d MB", attackRoom>>20)
	}
	for _, token := range []string{x.honest, x.other, "rld_0000"} {
		if lines := x.victim.lines(token); len(lines) > 0 {
			t.Errorf("a token is in the log: %s", lines[0])
		}
	}
}

// served fails the test unless an honest caller uses up a new key of a rule
// exactly, over both protocols, and the mate counts its hits.
func (x *hostileCaller) served(value string) {
	x.t.Helper()
	if wrong := x.victim.ready(); wrong != "" {
		x.t.Error(wrong)
	}
	if code, text := x.post(x.victim, x.honest, questionOf(day, value, dayLimit/2)); code != http.StatusOK || strings.Contains(text, "degraded") {
		x.t.Errorf("HTTP: %d: %s", code, text)
	}
	x.c.within(patience, "the mate knows the hits", func() string {
		want := fmt.Sprintf(`"remaining":%d`, dayLimit/2)
		if _, text := x.post(x.mate, x.honest, questionOf(day, value, 0)); !strings.Contains(strings.ReplaceAll(text, " ", ""), want) {
			return text
		}
		return ""
	})
	admitted := dayLimit / 2
	for range dayLimit {
		s, err := x.check(x.honest, day, value, 1)
		if err != nil || s.DegradedReason != "" {
			x.t.Errorf("gRPC: %v, %v", s, err)
			return
		}
		if s.Code != rldv1.Code_ALLOWED {
			break
		}
		admitted++
	}
	if admitted != dayLimit {
		x.t.Errorf("%d hits are admitted, want %d", admitted, dayLimit)
	}
}
