package rls_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
)

func TestHeaders(t *testing.T) {
	type mode func(l *rules.Limit)
	quota := func(l *rules.Limit) { l.Quota = true }
	shadow := func(l *rules.Limit) { l.Shadow = true }
	under := func(n uint32, remaining uint64, modes ...mode) node.Status {
		l := limit(n)
		for _, m := range modes {
			m(l)
		}
		return node.Status{Limit: l, Remaining: remaining, Reset: time.Duration(n) * time.Second}
	}
	full := func(n uint32, retry time.Duration, modes ...mode) node.Status {
		st := under(n, 3, modes...)
		st.Over, st.Retry = true, retry
		return st
	}
	never := func(n uint32, modes ...mode) node.Status {
		st := full(n, 0, modes...)
		st.Never = true
		return st
	}
	delayed := under(5, 4)
	delayed.Delay = 1500*time.Microsecond + 1
	degraded := node.Status{Limit: limit(5), Remaining: 4, Reset: 5 * time.Second, Degraded: node.KeysFull}

	for _, tt := range []struct {
		name     string
		statuses []node.Status
		refused  bool
		want     [][2]string
	}{
		{
			"one limit",
			[]node.Status{under(5, 4)},
			false,
			[][2]string{{"L", "5"}, {"R", "4"}, {"T", "5"}},
		},
		{
			"the smallest remaining",
			[]node.Status{under(5, 4), under(9, 2), under(7, 3)},
			false,
			[][2]string{{"L", "9"}, {"R", "2"}, {"T", "9"}},
		},
		{
			"the first on a tie",
			[]node.Status{under(5, 2), under(9, 2)},
			false,
			[][2]string{{"L", "5"}, {"R", "2"}, {"T", "5"}},
		},
		{
			"the last one over",
			[]node.Status{full(5, time.Second), full(9, 2*time.Second), under(7, 0)},
			true,
			[][2]string{{"L", "9"}, {"R", "0"}, {"T", "9"}, {"retry-after", "2"}},
		},
		{
			"a shadowed one over counts as 0 remaining",
			[]node.Status{under(5, 1), full(9, time.Second, shadow)},
			false,
			[][2]string{{"L", "9"}, {"R", "0"}, {"T", "9"}},
		},
		{
			"a limit over beats a shadowed one",
			[]node.Status{full(5, time.Second), full(9, time.Second, shadow)},
			true,
			[][2]string{{"L", "5"}, {"R", "0"}, {"T", "5"}, {"retry-after", "1"}},
		},
		{
			"a quota over is no more than 0 remaining",
			[]node.Status{full(5, time.Second, quota), under(9, 0)},
			false,
			[][2]string{{"L", "5"}, {"R", "0"}, {"T", "5"}},
		},
		{
			"retry when the last limit has room",
			[]node.Status{full(5, 2500*time.Millisecond), full(9, time.Second)},
			true,
			[][2]string{{"L", "9"}, {"R", "0"}, {"T", "9"}, {"retry-after", "3"}},
		},
		{
			"retry when the first quota has room",
			[]node.Status{full(5, 9*time.Second, quota), full(9, 4*time.Second, quota)},
			true,
			[][2]string{{"L", "5"}, {"R", "0"}, {"T", "5"}, {"retry-after", "4"}},
		},
		{
			"a quota that fits does not count",
			[]node.Status{full(5, time.Second), full(9, time.Minute, quota), under(7, 1, quota)},
			true,
			[][2]string{{"L", "5"}, {"R", "0"}, {"T", "5"}, {"retry-after", "1"}},
		},
		{
			"never retry at once",
			[]node.Status{full(5, 0)},
			true,
			[][2]string{{"L", "5"}, {"R", "0"}, {"T", "5"}, {"retry-after", "1"}},
		},
		{
			"hits that never fit",
			[]node.Status{never(5)},
			true,
			[][2]string{{"L", "5"}, {"R", "0"}, {"T", "5"}},
		},
		{
			"one limit of two that never fits",
			[]node.Status{never(9), full(5, time.Second)},
			true,
			[][2]string{{"L", "5"}, {"R", "0"}, {"T", "5"}},
		},
		{
			"a shadowed one that never fits",
			[]node.Status{never(9, shadow), full(5, time.Second)},
			true,
			[][2]string{{"L", "5"}, {"R", "0"}, {"T", "5"}, {"retry-after", "1"}},
		},
		{
			"quotas that never fit",
			[]node.Status{never(5, quota), never(9, quota)},
			true,
			[][2]string{{"L", "5"}, {"R", "0"}, {"T", "5"}},
		},
		{
			"one quota of two that never fits",
			[]node.Status{never(5, quota), full(9, 4*time.Second, quota)},
			true,
			[][2]string{{"L", "5"}, {"R", "0"}, {"T", "5"}, {"retry-after", "4"}},
		},
		{
			"a quota that never fits beside one with room",
			[]node.Status{never(5, quota), full(9, 4*time.Second), under(7, 1, quota)},
			true,
			[][2]string{{"L", "9"}, {"R", "0"}, {"T", "9"}, {"retry-after", "4"}},
		},
		{"nothing matched", []node.Status{{}}, false, nil},
		{"unlimited alone", []node.Status{{Unlimited: true}}, false, nil},
		{
			"unlimited beside a limit",
			[]node.Status{{Unlimited: true}, under(5, 4)},
			false,
			[][2]string{{"L", "5"}, {"R", "4"}, {"T", "5"}},
		},
		{
			"delay",
			[]node.Status{under(5, 4), delayed},
			false,
			[][2]string{{"L", "5"}, {"R", "4"}, {"T", "5"}, {"x-rld-delay-ms", "2"}},
		},
		{
			"degraded",
			[]node.Status{under(5, 4), degraded},
			false,
			[][2]string{{"L", "5"}, {"R", "4"}, {"T", "5"}, {"x-rld-degraded", "keys_full"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			settings := server.Settings{RLS: server.RLS{Headers: true, LimitHeader: "L", RemainingHeader: "R", ResetHeader: "T"}}
			e := answers(tt.statuses...)
			e.decision.Allowed = !tt.refused
			if diff := cmp.Diff(tt.want, headers(t, e, settings)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func headers(t *testing.T, e *engine, settings server.Settings) (list [][2]string) {
	t.Helper()
	for _, h := range ask(t, e, settings, request(descriptor("k", "v"))).ResponseHeadersToAdd {
		list = append(list, [2]string{h.Key, h.Value})
	}
	return list
}

// TestHeadersOff shows which headers are sent although rate limit headers are
// off, and that a call that only the global shadow mode admits has no retry.
func TestHeadersOff(t *testing.T) {
	st := node.Status{Limit: limit(5), Over: true, Retry: time.Second, Degraded: node.CellsFull}
	off := server.DefaultSettings()
	degraded := [][2]string{{"retry-after", "1"}, {"x-rld-degraded", "cells_full"}}
	if diff := cmp.Diff(degraded, headers(t, answers(st), off)); diff != "" {
		t.Errorf("off (-want +got):\n%s", diff)
	}
	shadow := server.DefaultSettings()
	shadow.Headers, shadow.Shadow = true, true
	st.Degraded = node.NotDegraded
	want := [][2]string{{"RateLimit-Limit", "5"}, {"RateLimit-Remaining", "0"}, {"RateLimit-Reset", "0"}}
	if diff := cmp.Diff(want, headers(t, answers(st), shadow)); diff != "" {
		t.Errorf("global shadow mode (-want +got):\n%s", diff)
	}
}
