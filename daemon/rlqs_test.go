package daemon

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	quotav3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

const rlqsLimits = `
domain: edge
descriptors:
  - key: tier
    value: free
    descriptors:
      - key: org
        rate_limit: {unit: day, requests_per_unit: 100}
  - key: none
    rate_limit: {unit: hour, requests_per_unit: 0}
  - key: shadow
    rate_limit: {unit: day, requests_per_unit: 3}
    shadow_mode: true
  - key: open
    rate_limit: {unlimited: true}
`

// rlqsStream is a stream of a client.
type rlqsStream struct {
	t *testing.T
	quotav3.RateLimitQuotaService_StreamRateLimitQuotasClient
}

func openRLQS(t *testing.T, r *running) *rlqsStream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	s, err := quotav3.NewRateLimitQuotaServiceClient(dial(t, r.edges.grpcAddr())).StreamRateLimitQuotas(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &rlqsStream{t, s}
}

type (
	rlqsUsage  = quotav3.RateLimitQuotaUsageReports_BucketQuotaUsage
	rlqsAction = quotav3.RateLimitQuotaResponse_BucketAction
)

func rlqsReport(allowed, denied uint64, pairs ...string) *rlqsUsage {
	id := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		id[pairs[i]] = pairs[i+1]
	}
	return &rlqsUsage{
		BucketId:           &quotav3.BucketId{Bucket: id},
		NumRequestsAllowed: allowed, NumRequestsDenied: denied,
	}
}

// report sends reports and returns the actions that follow.
func (s *rlqsStream) report(domain string, usages ...*rlqsUsage) []*rlqsAction {
	s.t.Helper()
	if err := s.Send(&quotav3.RateLimitQuotaUsageReports{Domain: domain, BucketQuotaUsages: usages}); err != nil {
		s.t.Fatal(err)
	}
	m, err := s.Recv()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := m.ValidateAll(); err != nil {
		s.t.Errorf("invalid by the protocol: %v", err)
	}
	return m.BucketAction
}

// allowAll is the tokens of an action that allows everything.
const allowAll = -1

// tokensOf returns the tokens that an action assigns, 0 for one that denies
// everything or abandons the bucket.
func tokensOf(a *rlqsAction) int {
	switch s := a.GetQuotaAssignmentAction().GetRateLimitStrategy().GetStrategy().(type) {
	case *typev3.RateLimitStrategy_BlanketRule_:
		if s.BlanketRule == typev3.RateLimitStrategy_ALLOW_ALL {
			return allowAll
		}
	case *typev3.RateLimitStrategy_TokenBucket:
		return int(s.TokenBucket.MaxTokens)
	}
	return 0
}

// TestRLQS is a conversation of two clients with a daemon: they share a limit,
// with each other and with calls of other edges.
func TestRLQS(t *testing.T) {
	r := startDaemon(t, testConfig(t, rlqsLimits))
	one, two := openRLQS(t, r), openRLQS(t, r)
	// The request of the first report is charged, and a tenth of the limit is
	// assigned. The rules nest in another order than that of the keys.
	got := one.report("edge", rlqsReport(1, 0, "org", "a", "tier", "free"))
	bucket := got[0].GetQuotaAssignmentAction().GetRateLimitStrategy().GetTokenBucket()
	if len(got) != 1 || bucket.GetMaxTokens() != 10 {
		t.Errorf("assigned %v, want 10 tokens", got)
	}
	if ttl := got[0].GetQuotaAssignmentAction().AssignmentTimeToLive; ttl.Seconds != 30 || ttl.Nanos != 0 {
		t.Errorf("lives for %v, want 30 s", ttl)
	}
	// Nothing comes back to a bucket while it lives.
	if f := bucket.GetFillInterval(); f.GetSeconds() < 1e7 || bucket.GetTokensPerFill().GetValue() != 1 {
		t.Errorf("refills %v in %v", bucket.GetTokensPerFill(), f)
	}
	got = two.report("edge", rlqsReport(0, 200, "tier", "free", "org", "a"))
	if n := tokensOf(got[0]); n != 10 {
		t.Errorf("the second client has %d tokens, want 10", n)
	}
	// Limits of nothing, in shadow mode, without a bound, and none.
	got = one.report("", rlqsReport(1, 0, "none", "x"), rlqsReport(5, 0, "shadow", "x"), rlqsReport(1, 0, "open", "x"), rlqsReport(1, 0, "unknown", "x"))
	want := []int{0, allowAll, allowAll, allowAll}
	for i := range want {
		if len(got) != len(want) || tokensOf(got[i]) != want[i] {
			t.Fatalf("assigned %v, want %v", got, want)
		}
	}
	// 1 + 10 + 10 hits of 100 are charged, so 79 calls pass.
	admitted := 0
	for range 100 {
		if admits(t, r, "tier=free&org=a") {
			admitted++
		}
	}
	if admitted != 79 {
		t.Errorf("%d calls pass beside the assigned hits, want 79", admitted)
	}
	if got := two.report("", rlqsReport(10, 5, "tier", "free", "org", "a")); tokensOf(got[0]) != 0 {
		t.Errorf("without hits left the client gets %v, want to deny all", got)
	}
	// A drain ends streams.
	r.stop()
	for _, s := range []*rlqsStream{one, two} {
		if _, err := s.Recv(); grpcstatus.Code(err) != codes.Unavailable {
			t.Errorf("at the drain %v, want Unavailable", err)
		}
	}
	if err := r.wait(t); err != nil {
		t.Error(err)
	}
}

