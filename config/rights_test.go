package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNoRights(t *testing.T) {
	alone, lacking, c := Default(), member(), member()
	withRights(&c)
	if got := alone.NoRights() + c.NoRights(); got != "" {
		t.Errorf("got %q", got)
	}
	if got := lacking.NoRights(); !strings.Contains(got, "give rights.dir (--rights-dir, RLD_RIGHTS_DIR)") {
		t.Errorf("got %q", got)
	}
}

// The own region counts, listed or not.
func TestRegionNames(t *testing.T) {
	alone, c := Default(), member()
	if got := alone.RegionNames(); got != nil {
		t.Errorf("alone: %v", got)
	}
	want := []string{"ap", "eu", "us"}
	if diff := cmp.Diff(want, c.RegionNames()); diff != "" {
		t.Error(diff)
	}
	c.Regions = c.Regions[1:]
	if diff := cmp.Diff(want, c.RegionNames()); diff != "" {
		t.Error(diff)
	}
}

// The folder is looked at, and that a daemon starts for the first time is no
// state to stay in.
func TestRightsFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		rights        Rights
		warning, want string
	}{
		{Rights{}, "", ""},
		{Rights{Dir: dir}, "", ""},
		{Rights{Dir: dir, FirstStart: true}, "remove it once the daemon has run", ""},
		{Rights{Dir: file}, "", "rights.dir: " + file + ": is a file, not a folder"},
		{Rights{Dir: filepath.Join(dir, "none")}, "", "no such folder: make it, on a disk that outlives restarts"},
		{Rights{Dir: filepath.Join(file, "below")}, "", "rights.dir: " + file + "/below: not a directory"},
	} {
		warnings, err := tc.rights.Check()
		if got := strings.Join(warnings, "\n"); !strings.Contains(got, tc.warning) || tc.warning == "" && got != "" {
			t.Errorf("%+v: warned %q, want %q", tc.rights, got, tc.warning)
		}
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: got %v, want %q", tc.rights, err, tc.want)
		}
	}
}

// A fault of the folder is reported once, as a fault of its setting.
func TestCheckOfRights(t *testing.T) {
	flags := map[string]string{"region": "us", "name": "us-0", "rights-daemons": "us-0", "rights-dir": t.TempDir()}
	c, err := Check(Sources{Flags: flags}, time.Now())
	if err != nil || len(c.Faults) > 0 {
		t.Errorf("got %v, %v", c.Faults, err)
	}
	flags["rights-dir"] = filepath.Join(flags["rights-dir"], "none")
	c, err = Check(Sources{Flags: flags}, time.Now())
	const want = "rights.dir (flag --rights-dir): "
	if err != nil || len(c.Faults) != 1 || !strings.HasPrefix(c.Faults[0].Error(), want) {
		t.Errorf("got %v, %v; want one fault that begins with %q", c.Faults, err, want)
	}
}
