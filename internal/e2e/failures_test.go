//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// failures is a test that keeps what it failed for. The logs of a cluster
// separate that from the end of the output, which is what CI shows.
type failures struct {
	testing.TB
	all []string
}

func (f *failures) Errorf(format string, args ...any) {
	f.Helper()
	f.all = append(f.all, fmt.Sprintf(format, args...))
	f.TB.Errorf(format, args...)
}

func (f *failures) Fatalf(format string, args ...any) {
	f.Helper()
	f.all = append(f.all, fmt.Sprintf(format, args...))
	f.TB.Fatalf(format, args...)
}

func (f *failures) Error(args ...any) {
	f.Helper()
	f.Errorf("%s", strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
}

func (f *failures) Fatal(args ...any) {
	f.Helper()
	f.Fatalf("%s", strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
}

// repeat logs the failures again.
func (f *failures) repeat() {
	if len(f.all) > 0 {
		f.Logf("it failed for:\n%s", strings.Join(f.all, "\n"))
	}
}
