package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestReadBackup: a backup is read as it was written, and refused with any
// change, cut, or addition.
func TestReadBackup(t *testing.T) {
	until := time.Date(2026, 1, 31, 18, 0, 0, 0, time.UTC)
	b := Backup{
		Format: BackupFormat, At: until.Add(-time.Hour), Cluster: "0123456789abcdef", Version: "7",
		Regions: []BackupRegion{{"eu", 400_000}, {"us", 600_000}}, Files: []LimitsFile{{"a.yaml", "domain: <edge>\n"}},
		Overrides: []BackupOverride{{Command: SetOverride, Until: &until, LimitsRequest: LimitsRequest{
			Rule: "user", Requests: new(uint32(0)), OverageBudget: new(0.02), Author: "ann",
		}}},
	}
	var err error
	if b.Hash, err = b.Sum(); err != nil {
		t.Fatal(err)
	}
	data, err := json.MarshalIndent(&b, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadBackup(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&b, got); diff != "" {
		t.Error(diff)
	}
	text := string(data)
	for _, tc := range []struct{ name, text, want string }{
		{"cut", text[:len(text)-9], "it is not JSON"},
		{"weight", strings.Replace(text, "600000", "600001", 1), "it is damaged, or was edited"},
		{"limit", strings.Replace(text, `"requests": 0`, `"requests": 9`, 1), "it is damaged, or was edited"},
		{"field", strings.Replace(text, `"cluster"`, `"clusters"`, 1), `unknown field "clusters"`},
		{"later format", strings.Replace(text, `"rld_backup": 1`, `"rld_backup": 2`, 1), "backup of format 2, of a later rld: this one reads format 1"},
		{"no format", strings.Replace(text, `"rld_backup": 1`, `"rld_backup": 0`, 1), "it is no backup of rld"},
		{"other value", "7", "it is not JSON"},
	} {
		if got, err := ReadBackup([]byte(tc.text)); got != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
	b.Regions = nil
	b.Hash, _ = b.Sum()
	data, _ = json.Marshal(&b)
	if _, err := ReadBackup(data); err == nil || !strings.Contains(err.Error(), "it has no regions") {
		t.Errorf("without regions: %v", err)
	}
}

// FuzzReadBackup: no input panics, and what is read has the hash that it
// states.
func FuzzReadBackup(f *testing.F) {
	f.Add([]byte(`{"rld_backup": 1, "regions": [{"name": "us", "weight_ppm": 1000000}], "hash": "00"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := ReadBackup(data)
		if err != nil {
			return
		}
		if sum, err := b.Sum(); err != nil || sum != b.Hash {
			t.Errorf("hash %s, stated %s, %v", sum, b.Hash, err)
		}
	})
}
