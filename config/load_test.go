package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestLoad runs the scripts in testdata/load. A script gives the sources of
// one load line by line and expects what differs from the default, with its
// origin, then the warnings, or else the faults:
//
//	load
//	flag max-keys=5
//	env RLD_DRAIN=3s
//	file
//	limits:
//	  path: x
//	----
//	limits.path      x   rld.yaml:2
//	...
func TestLoad(t *testing.T) {
	datadriven.Walk(t, "testdata/load", func(t *testing.T, path string) {
		dir := t.TempDir()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "load" {
				d.Fatalf(t, "unknown command %q", d.Cmd)
			}
			s := sources(t, d, dir)
			loaded, err := Load(s)
			var out strings.Builder
			if err != nil {
				if loaded != nil {
					t.Error("both a value and an error")
				}
				fmt.Fprintln(&out, err)
			} else {
				describe(&out, loaded)
			}
			return strings.ReplaceAll(out.String(), dir+string(filepath.Separator), "")
		})
	})
}

func sources(t *testing.T, d *datadriven.TestData, dir string) Sources {
	t.Helper()
	s := Sources{Flags: make(map[string]string)}
	lines := strings.SplitAfter(d.Input+"\n", "\n")
	for i, line := range lines {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case "flag":
			name, value, _ := strings.Cut(rest, "=")
			s.Flags[name] = value
		case "env":
			s.Environ = append(s.Environ, rest)
		case "file":
			s.File = filepath.Join(dir, "rld.yaml")
			text := strings.ReplaceAll(strings.Join(lines[i+1:], ""), "<tab>", "\t")
			if err := os.WriteFile(s.File, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return s
		case "":
		default:
			d.Fatalf(t, "a line of a load begins with flag, env or file, not %q", verb)
		}
	}
	return s
}

func describe(out *strings.Builder, l *Loaded) {
	for _, s := range l.Settings() {
		if s.Origin != OriginDefault {
			fmt.Fprintf(out, "%-28s %-28s %s\n", s.Name, s.Value, s.Origin)
		}
	}
	for _, w := range l.Warnings {
		fmt.Fprintf(out, "warning: %s\n", w)
	}
	if out.Len() == 0 {
		out.WriteString("all default\n")
	}
}

func TestSettingsFileThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, make([]byte, maxSettingsBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "missing.yaml")
	for _, tc := range []struct {
		name string
		s    Sources
		want string
	}{
		{"missing", Sources{File: missing}, missing + ": no such file or directory"},
		{
			"missing, by variable",
			Sources{Environ: []string{"RLD_CONFIG=" + missing}},
			missing + ": no such file or directory",
		},
		{"folder", Sources{File: dir}, dir + ": is a folder, not a regular file"},
		{"too large", Sources{File: large}, large + ": is larger than the 65536 bytes that are read at most"},
	} {
		_, err := Load(tc.s)
		if err == nil || err.Error() != "settings file: "+tc.want {
			t.Errorf("%s: got %v, want %q", tc.name, err, "settings file: "+tc.want)
		}
	}
}

func TestFaultsAreFoundByErrorsAs(t *testing.T) {
	_, err := Load(Sources{Flags: map[string]string{"max-keys": "0", "shards": "3"}})
	var all Faults
	if !errors.As(err, &all) || len(all) != 2 {
		t.Fatalf("got %#v, want two faults", err)
	}
	var one *Fault
	if !errors.As(err, &one) || one.Field != "max_keys" || one.Origin != "flag --max-keys" {
		t.Errorf("got %+v, want the fault of max_keys", one)
	}
}
