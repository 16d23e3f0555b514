package message_test

import (
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/georld/rld/server/message"
)

// kept is a message that keeps its text.
type kept struct{ text string }

func (k *kept) ReadMessage(text string) { k.text = text }

func TestCodecReads(t *testing.T) {
	c := message.NewCodec()
	data := mem.BufferSlice{mem.SliceBuffer("ab"), mem.SliceBuffer("c")}
	var k kept
	if err := c.Unmarshal(data, &k); err != nil || k.text != "abc" {
		t.Errorf("several buffers read as %q, error %v", k.text, err)
	}
	one := []byte("abc")
	if err := c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(one)}, &k); err != nil {
		t.Fatal(err)
	}
	copy(one, "xyz") // gRPC uses its buffers again.
	if k.text != "abc" {
		t.Errorf("the text changed to %q with the buffer", k.text)
	}
}

func TestCodecWritesEncoded(t *testing.T) {
	c := message.NewCodec()
	out, err := c.Marshal(message.Encode([]byte("abc")))
	if err != nil || string(out.Materialize()) != "abc" {
		t.Errorf("got %q, error %v", out.Materialize(), err)
	}
	out.Free()
}

func TestCodecFallsBackToProtobuf(t *testing.T) {
	c := message.NewCodec()
	out, err := c.Marshal(wrapperspb.String("abc"))
	if err != nil {
		t.Fatal(err)
	}
	in := new(wrapperspb.StringValue)
	if err := c.Unmarshal(out, in); err != nil || in.Value != "abc" {
		t.Errorf("got %q, error %v", in.Value, err)
	}
	if _, err := c.Marshal(3); err == nil {
		t.Error("a number was written as a message")
	}
	if c.Name() != "proto" {
		t.Errorf("the codec is named %q: clients would not know it", c.Name())
	}
}

// TestBuffersComeBack sends a pooled buffer and frees it as gRPC does when
// its bytes are on the wire.
func TestBuffersComeBack(t *testing.T) {
	var pool message.Buffers
	b := pool.Get(0)
	*b = append(*b, "abc"...)
	out, err := message.NewCodec().Marshal(message.EncodeFrom(b, &pool))
	if err != nil {
		t.Fatal(err)
	}
	out.Ref()
	out.Free()
	if got := string(out.Materialize()); got != "abc" {
		t.Fatalf("a buffer that is still referenced holds %q", got)
	}
	out.Free()
	if allocs := testing.AllocsPerRun(100, func() { pool.Put(pool.Get(0)) }); allocs > 0.5 {
		t.Errorf("%.1f allocations to take and give back a buffer", allocs)
	}
}

func TestBuffersKeepNoGiants(t *testing.T) {
	var pool message.Buffers
	giant := make([]byte, 1<<20)
	pool.Put(&giant)
	if b := pool.Get(0); cap(*b) >= 1<<20 {
		t.Errorf("the pool kept a buffer of %d bytes", cap(*b))
	}
	if b := pool.Get(1 << 20); len(*b) != 1<<20 {
		t.Errorf("asked for 1 MiB, got %d bytes", len(*b))
	}
}
