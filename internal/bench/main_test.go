package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be a child process, as bench is its own.
func TestMain(m *testing.M) {
	if roleOf(os.Args) != nil {
		main()
	}
	os.Exit(m.Run())
}

func TestOptions(t *testing.T) {
	o, err := parseOptions([]string{"-run", "^take", "-rounds", "3", "-json", "f"}, &strings.Builder{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{options: o}
	if !o.only.MatchString("take-1k") || o.only.MatchString("memory") || b.rounds(7) != 3 || o.json != "f" {
		t.Errorf("options %+v", o)
	}
	if o, err = parseOptions(nil, &strings.Builder{}); err != nil {
		t.Fatal(err)
	}
	b = &bench{options: o}
	if b.rounds(7) != 7 || b.rounds(5) != 5 || o.load != 2*time.Second {
		t.Errorf("without flags: options %+v, want the rounds of the line", o)
	}
	if o, err = parseOptions([]string{"-quick"}, &strings.Builder{}); err != nil {
		t.Fatal(err)
	}
	b = &bench{options: o}
	if b.rounds(7) != 1 || o.load >= time.Second {
		t.Errorf("-quick: options %+v, want one short round", o)
	}
}

func TestWrongUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-rounds -1", "-rounds -1, want 1 or more"},
		{"-run [", "-run: "},
		{"extra", `unexpected argument "extra"`},
		{"-run ^none$", "no line matches -run ^none$"},
	} {
		var out, err strings.Builder
		if code := run(t.Context(), strings.Fields(c.args), &out, &err); code != exitUsage {
			t.Errorf("%s: exit %d, want %d", c.args, code, exitUsage)
		}
		if !strings.Contains(err.String(), c.want) || out.Len() > 0 {
			t.Errorf("%s: printed %q and %q, want an error with %q", c.args, out.String(), err.String(), c.want)
		}
	}
}

func TestLinesHaveNamesOfTheirOwn(t *testing.T) {
	seen := make(map[string]bool)
	for _, l := range lines() {
		if seen[l.Name] || l.Name == "" || l.What == "" || l.measure == nil {
			t.Errorf("line %+v: want a name that no other has, and all the rest", l)
		}
		seen[l.Name] = true
	}
}

// One line in process, one of the processes of the network and one of rld
// alone: the whole way from the build to the table.
func TestQuickRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rows.json")
	args := []string{"-quick", "-json", file, "-run", "^(take-1k|unary-1|stream-8|start|xds-load)$"}
	var out, progress strings.Builder
	if code := run(t.Context(), args, &out, &progress); code != exitOK {
		t.Fatalf("exit %d:\n%s%s", code, &progress, &out)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 5 || !r.Quick || r.Machine != thisMachine() {
		t.Errorf("report %+v, want five rows of a quick run on this machine", r)
	}
	for _, row := range r.Rows {
		if row.Measured <= 0 || row.Beside <= 0 || row.Ratio != row.Measured/row.Beside {
			t.Errorf("row %+v: want figures and their ratio", row)
		}
		if !strings.Contains(out.String(), row.Unit.figure(row.Measured)) {
			t.Errorf("%s is not in the table:\n%s", row.Unit.figure(row.Measured), &out)
		}
	}
}

// A line that needs a program which is not here is left out, visibly, and the
// run does not fail.
func TestRunWithoutNginx(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	file := filepath.Join(t.TempDir(), "rows.json")
	var out, progress strings.Builder
	if code := run(t.Context(), []string{"-json", file, "-run", "^forward-auth$"}, &out, &progress); code != exitOK {
		t.Errorf("exit %d, want %d", code, exitOK)
	}
	for _, want := range []string{"LEFT OUT", "forward-auth was left out: there is no nginx here: apt-get install nginx-light\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &out)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(data), `"left_out": "there is no nginx here`) {
		t.Errorf("error %v, rows %s", err, data)
	}
}

func TestRunThatCannotServeReportsTheReason(t *testing.T) {
	rld := filepath.Join(t.TempDir(), "rld")
	script := "#!/bin/sh\necho 'rld: the port is taken' >&2\nexit 1\n"
	if err := os.WriteFile(rld, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	var out, progress strings.Builder
	args := []string{"-quick", "-rld", rld, "-run", "^(unary-1|stream-1|start)$"}
	if code := run(t.Context(), args, &out, &progress); code != exitMissed {
		t.Errorf("exit %d, want %d", code, exitMissed)
	}
	for _, name := range []string{"unary-1", "stream-1", "start"} {
		want := name + " failed: rld serve: exit status 1; it said:\nrld: the port is taken\n"
		if !strings.Contains(out.String(), want) {
			t.Errorf("printed\n%s\nwant\n%s", &out, want)
		}
	}
}
