package journal

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// childFolder names, in the environment of a child process, the folder that it
// appends in until it is killed.
const childFolder = "RLD_JOURNAL_TEST_FOLDER"

// TestChild is the child process of TestKill: it appends ascending numbers,
// some at a time, and prints up to which one they are stored. From time to time
// it rewrites all of them. On its own it only prints that it is not a child.
func TestChild(t *testing.T) {
	dir := os.Getenv(childFolder)
	if dir == "" {
		t.Skip("not a child process")
	}
	j, c := mustOpen(t, dir)
	all := c.Records
	for round := 0; ; round++ {
		var batch [][]byte
		for range round%5 + 1 {
			batch = append(batch, fmt.Appendf(nil, "%d%s", len(all)+len(batch), strings.Repeat(" ", round*37%900)))
		}
		if err := j.Append(batch); err != nil {
			t.Fatal(err)
		}
		all = append(all, batch...)
		fmt.Fprintf(os.Stdout, "stored %d\n", len(all))
		if round%23 == 22 {
			if err := j.Rewrite(slices.Values(all)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestKill kills a process in the midst of its appends, again and again: all
// records that it reported as stored are there, and no record is that it did
// not write.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	known := 0
	for kill := range 6 {
		child := exec.Command(os.Args[0], "-test.run=^TestChild$")
		child.Env = append(os.Environ(), childFolder+"="+dir)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if n == 40+17*kill {
				if err := child.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			} // and continues from its last report
			if number, ok := strings.CutPrefix(lines.Text(), "stored "); ok {
				if known, err = strconv.Atoi(number); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := child.Wait(); err == nil || known == 0 {
			t.Fatalf("the child ended by itself after %d records", known)
		}
		_, c := mustOpenClosed(t, dir)
		if len(c.Records) < known || len(c.Records) > known+5 {
			t.Fatalf("kill %d: %d records, of which %d were said to be stored", kill, len(c.Records), known)
		}
		for i, r := range c.Records {
			if got := strings.TrimRight(string(r), " "); got != strconv.Itoa(i) {
				t.Fatalf("kill %d: record %d is %q", kill, i, got)
			}
		}
	}
	if known < 200 {
		t.Fatalf("%d records in all, want more", known)
	}
}
