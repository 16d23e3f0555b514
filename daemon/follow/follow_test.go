package follow

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// file is a source in memory. happened lists its changes.
type file struct {
	text     string
	happened string
}

func (f *file) source() Source[string] {
	return Source[string]{
		Read: func() ([]byte, string, error) {
			if f.text == "bad" {
				return nil, "", errors.New("is bad")
			}
			return []byte(f.text), "<" + f.text + ">", nil
		},
		Apply:   func(v string) { f.happened += v },
		Refused: func(err error) { f.happened += fmt.Sprintf("(%v)", err) },
	}
}

// Changes count once two readings agree, or at once, and each is handed over
// once. A bad file leaves the former content in force.
func TestFile(t *testing.T) {
	f := &file{text: "a"}
	follow, first, err := Open(f.source())
	if err != nil || first != "<a>" {
		t.Fatal(first, err)
	}
	for i, step := range []struct {
		text  string
		now   bool
		want  string
		fault bool
	}{
		{"a", false, "", false},
		{"b", false, "", false}, // it may be half of a write
		{"c", false, "", false},
		{"c", false, "<c>", false},
		{"c", false, "", false},
		{"c", true, "", false},
		{"bad", false, "", false},
		{"bad", false, "(is bad)", true},
		{"bad", false, "", true},
		{"c", false, "", true},
		{"c", false, "<c>", false},
		{"bad", true, "(is bad)", true},
		{"d", true, "<d>", false},
	} {
		f.text, f.happened = step.text, ""
		follow.Look(step.now)
		if f.happened != step.want || (follow.Fault() != nil) != step.fault {
			t.Errorf("step %d, %s: %q and fault %v, want %q", i, step.text, f.happened, follow.Fault(), step.want)
		}
	}
	if _, _, err := Open((&file{text: "bad"}).source()); err == nil {
		t.Error("a bad file opens")
	}
}

func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		n := 0
		Every(ctx, time.Second, func() { n++ })
		if n != 3 {
			t.Errorf("%d calls, want 3", n)
		}
	})
}
