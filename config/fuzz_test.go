package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Whatever a settings file holds, loading it ends in a valid Config or in
// Faults, never in both or in a crash, and a fault is inside the file.
func FuzzSettingsFile(f *testing.F) {
	for _, seed := range []string{
		"", "max_keys: 5", "grpc: {addr: 127.0.0.1:1}\nlog:\n  level: warn\n", "a: &x [*x]",
		"<<: {a: b}", "[[[[[[[[", ": :",
		"http:\n  rate_limit_api:\n    domain: d\n    descriptors: [[{param: p}]]\n", "? [a]\n: b", "{]",
		"---\n---\n", "drain: |\n  1s\n", "max_keys: !!binary x", "{a, b}", "limits: !x {path: y}", "\xff: \x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "rld.yaml")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if len(data) > maxSettingsBytes {
			t.Skip()
		}
		loaded, err := Load(Sources{File: path})
		if err == nil {
			if verr := loaded.Config.Validate(); verr != nil {
				t.Errorf("loaded, and not valid: %v", verr)
			}
			return
		}
		var faults Faults
		if loaded != nil || !errors.As(err, &faults) {
			t.Fatalf("got %v and %#v, want Faults alone", loaded, err)
		}
		for _, fault := range faults {
			if fault.File != path || fault.Line < 1 || fault.Column < 1 || fault.Problem == "" {
				t.Errorf("a fault without a place or a problem: %+v", fault)
			}
			_ = fault.Error()
		}
	})
}
