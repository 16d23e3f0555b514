//go:build e2e

package gateways

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// atMost is for requests that proxies differ in: any number up to the limit may
// pass.
const atMost = -1

// injection is what a hostile client sends to get more than the limit. {i} in
// its texts is the number of the request.
type injection struct {
	name    string
	path    string // smallPath by default
	headers string // lines with \n; {key} is a key of its own
	request string // in place of path and headers
	// admitted is how many requests must pass.
	admitted int
}

// injected are the injections. Those without a key come first: they share the
// limit of requests without one.
func injected() []injection {
	key := "X-Api-Key: {key}\n"
	out := []injection{
		{name: "nothing", headers: key, admitted: smallLimit},
		{name: "the key named by Connection", headers: "Connection: close, X-Api-Key\n" + key, admitted: smallLimit},
		{name: "the key with underscores", headers: "X_Api_Key: {key}{i}\n", admitted: atMost},
		{name: "no key", admitted: atMost},
		{name: "an empty key", headers: "X-Api-Key:\n", admitted: atMost},
		{name: "a space before the colon", headers: "X-Api-Key : {key}{i}\n", admitted: atMost},
		{name: "a folded line", headers: "X-Api-Key: {key}\n x\n", admitted: atMost},
		{name: "hits in the key", headers: "X-Api-Key: {key}&hits=0\n", admitted: smallLimit},
		{name: "an entry in the key", headers: "X-Api-Key: {key},x:y\n", admitted: smallLimit},
		{name: "a query in the key", headers: "X-Api-Key: {key}?peek=true&d=api_key:x#\n", admitted: smallLimit},
		{name: "an encoded line end in the key", headers: "X-Api-Key: {key}%0d%0aX-Api-Key: x\n", admitted: smallLimit},
		{name: "variables in the key", headers: "X-Api-Key: {key}$uri%[src]{http.request.uri}\n", admitted: smallLimit},
		{name: "invalid UTF-8", headers: "X-Api-Key: {key}\xff\xfe\xc0\x80\n", admitted: smallLimit},
		{name: "7 KiB", headers: "X-Api-Key: {key}" + strings.Repeat("k", 7<<10) + "\n", admitted: smallLimit},
		{name: "hits in the query", path: smallPath + "?&hits=0&peek=true", headers: key, admitted: smallLimit},
		{name: "descriptors in the query", path: smallPath + "?d=api_key:x{i}&domain=x", headers: key, admitted: smallLimit},
		{name: "a whole URI", path: "http://web.test" + smallPath, headers: key, admitted: smallLimit},
		{name: "a whole URI of another host", path: "http://other{i}.test" + smallPath, headers: key, admitted: atMost},
		{name: "a cross-site page", headers: key + "Origin: https://other.test\nSec-Fetch-Site: cross-site\n", admitted: smallLimit},
		{name: "a token", headers: key + "Authorization: Bearer rld_{i}\n", admitted: smallLimit},
		{name: "an upgrade", request: "GET " + smallPath + " HTTP/1.1\nHost: web.test\n" + key + "Connection: Upgrade\nUpgrade: websocket\n\n", admitted: atMost},
		{name: "a second request in a body", request: "POST " + smallPath + " HTTP/1.1\nHost: web.test\n" + key +
			"Content-Length: 69\n\nGET " + smallPath + " HTTP/1.1\nHost: web.test\nX-Api-Key: other{i}\n\n", admitted: smallLimit},
		{name: "two lengths of a body", request: "POST " + smallPath + " HTTP/1.1\nHost: web.test\nConnection: close\n" + key +
			"Content-Length: 80\nTransfer-Encoding: chunked\n\n0\n\nGET " + smallPath + " HTTP/1.1\nHost: web.test\n" + key + "\n", admitted: atMost},
		{name: "HTTP/1.0 without a host", request: "GET " + smallPath + " HTTP/1.0\n" + key + "\n", admitted: atMost},
	}
	for _, method := range []string{"POST", "OPTIONS", "DELETE", "QUERY"} {
		out = append(out, injection{
			name: "the method " + method, admitted: smallLimit,
			request: method + " " + smallPath + " HTTP/1.1\nHost: web.test\nConnection: close\nContent-Length: 2\n" + key + "\nab",
		})
	}
	for _, faulty := range []string{
		"X-Api-Key: {key}\nX-Api-Key: {key}\n", "X-Api-Key: {key}\nx-api-key: other{i}\n", "X-Api-Key: {key}{i}\nX-Api-Key:\n",
		"X-Api-Key: {key}\x00\n", "X-Api-Key: {key}\x01{i}\n", "X-Api-Key: {key}\x7f{i}\n", key + "X-Other: \x00\n",
		"X-Api-Key: {key}" + strings.Repeat("k", 100<<10) + "\n", key + "X-Other: " + strings.Repeat("k", 1<<20) + "\n",
	} {
		name := fmt.Sprintf("%.60q", faulty)
		if len(faulty) > 60 {
			name += fmt.Sprintf("... of %d bytes", len(faulty))
		}
		out = append(out, injection{name: "faulty " + name, headers: faulty})
	}
	for _, n := range []int{8, 9, 12, 14, 15, 16, 20, 32, 64} {
		out = append(out, injection{
			name: fmt.Sprintf("%d KiB", n), headers: "X-Api-Key: {key}" + strings.Repeat("k", n<<10-100) + "\n", admitted: atMost,
		})
	}
	out = append(out, injection{name: "8 KiB beside the key", headers: key + "X-Other: " + strings.Repeat("k", 8<<10) + "\n", admitted: atMost},
		injection{name: "100 headers", headers: key + strings.Repeat("X-Other: {i}\n", 100), admitted: atMost},
		injection{name: "a control character beside the key", headers: key + "X-Other: \x01\n", admitted: atMost})
	for _, forged := range []string{
		"X-Original-URI: /free", "X-Original-URI: /free{i}\nX-Original-URI: /", "X-Original-URL: http://web.test/free", "X-Original-Method: HEAD",
		"X-Forwarded-Uri: /free{i}", "X-Forwarded-Uri: /a\nX-Forwarded-Uri: /b", "X-Forwarded-Method: HEAD", "X-Forwarded-Host: other.test",
		"X-Auth-Request-Redirect: /free", "X-Auth-Request-User: x{i}", "X-Rewrite-URL: /free", "X-HTTP-Method-Override: HEAD",
		"Forwarded: for=192.0.2.{i};host=other.test", "X-RLD-Hits: 0", "X-RLD-Peek: true", "X-Forwarded-Prefix: /free",
		"Connection: close, X-Forwarded-Uri, X-Forwarded-Method, X-Forwarded-For, X-Original-URI", "Cookie: X-Api-Key=x{i}", "TE: trailers",
	} {
		out = append(out, injection{name: forged, headers: key + forged + "\n", admitted: smallLimit})
	}
	for _, path := range []string{
		"/v1//reports/march", "/v1/./reports/{i}", "/v1/x/../reports/march", "/v1/%72eports/march", "/v1/reports;x={i}/march",
		"//v1/reports/march", "/v1/x/%2e%2e/reports/{i}", "/v1/reports/{i}", "/v1;x/reports/march", "/v1;x={i}/reports;x/march",
	} {
		out = append(out, injection{name: "the path " + path, path: path, headers: key, admitted: smallLimit})
	}
	for _, path := range []string{loginPath + ";x={i}", loginPath + "/", "/" + loginPath} {
		out = append(out, injection{name: "the path " + path, path: path, admitted: smallLimit})
	}
	out = append(out, injection{name: "a path above the root", path: "/../v1/reports/march", headers: key, admitted: atMost})
	for _, forged := range []string{
		"", "X-Forwarded-For: 192.0.2.{i}", "X-Forwarded-For: 192.0.2.{i}, 192.0.2.1{i}", "X-Forwarded-For: 192.0.2.{i}\nX-Forwarded-For: 2001:db8::{i}",
		"X-Forwarded-For: x{i}", "X-Forwarded-For: ,,{i}\xff", "X-Forwarded-For: " + strings.Repeat("192.0.2.{i},", 70), "X-Real-IP: 192.0.2.{i}",
		"True-Client-IP: 192.0.2.{i}", "Forwarded: for=192.0.2.{i}", "X-Client-IP: 192.0.2.{i}", "X_Forwarded_For: 192.0.2.{i}",
		"Connection: close, X-Forwarded-For", "CF-Connecting-IP: 192.0.2.{i}", "X-Api-Key: {i}", "X-Forwarded-For: ",
	} {
		out = append(out, injection{name: loginPath + " " + fmt.Sprintf("%.40q", forged), path: loginPath, headers: strings.TrimPrefix(forged+"\n", "\n"), admitted: smallLimit})
	}
	return out
}

