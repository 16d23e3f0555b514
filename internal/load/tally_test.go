package load

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	rldv1 "github.com/georld/rld/proto/rld/v1"
)

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
		want     []Tally
	}{
		{2_400, 5_100, []Tally{{1, 2}, {0, 0}}},
		{2_000, 6_000, []Tally{{2, 0}, {1, 2}, {0, 0}, {1, 0}}},
		{1_000, 3_000, []Tally{{0, 0}, {2, 0}}},
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
