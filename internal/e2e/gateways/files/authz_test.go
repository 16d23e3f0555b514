package files

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	extauthz "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	mesh "istio.io/api/mesh/v1alpha1"
)

// authz asks rld over HTTP as the filter ext_authz does: it keeps method and
// host, appends the path of the request to a prefix, and adds an address of its
// own to X-Forwarded-For.
type authz struct {
	prefix string
	// headers are those of the client that rld gets, in lower case, without
	// Authorization, which it gets in any case.
	headers []string
	rld     string
}

// ask returns the status of the answer to a question.
func (a *authz) ask(t *testing.T, method string, r request) int {
	t.Helper()
	text := fmt.Sprintf("%s %s%s HTTP/1.1\r\nHost: web.test\r\nContent-Length: 0\r\nX-Forwarded-For: 127.0.0.1\r\nX-Client-Address: %s\r\n",
		method, a.prefix, r.path, r.address)
	for name, value := range r.header {
		if name == "authorization" || slices.Contains(a.headers, name) {
			text += name + ": " + value + "\r\n"
		}
	}
	conn, err := net.Dial("tcp", a.rld)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintf(conn, "%s\r\n", text); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body) // the status is what counts
	return answer.StatusCode
}

// TestAuthz asks a real rld what Envoy and Istio ask with these settings. No
// client gets more than the limit.
func TestAuthz(t *testing.T) {
	untilTomorrow(t)
	filter := filterOf[*extauthz.ExtAuthz](t, readEnvoy(t, "ext-authz.yaml"))
	byEnvoy := &authz{prefix: filter.GetHttpService().GetPathPrefix(), rld: startRLD(t, "envoy").http}
	for _, p := range filter.GetAllowedHeaders().GetPatterns() {
		byEnvoy.headers = append(byEnvoy.headers, p.GetExact())
	}
	var m mesh.MeshConfig
	readProto(t, "mesh.yaml", example(t, "istio", "mesh.yaml"), &m)
	provider := m.GetExtensionProviders()[0].GetEnvoyExtAuthzHttp()
	byIstio := &authz{provider.GetPathPrefix(), provider.GetIncludeRequestHeadersInCheck(), startRLD(t, "istio").http}
	for i, a := range []*authz{byEnvoy, byIstio} {
		for n, tt := range []struct {
			path, key, forged string
			want              int    // of 13
			rest              string // statuses of the others
		}{
			{"/v1/reports/march", "k1", "", 10, "429"},
			{"/v1/reports/march?hits=0&peek=true&domain=x", "k2", "", 10, "429"},
			{"//v1/./reports/%6darch", "k3&hits=0", "", 10, "429"},
			{"/v1/reports/march", "k4", "x-original-uri", 10, "429"},
			{"/v1/reports/march", "k5", "x-forwarded-uri", 10, "429"},
			{"/v1/reports/march", "k6", "authorization", 10, "429"},
			{"/v1/reports/march", "", "", 10, "429"},
			{"/login", "k7", "", 10, "429"},
			{"/v1/%zz", "k8", "", 0, "400"},
			{"-other/v1/reports/march", "k9", "", 0, "404"},
			{"/v1/" + strings.Repeat("x", 8<<10), "k10", "", 0, "429"},
		} {
			r := request{path: tt.path, address: fmt.Sprintf("192.0.2.%d", n), header: map[string]string{}}
			if tt.key != "" {
				r.header["x-api-key"] = tt.key
			}
			if tt.forged != "" {
				r.header[tt.forged] = "/free"
			}
			got := make(map[string]int)
			for _, method := range []string{"GET", "POST", "HEAD", "OPTIONS", "DELETE", "GET", "PUT", "PATCH", "GET", "GET", "GET", "GET", "GET"} {
				got[fmt.Sprint(a.ask(t, method, r))]++
			}
			if got["200"] != tt.want || got[tt.rest] != 13-tt.want {
				t.Errorf("%d: %.40s with %v: %v, want 200 %d times, and %s", i, tt.path, r.header, got, tt.want, tt.rest)
			}
		}
	}
}
