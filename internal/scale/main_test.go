package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTable(t *testing.T) {
	var out strings.Builder
	if err := table(&out, clustersOf(2, numbers{1, 3}), numbers{60}, 1, 2*time.Second, 3*time.Second, 1); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(out.String()), "\n")[2:]
	want := regexp.MustCompile(`^ +60 +2 +(1.*\d ms +(\d+\.\d\d % +\d+\.\d % +){2}\d+\.\d\d %|3( +\d+\.\d+){3}( +\d+ ms){2}( +-){7})$`)
	if len(rows) != 2 {
		t.Fatalf("%d rows:\n%s", len(rows), out.String())
	}
	for _, r := range rows {
		if !want.MatchString(r) {
			t.Errorf("row %q", r)
		}
	}
}

func TestNumbers(t *testing.T) {
	var n numbers
	if err := n.Set("1,30"); err != nil || n.String() != "1,30" {
		t.Errorf("%v, %v", n, err)
	}
	for _, bad := range []string{"", "0", "3,", "-1", "x"} {
		if err := n.Set(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestClusters(t *testing.T) {
	if all := clustersOf(0, numbers{1, 30}); !slices.Equal(all, []cluster{{3, 1}, {3, 30}, {10, 3}}) {
		t.Errorf("%v", all)
	}
	if all := clustersOf(1, numbers{2}); !slices.Equal(all, []cluster{{1, 2}}) {
		t.Errorf("%v", all)
	}
}

func TestIdleTable(t *testing.T) {
	var out strings.Builder
	if err := idleTable(&out, []cluster{{2, 1}}); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`\n +2 +1 +\d\.\d +\d+ +\d+\n$`).MatchString(out.String()) {
		t.Errorf("%s", out.String())
	}
}

// TestSteps compares the former figures with those of the documentation.
func TestSteps(t *testing.T) {
	page, err := os.ReadFile("../../docs/simulation.md")
	if err != nil {
		t.Fatal(err)
	}
	if table := strings.TrimSpace(steps); !strings.Contains(string(page), "\n"+table+"\n") {
		t.Errorf("docs/simulation.md does not have the table of steps.md")
	}
}
