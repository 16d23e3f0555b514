package limits

import (
	"strings"
	"testing"
)

func TestSharedLogsAreShorter(t *testing.T) {
	const text = `domain: d
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 2000, algorithm: sliding_log%s}
`
	for _, tt := range []struct {
		name, extra string
		replicated  bool
		want        string // "" for none
	}{
		{"alone", "", false, ""},
		{"shared", "", true, "limits.yaml:4:51"},
		{"strict", ", consistency: strict", true, ""},
		{"of the node", ", scope: node", true, ""},
		{"of the region", ", scope: region", true, "every hit goes to the other daemons as a cell of its own, so at most 1000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := strings.Replace(text, "%s", tt.extra, 1)
			_, found := Parse([]File{{Name: "limits.yaml", Data: []byte(data)}}, Options{Replicated: tt.replicated})
			err := found.Err()
			if tt.want == "" && err != nil {
				t.Fatalf("refused: %v", err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
		})
	}
}
