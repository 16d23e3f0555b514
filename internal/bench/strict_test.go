package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	"github.com/georld/rld/internal/load"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
)

func TestStrictLimits(t *testing.T) {
	regions := limits.Options{Replicated: true, Regions: []string{nearRegion, farRegion}, Replicas: daemonsOfRegion}
	for name, text := range map[string]string{"strict": strictLimits(), "cut": cutLimits()} {
		set, found := limits.Parse([]limits.File{{Name: name, Data: []byte(text)}}, regions)
		if err := found.Err(); err != nil {
			t.Error(err)
			continue
		}
		for i, r := range set.Rules() {
			if strict := r.Limit.Consistency == rules.Strict; strict != (i > 0) {
				t.Errorf("%s, rule %d: strict is %v, want only the first one not to be", name, i, strict)
			}
		}
	}
}

// A headroom must stay strict.headroom, which an owner doubles only where that
// is less than two hundredths of the limit.
func TestDurableLimitAllowsForNoMoreThanTheHeadroom(t *testing.T) {
	if durableLimit/100 > strictHeadroom || durableLimit/50 < strictHeadroom {
		t.Errorf("a limit of %d does not have a headroom of %d", durableLimit, strictHeadroom)
	}
}

func TestUnderAdmission(t *testing.T) {
	got, err := underAdmitted([]load.Tally{{Allowed: 98, Refused: 10}, {Allowed: 100, Refused: 1}}, 100)
	if err != nil || len(got) != 2 || got[0] < 0.0199 || got[0] > 0.0201 || got[1] != 0 {
		t.Errorf("%v, error %v; want 2 %% and 0", got, err)
	}
	for _, c := range []struct {
		windows []load.Tally
		want    string
	}{
		{nil, "not a full window"},
		{[]load.Tally{{Allowed: 100, Refused: 1}, {Allowed: 101, Refused: 0}}, "window 1 of 2: 101 hits passed, the limit is 100"},
		{[]load.Tally{{Allowed: 90, Refused: 10}}, "the machine is too busy"},
	} {
		if _, err := underAdmitted(c.windows, 100); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one with %q", c.windows, err, c.want)
		}
	}
}

func TestMetrics(t *testing.T) {
	const page = `# HELP x_total X.
# TYPE x_total counter
x_total{how="a b"} 3
x_total{how="c"} 1e+06

y 0.5
z NaN-ish
`
	want := sample{`x_total{how="a b"}`: 3, `x_total{how="c"}`: 1e6, "y": 0.5}
	got := parseMetrics(page)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("metrics (-want +got):\n%s", d)
	}
	before := []sample{{"y": 0.25, `x_total{how="c"}`: 1}}
	if v := grown(before, []sample{got}, "y", `x_total{how="c"}`); v != 999_999.25 {
		t.Errorf("grew by %v, want 999,999.25", v)
	}
	if err := catch(func() { grown(before, []sample{got}, "y", "w") }); err == nil {
		t.Error("a metric that is not there grew, want an error")
	}
}

func TestDiskFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	dir, err := diskFolder()
	here, wdErr := os.Getwd()
	if wdErr != nil {
		t.Fatal(wdErr)
	}
	if inMemory(here) {
		if err == nil {
			t.Errorf("%s is in memory and was taken for a disk", dir)
		}
		return
	}
	if err != nil || filepath.Dir(dir) != here {
		t.Errorf("folder %q, error %v; want one in %s", dir, err, here)
	}
}

func TestUsersOfAJob(t *testing.T) {
	names := func(j *job) string {
		var all []string
		for _, d := range descriptors(j) {
			all = append(all, d[0].Entries[0].Key+"="+d[0].Entries[0].Value)
		}
		return strings.Join(all, " ")
	}
	j := &job{Ask: asked{"k", []int{5, 7, 9}}}
	if got := names(j); got != "k=user-000005 k=user-000007 k=user-000009" {
		t.Errorf("for a time it asks for %s, want all", got)
	}
	j.Keys = 1
	if got := names(j); got != "k=user-000005" {
		t.Errorf("of the first user it asks for %s", got)
	}
	if got := len(descriptors(&job{Keys: 5_000})); got != 5_000 {
		t.Errorf("it asks for %d of 5,000 users", got)
	}
}

// TestTurns: jobs about another key than the usual one ask for the users in
// turn, whichever caller it is.
func TestTurns(t *testing.T) {
	server := &asking{}
	g := grpc.NewServer()
	ratelimitv3.RegisterRateLimitServiceServer(g, server)
	c := testClient(t)
	j := job{
		Kind: kindClosed, Target: listen(t, g.Serve, g.Stop), Ask: asked{"k", []int{5, 7, 9}}, Flight: 1,
		Length: short,
	}
	for range 2 { // one job after the other
		if _, err := c.do(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range server.users {
		if want := userName([]int{5, 7, 9}[i%3]); name != want {
			t.Fatalf("call %d asks for %s, want %s", i, name, want)
		}
	}
}

// asking records the key of each call, one call at a time.
type asking struct {
	ratelimitv3.UnimplementedRateLimitServiceServer
	mu    sync.Mutex
	users []string
}

func (a *asking) ShouldRateLimit(
	_ context.Context, r *ratelimitv3.RateLimitRequest,
) (*ratelimitv3.RateLimitResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.users = append(a.users, r.Descriptors[0].Entries[0].Value)
	return newNoop().answer, nil
}