// number is how many requests the test sends.
func (x *injection) number() int {
	if x.admitted == 0 {
		return 3 // none may pass
	}
	return smallNumber
}

// bytes returns request i of the injection number n.
func (x *injection) bytes(n, i int) []byte {
	path, text := x.path, x.request
	if path == "" {
		path = smallPath
	}
	if text == "" {
		text = "GET " + path + " HTTP/1.1\nHost: web.test\n" + x.headers
		if !strings.Contains(text, "\nConnection:") {
			text += "Connection: close\n"
		}
		text += "\n"
	}
	text = strings.NewReplacer("{key}", fmt.Sprintf("key%d.", n), "{i}", fmt.Sprint(i)).Replace(text)
	return []byte(strings.ReplaceAll(text, "\n", "\r\n"))
}

// injections sends each injection more often than the limit admits. Requests
// of one injection come from an address of their own.
func injections(t *testing.T, p proxy) {
	awayFromMidnight(t)
	s := newSite(t, p)
	all := injected()
	for n := range all {
		x := &all[n]
		from := net.IPv4(127, 0, 1, byte(n+1))
		got := make(map[int]int)
		for i := range x.number() {
			status, err := s.raw(from, x.bytes(n, i))
			if err != nil {
				t.Errorf("%s: %v", x.name, err)
			}
			got[status]++
		}
		s.judge(t, x, got)
	}
	s.pipelined(t)
	t.Logf("%d injections", len(all)+1)
}

