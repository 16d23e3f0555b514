package limits

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkParse reads files as operators write them. A start with 1,000 rules
// has a second in all, and a file of 100,000 lines is one of 20,000 rules.
func BenchmarkParse(b *testing.B) {
	for _, n := range []int{10, 1_000, 20_000} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			var text strings.Builder
			text.WriteString("domain: d\ndescriptors:\n")
			for i := range n {
				fmt.Fprintf(&text, "  - key: tenant\n    value: t%d # the customer\n    rate_limit:\n"+
					"      unit: minute\n      requests_per_unit: %d\n", i, i)
			}
			files := []File{{Name: "f.yaml", Data: []byte(text.String())}}
			b.SetBytes(int64(text.Len()))
			b.ReportAllocs()
			for b.Loop() {
				if set, faults := Parse(files, Options{}); set == nil {
					b.Fatal(faults)
				}
			}
		})
	}
}
