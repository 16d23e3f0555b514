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
	if got := lacking.NoRights(); !strings.Contains(got, "give state.dir (--state-dir, RLD_STATE_DIR)") {
		t.Errorf("got %q", got)
	}
	lacking.State.Diskless = true
	if got := lacking.NoRights(); !strings.Contains(got, "give strict.replicas as the durable daemons of the region do") {
		t.Errorf("got %q", got)
	}
	lacking.Strict.Replicas = c.Strict.Replicas
	if got := lacking.NoRights(); got != "" {
		t.Errorf("diskless: got %q", got)
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

// The folder is looked at. A daemon makes a missing one.
func TestRightsFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(dir, "closed")
	if err := os.Mkdir(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	unwritable := "no such folder, and this user cannot make it: make it"
	if os.Geteuid() == 0 { // it writes everywhere
		unwritable = ""
	}
	for folder, want := range map[string]string{
		filepath.Join(closed, "none"): unwritable,
		"":                            "", dir: "", file: "state.dir: " + file + ": is a file, not a folder",
		filepath.Join(dir, "none"): "", filepath.Join(dir, "none", "below"): "",
		filepath.Join(file, "below"): "state.dir: " + file + "/below: not a directory",
	} {
		c := Config{State: State{Dir: folder}}
		warnings, err := c.CheckState()
		if missing := strings.Contains(folder, "none") && want == ""; missing != (len(warnings) > 0) {
			t.Errorf("%s: warnings %q", folder, warnings)
		}
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", folder, err, want)
		}
	}
}

// A fault of the folder is reported once, as a fault of its setting.
func TestCheckOfRights(t *testing.T) {
	flags := map[string]string{"region": "us", "name": "us-0", "strict-replicas": "us-0", "state-dir": t.TempDir()}
	c, err := Check(Sources{Flags: flags}, time.Now())
	if err != nil || len(c.Faults) > 0 {
		t.Errorf("got %v, %v", c.Faults, err)
	}
	file := filepath.Join(flags["state-dir"], "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	flags["state-dir"] = file
	c, err = Check(Sources{Flags: flags}, time.Now())
	const want = "state.dir (flag --state-dir): "
	if err != nil || len(c.Faults) != 1 || !strings.HasPrefix(c.Faults[0].Error(), want) {
		t.Errorf("got %v, %v; want one fault that begins with %q", c.Faults, err, want)
	}
}
