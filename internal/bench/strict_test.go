package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	"github.com/georld/rld/limits"
	rldv1 "github.com/georld/rld/proto/rld/v1"
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

func answers(codes ...rldv1.Code) []*rldv1.CheckResponse {
	var all []*rldv1.CheckResponse
	for _, c := range codes {
		all = append(all, &rldv1.CheckResponse{Code: c})
	}
	return all
}

func TestTalliesAreOfWholeWindows(t *testing.T) {
	const yes, no = rldv1.Code_ALLOWED, rldv1.Code_DENIED
	at := func(ms int64) time.Time { return time.UnixMilli(ms) }
	w := newTallies(time.Second)
	w.add(at(2_500), answers(yes, yes))
	w.add(at(3_000), answers(yes, no))
	w.add(at(3_999), answers(no))
	w.add(at(5_001), answers(yes))
	for _, c := range []struct {
		from, to int64
		want     []tally
	}{
		{2_400, 5_100, []tally{{1, 2}, {0, 0}}},
		{2_000, 6_000, []tally{{2, 0}, {1, 2}, {0, 0}, {1, 0}}},
		{1_000, 3_000, []tally{{0, 0}, {2, 0}}},
		{5_100, 5_900, nil},
	} {
		if d := cmp.Diff(c.want, w.whole(at(c.from), at(c.to))); d != "" {
			t.Errorf("from %d to %d (-want +got):\n%s", c.from, c.to, d)
		}
	}
	var none *tallies
	none.add(at(0), answers(yes))
	if got := none.whole(at(0), at(10_000)); got != nil {
		t.Errorf("no tallies, and windows %v", got)
	}
}

func TestUnderAdmission(t *testing.T) {
	got, err := underAdmitted([]tally{{98, 10}, {100, 1}}, 100)
	if err != nil || len(got) != 2 || got[0] < 0.0199 || got[0] > 0.0201 || got[1] != 0 {
		t.Errorf("%v, error %v; want 2 %% and 0", got, err)
	}
	for _, c := range []struct {
		windows []tally
		want    string
	}{
		{nil, "not a full window"},
		{[]tally{{100, 1}, {101, 0}}, "window 1 of 2: 101 hits passed, the limit is 100"},
		{[]tally{{90, 10}}, "the machine is too busy"},
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
	names := func(j *job, i, n int) string {
		var all []string
		for _, d := range descriptors(i, n, j) {
			all = append(all, d[0].Entries[0].Key+"="+d[0].Entries[0].Value)
		}
		return strings.Join(all, " ")
	}
	j := &job{Ask: asked{"k", []int{5, 7, 9}}}
	if got := names(j, 1, 2); got != "k=user-000005 k=user-000007 k=user-000009" {
		t.Errorf("for a time each pipeline asks for %s, want all", got)
	}
	j.Keys = 3
	if got := names(j, 1, 2); got != "k=user-000007" {
		t.Errorf("once the second of two asks for %s, want its part", got)
	}
	j.Keys = 1
	if got := names(j, 0, 2); got != "k=user-000005" {
		t.Errorf("of the first user one asks for %s", got)
	}
	if got := len(descriptors(0, 2, &job{Keys: 5_000})); got != 2_500 {
		t.Errorf("one of two asks for %d of 5,000 users, want half", got)
	}
	c := newClient()
	for range 2 { // one job after the other
		all := c.callers(make([]*grpc.ClientConn, 1), 2, &job{Ask: asked{"k", []int{5, 7, 9}}})
		for _, x := range all {
			x.next.Add(1)
		}
	}
	if n := c.turns["k"].Load(); n != 4 {
		t.Errorf("%d turns, want those of both jobs and all callers: 4", n)
	}
}

func TestFramesArePlannedEvenly(t *testing.T) {
	begin := time.Unix(100, 0)
	j := &job{Rate: 8_000, Frame: 8, Length: 10 * time.Millisecond}
	var all []time.Time
	for i := range 4 {
		p := framePlan(i, 4, begin, j)
		p.sleep = func(time.Time) {}
		for at, ok := p.wait(); ok; at, ok = p.wait() {
			all = append(all, at)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	if len(all) != 10 {
		t.Fatalf("%d frames of 8 in 10 ms, want 10 for 8,000 checks a second", len(all))
	}
	for i, at := range all {
		if want := begin.Add(time.Duration(i) * time.Millisecond); !at.Equal(want) {
			t.Errorf("frame %d at %v, want %v", i, at, want)
		}
	}
}
