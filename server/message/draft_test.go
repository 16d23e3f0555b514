package message_test

import (
	"errors"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/message"
)

func entry(key, value string) string {
	b := message.AppendText(nil, 1<<3|message.Len, key)
	return string(message.AppendText(b, 2<<3|message.Len, value))
}

// TestDraftCollects reads a call of many descriptors, so that the memory
// behind the entries moves on the way, and one of few after it.
func TestDraftCollects(t *testing.T) {
	var d message.Draft
	defer d.Free()
	for _, count := range []int{200, 2} {
		d.Start()
		want := make([]rules.Descriptor, count)
		for i := range count {
			key := "k" + strconv.Itoa(i)
			d.Open()
			d.Entry(entry(key, "v"))
			d.Entry(entry(key, ""))
			want[i] = rules.Descriptor{Entries: []rules.Entry{{Key: key, Value: "v"}, {Key: key}}, Hits: 7}
			if i%2 == 1 {
				d.Hits(0)
				want[i].Hits = 0
			}
			d.Close()
		}
		if err := d.Finish(7); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, d.Call.Descriptors); diff != "" {
			t.Errorf("%d descriptors (-want +got):\n%s", count, diff)
		}
	}
}

func TestDraftBounds(t *testing.T) {
	for _, tt := range []struct {
		name string
		read func(d *message.Draft)
		want string
	}{
		{"as many descriptors as there may be", descriptors(node.MaxDescriptors, 1), ""},
		{"one too many", descriptors(node.MaxDescriptors+1, 1), "257 descriptors in one call, at most 256"},
		{"10,000", descriptors(10_000, 1), "10000 descriptors in one call, at most 256"},
		{"as many entries as there may be", descriptors(2, node.MaxEntries), ""},
		{"one too many entries", descriptors(2, node.MaxEntries+1), "descriptor 0: 33 entries, at most 32"},
		{"malformed entry", func(d *message.Draft) {
			descriptors(1, 1)(d)
			d.Open()
			d.Entry("\x0a\x05x")
			d.Close()
		}, "descriptor 1: malformed entry: message ends in the middle of a field"},
		{"first fault stays", func(d *message.Draft) {
			d.Fail(errors.New("first"))
			d.Open()
			d.FailHere("second")
			d.Close()
		}, "first"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var d message.Draft
			d.Start()
			defer d.Free()
			tt.read(&d)
			err := d.Finish(1)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if n := len(d.Call.Descriptors); n > node.MaxDescriptors {
				t.Errorf("%d descriptors were kept", n)
			}
			d.Start()
			if err := d.Finish(1); err != nil {
				t.Errorf("the next call inherits %q", err)
			}
		})
	}
}

// descriptors returns how to read a call of that many descriptors.
func descriptors(count, entries int) func(d *message.Draft) {
	return func(d *message.Draft) {
		for range count {
			if d.Open() == nil {
				continue
			}
			for range entries {
				d.Entry(entry("k", "v"))
			}
			d.Close()
		}
	}
}
