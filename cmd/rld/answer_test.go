package main

import (
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"

	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// everything is an answer in which every field is set.
func everything() (*rldv1.CheckRequest, *rldv1.CheckResponse) {
	question := &rldv1.CheckRequest{Peek: true, Descriptors: []*rldv1.Descriptor{
		{Entries: []*rldv1.Entry{{Key: "tier", Value: "free"}, {Key: "user", Value: "\x1b[31mred"}}},
		{Entries: []*rldv1.Entry{{Key: "sms"}}},
		{Entries: []*rldv1.Entry{{Key: "staff", Value: "yes"}}},
		{Entries: []*rldv1.Entry{{Key: "free", Value: "pass"}}},
		{Entries: []*rldv1.Entry{{Key: "other", Value: "x"}}},
	}}
	answer := &rldv1.CheckResponse{Code: rldv1.Code_DENIED, RefusedBy: "tier=free > user"}
	answer.Statuses = []*rldv1.Status{
		{
			Code: rldv1.Code_DENIED, Rule: "tier=free > user", Mode: rldv1.Mode_QUOTA, Remaining: 3,
			Limit: &rldv1.Limit{
				RequestsPerUnit: 10, Unit: rldv1.Unit_MINUTE, UnitMultiplier: 5,
				Algorithm: "token_bucket", Burst: 20, Name: "free users",
			},
			ResetAfter: durationpb.New(90 * time.Second), RetryAfter: durationpb.New(1500001 * time.Nanosecond),
			Degraded: true, DegradedReason: "keys_full",
		},
		{
			Code: rldv1.Code_ALLOWED, Rule: "sms", Mode: rldv1.Mode_SHADOW,
			Limit: &rldv1.Limit{
				RequestsPerUnit: 1, Unit: rldv1.Unit_SECOND, UnitMultiplier: 1,
				Algorithm: "leaky_bucket",
			},
			ResetAfter: durationpb.New(0), Delay: durationpb.New(250 * time.Millisecond),
		},
		{Code: rldv1.Code_ALLOWED, Rule: "staff=yes", Unlimited: true},
		{Code: rldv1.Code_ALLOWED, Rule: "free=pass"},
		{Code: rldv1.Code_ALLOWED},
	}
	return question, answer
}

func TestTableOfEverything(t *testing.T) {
	question, answer := everything()
	var got strings.Builder
	if err := writeTable(&got, question, answer); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/answer.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNever distinguishes hits that never fit from hits that fit later.
func TestNever(t *testing.T) {
	limit := func(requests, burst uint32) *rldv1.Limit {
		return &rldv1.Limit{RequestsPerUnit: requests, Burst: burst}
	}
	for _, tc := range []struct {
		name        string
		status      *rldv1.Status
		retry, note string
	}{
		{"passes", &rldv1.Status{Code: rldv1.Code_ALLOWED, Limit: limit(5, 0)}, "-", ""},
		{"fits later", &rldv1.Status{
			Code: rldv1.Code_DENIED, Limit: limit(5, 0),
			RetryAfter: durationpb.New(time.Second),
		}, "1s", ""},
		{"fits at once", &rldv1.Status{
			Code: rldv1.Code_DENIED, Limit: limit(5, 0),
			RetryAfter: durationpb.New(0),
		}, "0s", ""},
		{
			"too many", &rldv1.Status{Code: rldv1.Code_DENIED, Limit: limit(5, 0)},
			"never", "more than the limit holds",
		},
		{
			"too many of a bucket", &rldv1.Status{Code: rldv1.Code_DENIED, Limit: limit(5, 20)},
			"never", "more than the limit holds",
		},
		{"limit of 0", &rldv1.Status{Code: rldv1.Code_DENIED, Limit: limit(0, 0)}, "never", "the limit is 0"},
		{"in shadow mode", &rldv1.Status{
			Code: rldv1.Code_ALLOWED, Limit: limit(0, 0),
			Mode: rldv1.Mode_SHADOW,
		}, "-", "shadow mode"},
	} {
		if got := retryText(tc.status); got != tc.retry {
			t.Errorf("%s: retry %q, want %q", tc.name, got, tc.retry)
		}
		if got := strings.Join(notes(tc.status), ", "); got != tc.note {
			t.Errorf("%s: note %q, want %q", tc.name, got, tc.note)
		}
	}
}

func TestAddressesOfDaemons(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:8081": true, "[::1]:8081": true, "rld.internal:1": true, ":8081": true,
		"unix:s.sock": true, "unix:///run/rld.sock": true,
		"foo": false, "": false, "foo:": false, "foo:bar": false, "foo:0": false, "foo:65536": false,
		"unix:": false, "::1:8081": false, "http://foo:8081": false,
	} {
		if got := isAddr(addr); got != want {
			t.Errorf("isAddr(%q) = %v, want %v", addr, got, want)
		}
	}
}

func TestTextThatIsNotUTF8(t *testing.T) {
	for _, tc := range []struct{ domain, entry, want string }{
		{"edge", "tier=\xff", `the value of "tier" is not UTF-8`},
		{"edge", "ti\xffer=x", `the key "ti\xffer" is not UTF-8`},
		{"ed\xffge", "tier=x", `the domain "ed\xffge" is not UTF-8`},
	} {
		o := checkOptions{addr: "localhost:1", domain: tc.domain, hits: 1, timeout: time.Second}
		if _, err := o.question([]string{tc.entry}); err == nil || err.Error() != tc.want {
			t.Errorf("domain %q, entry %q: %v, want %s", tc.domain, tc.entry, err, tc.want)
		}
	}
}

func TestJSONOfEverything(t *testing.T) {
	question, answer := everything()
	answer.Statuses = answer.Statuses[:3]
	var got strings.Builder
	if err := writeJSON(&got, question, answer); err != nil {
		t.Fatal(err)
	}
	const want = `{
  "allowed": false,
  "code": "DENIED",
  "refused_by": "tier=free > user",
  "statuses": [
    {
      "code": "DENIED",
      "rule": "tier=free > user",
      "limit": {
        "requests_per_unit": 10,
        "unit": "MINUTE",
        "unit_multiplier": 5,
        "algorithm": "token_bucket",
        "burst": 20,
        "name": "free users"
      },
      "remaining": 3,
      "reset_after": "90s",
      "mode": "QUOTA",
      "retry_after": "0.002s",
      "degraded": true,
      "degraded_reason": "keys_full"
    },
    {
      "code": "ALLOWED",
      "rule": "sms",
      "limit": {
        "requests_per_unit": 1,
        "unit": "SECOND",
        "unit_multiplier": 1,
        "algorithm": "leaky_bucket"
      },
      "remaining": 0,
      "reset_after": "0s",
      "mode": "SHADOW",
      "delay": "0.25s"
    },
    {
      "code": "ALLOWED",
      "rule": "staff=yes",
      "unlimited": true
    }
  ]
}
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDescribeVersion(t *testing.T) {
	setting := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	for _, tc := range []struct {
		version  string
		settings []debug.BuildSetting
		want     string
	}{
		{"v0.3.0", []debug.BuildSetting{setting("vcs.revision", "1a2b")}, "v0.3.0"},
		{"(devel)", []debug.BuildSetting{setting("vcs.revision", "1a2b3c4d5e6f7a8b")}, "devel 1a2b3c4d5e6f"},
		{
			"",
			[]debug.BuildSetting{setting("vcs.revision", "1a2b"), setting("vcs.modified", "true")},
			"devel 1a2b, modified",
		},
		{"(devel)", []debug.BuildSetting{setting("vcs.modified", "false")}, "devel"},
		{"", nil, "devel"},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Version: tc.version}, Settings: tc.settings}
		if got := describeVersion(info); got != tc.want {
			t.Errorf("version %q with %v: got %q, want %q", tc.version, tc.settings, got, tc.want)
		}
	}
}

func TestInnermost(t *testing.T) {
	for message, want := range map[string]string{
		`desc = "transport: dial tcp 127.0.0.1:1: connect: connection refused"`: "connection refused",
		"draining": "draining",
		"":         "",
	} {
		if got := innermost(message); got != want {
			t.Errorf("innermost(%q) = %q, want %q", message, got, want)
		}
	}
}