// TestRLQSBadInput sends messages that are refused whole.
func TestRLQSBadInput(t *testing.T) {
	r := startDaemon(t, testConfig(t, rlqsLimits))
	good := rlqsReport(1, 0, "tier", "free", "org", "a")
	many := rlqsReport(1<<40, 0, "open", "x")
	long := rlqsReport(1, 0, "open", strings.Repeat("x", 5_000))
	for name, tt := range map[string]struct {
		domains []string
		usage   []*rlqsUsage
		text    string
	}{
		"no domain":        {[]string{""}, []*rlqsUsage{good}, "the first message of a stream has no domain"},
		"another domain":   {[]string{"edge", "other"}, []*rlqsUsage{good}, `domain "other" on a stream of domain "edge"`},
		"no reports":       {[]string{"edge"}, nil, "no bucket_quota_usages"},
		"no bucket":        {[]string{"edge"}, []*rlqsUsage{{}}, "bucket_quota_usages 0: no bucket_id"},
		"an empty bucket":  {[]string{"edge"}, []*rlqsUsage{good, rlqsReport(1, 0)}, "bucket_quota_usages 1: no bucket_id"},
		"an empty key":     {[]string{"edge"}, []*rlqsUsage{rlqsReport(1, 0, "", "x")}, "an empty key or value"},
		"an empty value":   {[]string{"edge"}, []*rlqsUsage{rlqsReport(1, 0, "x", "")}, "an empty key or value"},
		"too many":         {[]string{"edge"}, []*rlqsUsage{many}, "1099511627776 requests, want at most 4294967295"},
		"5,000 bytes":      {[]string{"edge"}, []*rlqsUsage{long}, "entry 0: value is 5000 bytes long, at most 4096"},
		"33 entries of id": {[]string{"edge"}, []*rlqsUsage{manyEntries(33)}, "33 entries, at most 32"},
	} {
		t.Run(name, func(t *testing.T) {
			before := r.charged()
			s := openRLQS(t, r)
			for i, d := range tt.domains {
				usage := tt.usage
				if i < len(tt.domains)-1 {
					usage = []*rlqsUsage{rlqsReport(1, 0, "open", "x")}
				}
				if err := s.Send(&quotav3.RateLimitQuotaUsageReports{Domain: d, BucketQuotaUsages: usage}); err != nil {
					t.Fatal(err)
				}
			}
			var err error
			for err == nil {
				_, err = s.Recv()
			}
			if grpcstatus.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%v, want InvalidArgument with %q", err, tt.text)
			}
			if r.charged() != before {
				t.Errorf("%d hits charged", r.charged()-before)
			}
		})
	}
}

func manyEntries(n int) *rlqsUsage {
	u := rlqsReport(1, 0)
	for i := range n {
		u.BucketId.Bucket[fmt.Sprint("k", i)] = "v"
	}
	return u
}

// TestRLQSManyBuckets reports 10,000 buckets on a stream: those beyond the
// bound are abandoned.
func TestRLQSManyBuckets(t *testing.T) {
	r := startDaemon(t, testConfig(t, rlqsLimits))
	s := openRLQS(t, r)
	kinds := map[string]int{}
	var all []*rlqsUsage
	for i := range 10_000 {
		all = append(all, rlqsReport(1, 0, "tier", "free", "org", fmt.Sprint(i)))
	}
	if err := s.Send(&quotav3.RateLimitQuotaUsageReports{Domain: "edge", BucketQuotaUsages: all}); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(all); {
		m, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		n += len(m.BucketAction)
		for _, a := range m.BucketAction {
			kinds[fmt.Sprintf("%T", a.BucketAction)]++
		}
	}
	if kinds["*rate_limit_quotav3.RateLimitQuotaResponse_BucketAction_AbandonAction_"] != 10_000-4_096 {
		t.Errorf("%v, want 5,904 abandoned", kinds)
	}
}

// admits asks the daemon for one hit over HTTP.
func admits(t *testing.T, r *running, query string) bool {
	t.Helper()
	answer, err := http.Get("http://" + r.edges.httpAddr() + "/v1/check?domain=edge&" + strings.ReplaceAll(query, "+", "&"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}
