package admin_test

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/georld/rld/server/admin"
	"github.com/georld/rld/server/admin/api"
)

// topAsked requests /v1/top from an address.
func topAsked(o admin.Options, query, from string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/v1/top"+query, nil)
	if from == "" {
		onSocket(r)
	} else {
		overTCP(r, from)
	}
	w := httptest.NewRecorder()
	admin.New(o).ServeHTTP(w, r)
	return w
}

func TestTopRanks(t *testing.T) {
	given := []api.TopKey{
		{Key: "c", Text: "user=c", HitsPerSecond: 5, DeniedPerSecond: 5},
		{Key: "b", Text: "user=b", HitsPerSecond: 9, Share: new(math.Inf(1))},
		{Key: "a", Text: "user=a", HitsPerSecond: 9, DeniedPerSecond: 1},
		{Key: "d", Text: "user=d", HitsPerSecond: math.NaN()},
	}
	var asked api.TopQuery
	o := options()
	o.Top = func(q api.TopQuery) api.TopAnswer {
		asked = q
		return api.TopAnswer{Keys: given}
	}
	for _, tc := range []struct {
		query string
		keys  string
		asked api.TopQuery
	}{
		{"", "abcd", api.TopQuery{By: api.TopByHits, N: 10}},
		{"?by=denied&n=3", "ca", api.TopQuery{By: api.TopByDenied, N: 3}},
		{"?by=hits&n=1&reveal=false", "a", api.TopQuery{By: api.TopByHits, N: 1}},
	} {
		w := topAsked(o, tc.query, "")
		var got api.TopAnswer
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v: %s", tc.query, err, w.Body)
		}
		keys := ""
		for _, k := range got.Keys {
			keys += k.Key
			if k.Text != "" || k.Share != nil {
				t.Errorf("%s reveals %+v", tc.query, k)
			}
		}
		if keys != tc.keys || asked != tc.asked || got.By != tc.asked.By {
			t.Errorf("%s: got %s by %s for %+v, want %s for %+v", tc.query, keys, got.By, asked, tc.keys, tc.asked)
		}
	}
	if given[0].Key != "c" || given[0].Text == "" || given[1].Share == nil {
		t.Error("the handler changed the value of the daemon")
	}
}

// TestRemoteClientsGetHashes: without credentials only users of the unix socket
// get texts of keys.
func TestRemoteClientsGetHashes(t *testing.T) {
	o := options()
	o.Top = func(api.TopQuery) api.TopAnswer {
		return api.TopAnswer{Keys: []api.TopKey{{Key: "a", Text: "user=alice"}}}
	}
	for _, tc := range []struct {
		query, from string
		status      int
		alice       bool
	}{
		{"?reveal=true", "", 200, true},
		{"?reveal=true", "127.0.0.1:5000", 401, false},
		{"?reveal=true", "[::1]:5000", 401, false},
		{"?reveal=true&reveal=false", "127.0.0.1:5000", 401, false},
		{"?reveal=false&reveal=true", "127.0.0.1:5000", 200, false},
		{"?reveal=true", "10.0.0.9:5000", 401, false},
		{"", "127.0.0.1:5000", 200, false},
		{"", "10.0.0.9:5000", 200, false},
	} {
		w := topAsked(o, tc.query, tc.from)
		if w.Code != tc.status || strings.Contains(w.Body.String(), "alice") != tc.alice {
			t.Errorf("%s from %s: got %d %s", tc.query, tc.from, w.Code, w.Body)
		}
	}
	r := httptest.NewRequest("GET", "/v1/top?reveal=true", nil)
	onSocket(r)
	r.Host = "evil.example:6070"
	w := httptest.NewRecorder()
	admin.New(o).ServeHTTP(w, r)
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "evil.example") {
		t.Errorf("under another host name: got %d %s", w.Code, w.Body)
	}
}

func TestInvalidTopQueries(t *testing.T) {
	for query, says := range map[string]string{
		"?by=size":     `by: unknown order \"size\": want hits or denied`,
		"?n=0":         `n: \"0\" is not a number from 1 to 100`,
		"?n=101":       "from 1 to 100",
		"?n=ten":       `\"ten\"`,
		"?reveal=yes":  `reveal: \"yes\" is neither true nor false`,
		"?reveal=true": "needs the role operate",
	} {
		if w := get(admin.New(options()), "GET", "/v1/top"+query); w.Code/100 != 4 || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: got %d %s, want %s", query, w.Code, w.Body, says)
		}
	}
}