// judge fails if an injection has reached the service more often than it may.
func (s *site) judge(t *testing.T, x *injection, got map[int]int) {
	t.Helper()
	want := x.admitted
	if want > 0 && s.mayRefuse(x) {
		want = atMost
	}
	switch reached := s.taken(); {
	case want == atMost && reached > smallLimit:
		t.Errorf("%s: %d requests reached the service, want at most %d; statuses %v", x.name, reached, smallLimit, got)
	case want != atMost && reached != want:
		t.Errorf("%s: %d requests reached the service, want %d; statuses %v", x.name, reached, want, got)
	case want == smallLimit && got[http.StatusTooManyRequests] != smallNumber-smallLimit:
		t.Errorf("%s: statuses %v, want 429 beyond the limit", x.name, got)
	default:
		t.Logf("%2d of %d passed, statuses %v: %s", reached, x.number(), got, strings.ReplaceAll(x.name, "\n", ", "))
	}
}

// pipelined sends many requests on one connection before it reads an answer.
func (s *site) pipelined(t *testing.T) {
	t.Helper()
	x := &injection{name: "many requests at once", admitted: smallLimit}
	x.request = "GET " + smallPath + " HTTP/1.1\nHost: web.test\nX-Api-Key: pipelined\n\n"
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Write(bytes.Repeat(x.bytes(0, 0), smallNumber)); err != nil {
		t.Fatal(err)
	}
	got, in := make(map[int]int), bufio.NewReader(conn)
	for range smallNumber {
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			break
		}
		_, _ = io.Copy(io.Discard, r.Body)
		got[r.StatusCode]++
	}
	s.judge(t, x, got)
}

// raw sends bytes from an address of loopback and returns the status of the
// first answer, 0 if the proxy closes the connection without one.
func (s *site) raw(from net.IP, request []byte) (int, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}, Timeout: patience}
	conn, err := d.Dial("tcp", s.addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	go func() { _, _ = conn.Write(request) }() // the proxy may answer before it has read all
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		if wait, ok := err.(net.Error); ok && wait.Timeout() {
			return 0, fmt.Errorf("no answer: %w", err)
		}
		return 0, nil
	}
	_, _ = io.Copy(io.Discard, r.Body)
	return r.StatusCode, nil
}
