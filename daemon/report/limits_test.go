package report

import (
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/control"
)

// notOpened is a control log that could not be opened.
type notOpened struct{ fixed }

func (notOpened) Do(func(*control.Node)) bool { return false }

type limitsOfFiles struct{ Limits }

func (limitsOfFiles) State() LimitsState { return LimitsState{} }

// TestEndedOverride: the record still has an override whose time is over, as no
// leader dropped it. It is not listed.
func TestEndedOverride(t *testing.T) {
	at := time.UnixMilli(1_000_000)
	rec := &control.Record{}
	for _, until := range []int64{at.UnixMilli(), at.UnixMilli() + 1, 0} {
		rec.Limits.Overrides = append(rec.Limits.Overrides, control.Override{Start: 1, From: 1, Until: until})
	}
	r := New(Config{
		Control: notOpened{fixed{state: ControlState{Record: rec}}}, Limits: limitsOfFiles{}, LimitsFault: func() string { return "" },
		Wall: func() time.Time { return at },
	})
	if a := r.LimitsPage(); len(a.Overrides) != 2 || a.Overrides[1].Until != nil {
		t.Errorf("%+v: want the two that act", a.Overrides)
	}
}

// TestLimitsWithoutLog: a daemon that cannot open its control log does not know
// whether the cluster has begun. Its answers have the cause.
func TestLimitsWithoutLog(t *testing.T) {
	const want = "the control log of this daemon is not open: disk full"
	r := New(Config{
		Control: notOpened{fixed{state: ControlState{Fault: "disk full"}}}, Limits: limitsOfFiles{}, LimitsFault: func() string { return "" },
	})
	if a := r.LimitsPage(); a.Begun || a.Fault != want {
		t.Errorf("%+v: want the fault %q", a, want)
	}
	if _, err := Backup(r, time.Time{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("backup: %v, want %q", err, want)
	}
}
