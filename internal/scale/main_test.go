package main

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestTable(t *testing.T) {
	var out strings.Builder
	if err := table(&out, 2, numbers{1, 3}, numbers{60}, 2*time.Second, 3*time.Second); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(out.String()), "\n")[2:]
	want := regexp.MustCompile(`^ +60 +[13] +\d+\.\d +\d+\.\d\d +\d+ ms +\d+ ms +\d+\.\d\d % +\d+\.\d % +\d+\.\d\d %$`)
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
