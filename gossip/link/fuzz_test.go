package link

import (
	"testing"

	"google.golang.org/grpc/mem"

	"github.com/georld/rld/gossip"
)

// FuzzItem reads arbitrary bytes as an item of every kind: nothing panics, and
// accepted items can be written again.
func FuzzItem(f *testing.F) {
	g := greetingFrom(helloOf(1, "eu", "a"))
	hello, err := g.encode()
	if err != nil {
		f.Fatal(err)
	}
	members, _ := encodeMembers([]gossip.Member{g.hello.Member, helloOf(2, "eu", "b").Member})
	p := newPacker()
	defer p.close()
	packed := p.pack(make([]byte, minPacked))
	for _, it := range []item{
		{kind: kindHello, body: hello}, {kind: kindMembers, body: members}, {kind: kindFrame, body: hello}, packed,
	} {
		b, err := codec{}.Marshal(&it)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b.Materialize())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var it item
		// In two parts, as long messages arrive.
		data := mem.BufferSlice{mem.SliceBuffer(b[:len(b)/2]), mem.SliceBuffer(b[len(b)/2:])}
		if err := (codec{}).Unmarshal(data, &it); err != nil {
			t.Fatal(err)
		}
		defer it.free()
		if it.fault != nil {
			return
		}
		if g, err := decodeGreeting(it.body); err == nil && g.protocol == Version {
			again, err := g.encode()
			if err != nil {
				t.Fatal(err)
			}
			if h, err := decodeGreeting(again); err != nil || h.hello != g.hello {
				t.Fatalf("%+v became %+v, error %v", g.hello, h.hello, err)
			}
		}
		if all, err := decodeMembers(it.body, "eu"); err == nil {
			again, left := encodeMembers(all)
			if same, err := decodeMembers(again, "eu"); err != nil || left != 0 || len(same) != len(all) {
				t.Fatalf("%d members became %d, error %v", len(all), len(same), err)
			}
		}
		if frame, err := p.unpack(it.body, nil); err != nil && frame != nil {
			t.Fatal("both a frame and an error")
		}
	})
}
