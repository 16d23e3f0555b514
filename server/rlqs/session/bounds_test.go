package session

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestLongestIdleBucketIsAbandoned fills a stream with made-up ids. A bucket
// that has requests keeps its place, and a new one gets that of an idle one.
func TestLongestIdleBucketIsAbandoned(t *testing.T) {
	for name, tt := range map[string]struct {
		long    int // bytes of a value
		buckets int
	}{
		"buckets": {1, MaxBuckets},
		"bytes":   {1 << 14, MaxIDBytes>>14 - 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{limits: map[string]*fakeLimit{}}
			s := w.session()
			value := strings.Repeat("x", tt.long)
			report := func(denied uint64, names ...string) (abandoned []string) {
				var u []Usage
				for _, n := range names {
					u = append(u, Usage{ID: idOf(n, value), Denied: denied})
				}
				s.Report(u)
				out, err := act(s)
				if err != nil {
					t.Fatal(err)
				}
				for _, a := range out {
					if a.Kind == Abandon {
						abandoned = append(abandoned, a.ID[0].Key)
					}
				}
				return abandoned
			}
			names := []string{"real"}
			for i := range tt.buckets - 1 {
				names = append(names, fmt.Sprint(i))
			}
			if got := report(1, names...); got != nil {
				t.Fatalf("abandoned %v", got)
			}
			if got := report(1, "early"); fmt.Sprint(got) != "[early]" {
				t.Errorf("abandoned %v, want the new bucket: all have requests", got)
			}
			for range 4 {
				w.now += 5 * time.Second
				report(1, "real")
				report(0, names[1:]...)
			}
			if got := report(1, "new", "newer"); fmt.Sprint(got) != "[0 1]" {
				t.Errorf("abandoned %v, want those idle for longest", got)
			}
			bytes := 0
			for name := range s.buckets {
				bytes += len(name)
			}
			if len(s.buckets) > MaxBuckets || bytes > MaxIDBytes || bytes != s.bytes || s.asked.Len() != len(s.buckets) {
				t.Errorf("%d buckets, %d bytes, counted %d, %d in order", len(s.buckets), bytes, s.bytes, s.asked.Len())
			}
		})
	}
}

// TestAssignmentsOfABucketAreBounded assigns hits again and again, by windows
// of a second that bring them without a report.
func TestAssignmentsOfABucketAreBounded(t *testing.T) {
	id := idOf("k", "v")
	w := &world{limits: map[string]*fakeLimit{id.text(): {requests: 100, window: time.Second}}}
	s := w.session()
	s.Report([]Usage{{ID: id, Denied: 10}})
	for range 30 {
		if _, err := act(s); err != nil {
			t.Fatal(err)
		}
		w.now += time.Second
		s.Tick()
	}
	if b := s.buckets[id.text()]; b.serial < 2*maxAssigned || len(b.assigned) != maxAssigned {
		t.Errorf("%d of %d assignments are kept, want %d", len(b.assigned), b.serial, maxAssigned)
	}
}

// TestReportsInTimeAreNotLate shows when a bucket that was late is so no more.
// Whole seconds and the varying way of a report do not make it late.
func TestReportsInTimeAreNotLate(t *testing.T) {
	b := &bucket{}
	b.delay(41*time.Second, 5*time.Second)
	for i := range onTimeReports {
		if b.late != 36*time.Second {
			t.Errorf("late by %v after %d reports, want 36s", b.late, i)
		}
		b.delay(5_400*time.Millisecond, 4*time.Second)
	}
	if b.late != 0 {
		t.Errorf("late by %v", b.late)
	}
}
