package message

import (
	"strings"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that Codec falls back to
	"google.golang.org/grpc/mem"
)

// Reader is a message that reads itself. ReadMessage owns text and returns no
// error: the handler reports faults to the caller with its own text and status
// code.
type Reader interface{ ReadMessage(text string) }

// Encoded is a message that is bytes already. It is sent once; its memory is
// not the sender's anymore then.
type Encoded struct {
	bytes  []byte
	pooled *[]byte // instead of bytes, with the pool it goes back to
	pool   *Buffers
}

// Encode returns b as a message.
func Encode(b []byte) *Encoded { return &Encoded{bytes: b} }

// Codec is the gRPC codec of a server whose handlers take Readers and return
// Encoded messages. It hands every other message to the protobuf codec. The
// zero value is not usable: see NewCodec.
type Codec struct{ proto encoding.CodecV2 }

// NewCodec returns a codec, which is safe for concurrent use.
func NewCodec() Codec { return Codec{proto: encoding.GetCodecV2("proto")} }

// Name returns "proto": the bytes are the same.
func (Codec) Name() string { return "proto" }

// Marshal returns the bytes of an *Encoded or a proto.Message.
func (c Codec) Marshal(v any) (mem.BufferSlice, error) {
	e, ok := v.(*Encoded)
	if !ok {
		return c.proto.Marshal(v)
	}
	if e.pool == nil {
		return mem.BufferSlice{mem.SliceBuffer(e.bytes)}, nil
	}
	return mem.BufferSlice{mem.NewBuffer(e.pooled, e.pool)}, nil
}

// Unmarshal lets a Reader read data, or fills in a proto.Message.
func (c Codec) Unmarshal(data mem.BufferSlice, v any) error {
	r, ok := v.(Reader)
	if !ok {
		return c.proto.Unmarshal(data, v)
	}
	r.ReadMessage(text(data))
	return nil
}

// text copies data into one string.
func text(data mem.BufferSlice) string {
	if len(data) == 1 {
		return string(data[0].ReadOnlyData())
	}
	var b strings.Builder
	b.Grow(data.Len())
	for _, part := range data {
		b.Write(part.ReadOnlyData())
	}
	return b.String()
}
