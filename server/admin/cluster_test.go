package admin_test

import (
	"encoding/json"
	"math"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/georld/rld/server/admin"
	"github.com/georld/rld/server/admin/api"
)

// stamp matches the time of an answer, which no test can know.
var stamp = regexp.MustCompile(`"at": "([^"]+)"`)

// ask checks the time of an answer and returns the body without it.
func ask(t *testing.T, o admin.Options, path string) string {
	t.Helper()
	before := time.Now()
	w := get(admin.New(o), "GET", path)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" ||
		w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Cache-Control") != "no-store" {
		t.Fatalf("%s: %d with %v: %s", path, w.Code, w.Header(), w.Body)
	}
	m := stamp.FindStringSubmatch(w.Body.String())
	if m == nil {
		t.Fatalf("%s says not when:\n%s", path, w.Body)
	}
	at, err := time.Parse(time.RFC3339Nano, m[1])
	if err != nil || at.Before(before.Add(-time.Second)) || at.After(time.Now().Add(time.Second)) {
		t.Errorf("%s was answered at %s, %v", path, m[1], err)
	}
	return stamp.ReplaceAllString(w.Body.String(), `"at": "AT"`)
}

func TestDaemonAlone(t *testing.T) {
	for path, want := range map[string]string{
		"/members":  `{"at":"AT","alone":true,"members":[],"revoked":[]}`,
		"/netcheck": `{"at":"AT","alone":true,"peers":[]}`,
	} {
		if got := compact(ask(t, options(), path)); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestEmptyLists(t *testing.T) {
	o := options()
	o.Members = func() []api.Member { return nil }
	o.Netcheck = func() []api.PeerCheck { return nil }
	for path, want := range map[string]string{
		"/members":  `{"at":"AT","alone":false,"members":[],"revoked":[]}`,
		"/netcheck": `{"at":"AT","alone":false,"peers":[]}`,
	} {
		if got := compact(ask(t, o, path)); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// compact removes the blanks of JSON whose strings have none.
func compact(s string) string { return strings.Join(strings.Fields(s), "") }

func TestMembers(t *testing.T) {
	o := options()
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	given := []api.Member{
		{Name: "us-1", Region: "us", Incarnation: "00000000000000b2", Addr: "10.0.0.2:7947", Ready: true},
		{Name: "us-1", Region: "us", Incarnation: "00000000000000b1"},
		{
			Name: "eu-1", Region: "eu", Incarnation: "00000000000000a1", Addr: "10.1.0.1:7947", Build: "v1.2.3",
			Ready: true, Self: true, Rules: api.RulesHash(0xabc), RulesAgree: new(true), Since: &since,
		},
	}
	o.Members = func() []api.Member { return given }
	want := `{
  "at": "AT",
  "alone": false,
  "members": [
    {
      "name": "eu-1",
      "region": "eu",
      "incarnation": "00000000000000a1",
      "addr": "10.1.0.1:7947",
      "build": "v1.2.3",
      "ready": true,
      "voter_only": false,
      "self": true,
      "rules": "0000000000000abc",
      "rules_agree": true,
      "since": "2026-01-02T03:04:05Z"
    },
    {
      "name": "us-1",
      "region": "us",
      "incarnation": "00000000000000b1",
      "addr": "",
      "build": "",
      "ready": false,
      "voter_only": false,
      "self": false,
      "rules": "",
      "rules_agree": null,
      "since": null
    },
    {
      "name": "us-1",
      "region": "us",
      "incarnation": "00000000000000b2",
      "addr": "10.0.0.2:7947",
      "build": "",
      "ready": true,
      "voter_only": false,
      "self": false,
      "rules": "",
      "rules_agree": null,
      "since": null
    }
  ],
  "revoked": []
}
`
	if diff := cmp.Diff(want, ask(t, o, "/members")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if given[0].Name != "us-1" || given[2].Name != "eu-1" {
		t.Error("the list of the daemon was sorted in place")
	}
}

func TestNetcheck(t *testing.T) {
	o := options()
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	given := []api.PeerCheck{
		{Region: "us", Addr: "10.0.0.9:7947", State: api.Refused, LastError: "other <secret>", LastErrorAt: &when},
		{
			Name: "eu-1", Region: "eu", Incarnation: "00000000000000a1", Addr: "10.1.0.1:7947", State: api.Connected,
			RTTSeconds: api.Seconds(80 * time.Millisecond), StalenessSeconds: api.Seconds(0),
			UnsentSeconds: api.Seconds(-1), ClockOffsetSeconds: new(-0.25),
			SentBytesPerSecond: new(math.Inf(1)), ReceivedBytesPerSecond: new(math.NaN()),
			SentFrames: 1, ReceivedFrames: math.MaxUint64, DroppedFrames: 3,
		},
	}
	o.Netcheck = func() []api.PeerCheck { return given }
	want := `{
  "at": "AT",
  "alone": false,
  "peers": [
    {
      "name": "eu-1",
      "region": "eu",
      "incarnation": "00000000000000a1",
      "addr": "10.1.0.1:7947",
      "state": "connected",
      "rtt_seconds": 0.08,
      "staleness_seconds": 0,
      "unsent_seconds": null,
      "lag_seconds": null,
      "clock_offset_seconds": -0.25,
      "sent_bytes_per_second": null,
      "received_bytes_per_second": null,
      "sent_frames": 1,
      "received_frames": 18446744073709551615,
      "dropped_frames": 3,
      "last_error": "",
      "last_error_at": null
    },
    {
      "name": "",
      "region": "us",
      "incarnation": "",
      "addr": "10.0.0.9:7947",
      "state": "refused",
      "rtt_seconds": null,
      "staleness_seconds": null,
      "unsent_seconds": null,
      "lag_seconds": null,
      "clock_offset_seconds": null,
      "sent_bytes_per_second": null,
      "received_bytes_per_second": null,
      "sent_frames": 0,
      "received_frames": 0,
      "dropped_frames": 0,
      "last_error": "other <secret>",
      "last_error_at": "2026-01-02T03:04:05Z"
    }
  ]
}
`
	if diff := cmp.Diff(want, ask(t, o, "/netcheck")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if given[0].Region != "us" || given[1].SentBytesPerSecond == nil {
		t.Error("the list of the daemon was changed")
	}
}

// TestUnencodableAnswer requires an error instead of a part of an answer.
func TestUnencodableAnswer(t *testing.T) {
	o := options()
	o.Members = func() []api.Member {
		return []api.Member{{Since: new(time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC))}}
	}
	w := get(admin.New(o), "GET", "/members")
	if w.Code != http.StatusInternalServerError || !strings.HasPrefix(w.Body.String(), "cannot encode the answer: ") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestClusterPagesChangeNothing(t *testing.T) {
	h := admin.New(options())
	for _, path := range []string{"/members", "/netcheck"} {
		if w := get(h, "POST", path); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", path, w.Code)
		}
	}
}

// TestConcurrentRequests: concurrent requests may share one list.
func TestConcurrentRequests(t *testing.T) {
	o := options()
	given := []api.PeerCheck{{Name: "b", RTTSeconds: new(math.NaN())}, {Name: "a"}}
	o.Netcheck = func() []api.PeerCheck { return given }
	h := admin.New(o)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			var a api.NetcheckAnswer
			body := get(h, "GET", "/netcheck").Body.Bytes()
			if err := json.Unmarshal(body, &a); err != nil || len(a.Peers) != 2 || a.Peers[0].Name != "a" {
				t.Errorf("%v: %s", err, body)
			}
		})
	}
	all.Wait()
}
