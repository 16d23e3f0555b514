package limits

import (
	"fmt"
	"strings"
	"testing"
)

// TestFaultsAreBounded reads a file full of faults: the list is bounded, and
// warnings crowd out no errors.
func TestFaultsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("domain: d\ndescriptors:\n")
	for i := range 150 {
		fmt.Fprintf(&b, "- {key: 'a*%d'}\n", i)
	}
	for range 120 {
		b.WriteString("- {key: k, rate_limit: {}}\n")
	}
	_, faults := parseOne(b.String())
	if len(faults) != 202 {
		t.Fatalf("%d diagnostics, want 100 of each severity and two counts", len(faults))
	}
	// Of the 120 the first is no duplicate, so there are 239 errors.
	if got := faults[200].String() + faults[201].String(); got != "and 139 more errors\nwarning: and 50 more\n" {
		t.Errorf("the counts are %q", got)
	}
}
