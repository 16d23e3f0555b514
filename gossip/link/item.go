package link

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/wire"
)

// maxItem bounds a message of a stream, in bytes. A longer one is rejected by
// its announced length, before any of it is stored.
const maxItem = wire.MaxFrameBytes + 1<<10

// kind is the number of the field of a PeerItem that is set.
type kind protowire.Number

// The kinds of items.
const (
	kindHello   kind = 1
	kindFrame   kind = 2
	kindPacked  kind = 3
	kindMembers kind = 4
	kindProof   kind = 5
)

// String returns the name of the field in the proto file.
func (k kind) String() string {
	fields := (*rldv1.PeerItem)(nil).ProtoReflect().Descriptor().Fields()
	if f := fields.ByNumber(protowire.Number(k)); f != nil {
		return string(f.Name())
	}
	return fmt.Sprintf("field %d", int(k))
}

// item is a PeerItem. Its body is not copied, except when it arrived in several
// parts.
type item struct {
	kind   kind
	body   []byte     // of the one field
	memory mem.Buffer // the buffer that holds body; nil for memory of its own
	fault  error      // of an item that was received and is malformed
}

// free releases the memory of a received item, and with it the body.
func (it *item) free() {
	if it.memory != nil {
		it.memory.Free()
	}
	*it = item{}
}

// codec is the gRPC codec of items.
type codec struct{}

var _ encoding.CodecV2 = codec{}

// Name returns "proto", since the bytes are those of a PeerItem.
func (codec) Name() string { return "proto" }

// Marshal returns the bytes of an *item. The body is not copied.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	it, ok := v.(*item)
	if !ok {
		return nil, fmt.Errorf("link: cannot send a %T", v)
	}
	head := make([]byte, 0, 1+5)
	head = protowire.AppendTag(head, protowire.Number(it.kind), protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(len(it.body)))
	body := it.memory
	if body == nil {
		body = mem.SliceBuffer(it.body)
	}
	return mem.BufferSlice{mem.SliceBuffer(head), body}, nil
}

// Unmarshal fills in an *item. A malformed one gets a fault, so that a stream
// can distinguish protocol errors from failures.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	it, ok := v.(*item)
	if !ok {
		return fmt.Errorf("link: cannot receive a %T", v)
	}
	memory := data.MaterializeToBuffer(mem.DefaultBufferPool())
	*it = item{memory: memory}
	b := memory.ReadOnlyData()
	num, typ, n := protowire.ConsumeTag(b)
	if n < 0 {
		it.fault = fmt.Errorf("item of %d bytes that is no PeerItem: %w", len(b), protowire.ParseError(n))
		return nil
	}
	body, size := protowire.ConsumeBytes(b[n:])
	if typ != protowire.BytesType || size != len(b)-n {
		it.fault = fmt.Errorf("item of %d bytes, want exactly one field of bytes in a PeerItem", len(b))
		return nil
	}
	it.kind, it.body = kind(num), body
	return nil
}
