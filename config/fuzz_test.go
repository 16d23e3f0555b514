package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Whatever a settings file holds, loading it ends in a valid Config or in
// Faults, never in both or in a crash, and a fault is inside the file.
func FuzzSettingsFile(f *testing.F) {
	for _, seed := range []string{
		"", "max_keys: 5", "grpc: {addr: 127.0.0.1:1}\nlog:\n  level: warn\n", "a: &x [*x]",
		"<<: {a: b}", "[[[[[[[[", ": :",
		"http:\n  rate_limit_api:\n    domain: d\n    descriptors: [[{param: p}]]\n", "? [a]\n: b", "{]",
		"gateways:\n  e:\n    domain: d\n    deny_status: 403\n    descriptors: [[{key: k, client: {hops: 2}, when_missing: {constant: x}}]]\n",
		"---\n---\n", "drain: |\n  1s\n", "max_keys: !!binary x", "{a, b}", "limits: !x {path: y}", "\xff: \x00",
		"region: r\nregions:\n  r: {peers: [b:1]}\n  s: {peers: [a:1]}\npeer: {insecure: true}\n",
		"region: r\nswim: {seeds: [a:1]}\npeer: {tls: {cert: c}, addr: 127.0.0.1:8080}\n",
		"region: r\ncluster: {secret_file: s}\nswim: {seeds: [a:1, 'b:2']}\npeer: {tls: {cert: c, key: k, ca: a}}\n",
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
			printsTheSame(t, loaded, path)
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

// Settings from a file are the same after printing and loading.
func printsTheSame(t *testing.T, l *Loaded, path string) {
	text, err := l.Print(PrintOptions{Origins: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > maxSettingsBytes {
		return // a list on one line takes fewer bytes than on many
	}
	write(t, path, text)
	again, err := Load(Sources{File: path})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if diff := cmp.Diff(l.Config, again.Config, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-loaded +printed)\n%s\n%s", diff, text)
	}
}
