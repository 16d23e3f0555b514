package limits

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/rules"
)

// TestReserveHints checks that a share is rejected exactly when a region would
// get nothing of the limit, and that the value in the hint is accepted.
func TestReserveHints(t *testing.T) {
	least := regexp.MustCompile(`at least ([0-9.]+%)`)
	raise := regexp.MustCompile(`raise ([a-z_]+)(?: and (burst))? to ([0-9]+)`)
	rapid.Check(t, func(t *rapid.T) {
		regions := rapid.IntRange(2, 6).Draw(t, "regions")
		o := Options{Regions: []string{"a", "b", "c", "d", "e", "f"}[:regions]}
		requests := rapid.IntRange(1, 40).Draw(t, "requests")
		burst := rapid.IntRange(0, 40).Draw(t, "burst") // 0: no bucket
		share := rules.PPM(rapid.SampledFrom([]int{1, 999, 20_000, 250_000, 333_333, 500_000, 990_000, 1_000_000}).Draw(t, "share")).String()
		read := func(requests, burst int, share string) (*rules.Limit, string) {
			more := ""
			if burst > 0 {
				more = fmt.Sprintf("algorithm: token_bucket, burst: %d, ", burst)
			}
			text := fmt.Sprintf("domain: d\ndescriptors: [{key: k, rate_limit: {unit: hour, requests_per_unit: %d, %s"+
				"consistency: strict, on_failure: {share: %s}}}]", requests, more, share)
			set, faults := Parse([]File{{Name: "f.yaml", Data: []byte(text)}}, o)
			if set == nil {
				return nil, faults.String()
			}
			return set.Rules()[0].Limit, ""
		}

		l, why := read(requests, burst, share)
		if l != nil {
			home, reserve := l.OwnerLimit(regions), l.ReserveLimit(regions)
			if home.Requests == 0 || reserve.Requests == 0 || burst > 0 && (home.Burst == 0 || reserve.Burst == 0) {
				t.Fatalf("%d, burst %d, share %s, %d regions: home %+v, floor %+v", requests, burst, share, regions, home, reserve)
			}
			return
		}
		if !strings.Contains(why, "write deny or allow") {
			t.Fatalf("no way out: %s", why)
		}
		if m := least.FindStringSubmatch(why); m != nil {
			if l, again := read(requests, burst, m[1]); l == nil {
				t.Fatalf("%sand then %s", why, again)
			}
		}
		if m := raise.FindStringSubmatch(why); m != nil {
			var n int
			if _, err := fmt.Sscan(m[3], &n); err != nil {
				t.Fatal(err)
			}
			more, bigger := requests, burst
			if m[1] == "requests_per_unit" {
				more = n
			}
			if m[1] == "burst" || m[2] == "burst" {
				bigger = n
			}
			if l, again := read(more, bigger, share); l == nil {
				t.Fatalf("%sand then %s", why, again)
			}
		}
	})
}

// TestOwnedReportedOnce checks that one diagnostic covers all limits with
// owners and gives their number.
func TestOwnedReportedOnce(t *testing.T) {
	text := "domain: d\ndescriptors:\n"
	for i := range 120 {
		text += fmt.Sprintf("- {key: k%d, rate_limit: {unit: hour, requests_per_unit: 5, consistency: strict}}\n", i)
	}
	_, faults := Parse([]File{{Name: "f.yaml", Data: []byte(text)}}, Options{Replicas: 2})
	if len(faults) != 1 || !strings.HasPrefix(faults.Warnings().String(), "f.yaml:3:") ||
		!strings.Contains(faults[0].Message, "120 limits are decided by the owners of their keys") {
		t.Errorf("got %v", faults)
	}
}
