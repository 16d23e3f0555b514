package server_test

import (
	"testing"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
)

func TestRetry(t *testing.T) {
	hard := func(over bool, s int) node.Status {
		return node.Status{Limit: &rules.Limit{}, Over: over, Retry: time.Duration(s) * time.Second}
	}
	mode := func(st node.Status, quota, shadow bool) node.Status {
		st.Limit.Quota, st.Limit.Shadow = quota, shadow
		return st
	}
	quota := func(over bool, s int) node.Status { return mode(hard(over, s), true, false) }
	endless := func(st node.Status) node.Status {
		st.Never, st.Retry, st.Reset = true, 0, st.Retry
		return st
	}
	tests := []struct {
		name     string
		statuses []node.Status
		want     int
	}{
		{"one", []node.Status{hard(true, 5)}, 5},
		{"the last of several", []node.Status{hard(true, 5), hard(true, 9), hard(false, 99)}, 9},
		{"no limit", []node.Status{{}, hard(true, 5)}, 5},
		{"shadow does not refuse", []node.Status{mode(hard(true, 50), false, true), hard(true, 5)}, 5},
		{"first of the quotas", []node.Status{quota(true, 50), quota(true, 7), quota(true, 9)}, 7},
		{"a quota with room refuses nothing", []node.Status{quota(true, 50), quota(false, 0), hard(true, 5)}, 5},
		{"quotas and a limit", []node.Status{quota(true, 50), hard(true, 5), quota(true, 40)}, 40},
		{"hits that never fit", []node.Status{endless(hard(true, 7)), hard(true, 5)}, 7},
		{"shadow that never fits", []node.Status{mode(endless(hard(true, 7)), false, true), hard(true, 5)}, 5},
		{"a quota that never fits is the last", []node.Status{endless(quota(true, 1)), quota(true, 9)}, 9},
		{"so in the other order", []node.Status{quota(true, 9), endless(quota(true, 1))}, 9},
		{"quotas that never fit", []node.Status{endless(quota(true, 9)), endless(quota(true, 4))}, 4},
		{"a quota in shadow mode has room", []node.Status{quota(true, 9), mode(quota(true, 7), true, true), hard(true, 5)}, 5},
		{"quota without a wait", []node.Status{quota(true, 0), quota(true, 40)}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := server.Retry(tt.statuses); got != time.Duration(tt.want)*time.Second {
				t.Errorf("retry %v, want %d s", got, tt.want)
			}
		})
	}
}

func TestNever(t *testing.T) {
	limit := func(quota, shadow, over, never bool) node.Status {
		return node.Status{Limit: &rules.Limit{Quota: quota, Shadow: shadow}, Over: over, Never: never}
	}
	under, over, endless := limit(false, false, false, false), limit(false, false, true, false),
		limit(false, false, true, true)
	left, spent, small := limit(true, false, false, false), limit(true, false, true, false),
		limit(true, false, true, true)
	shadow := limit(false, true, true, true)
	for _, tt := range []struct {
		name     string
		statuses []node.Status
		want     int
	}{
		{"nothing", nil, -1},
		{"none of them", []node.Status{{}, under, over, shadow}, -1},
		{"the first of the limits", []node.Status{over, endless, endless}, 1},
		{"a limit before the quotas", []node.Status{small, endless}, 1},
		{"all quotas", []node.Status{over, small, small}, 1},
		{"one quota has room", []node.Status{small, left, over}, -1},
		{"a quota in shadow mode", []node.Status{small, limit(true, true, true, true), over}, -1},
		{"one quota has room later", []node.Status{small, spent}, -1},
	} {
		if got := server.Never(tt.statuses); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}
