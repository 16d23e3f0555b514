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
