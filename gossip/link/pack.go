package link

import (
	"fmt"
	"runtime"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/grpc/mem"

	"github.com/georld/rld/wire"
)

// minPacked is the size of the smallest frame that is compressed, in bytes.
const minPacked = 256

// maxKept is the capacity of the largest buffer that a stream keeps, in bytes.
const maxKept = 256 << 10

// packer compresses the frames of streams across regions, and decompresses
// those of peers. Each frame is compressed by itself, so that a lost stream
// loses no state. A packer belongs to a Host and is not registered with gRPC,
// whose compressors are global: the servers for clients would accept zstd too.
// It is safe for concurrent use and has no goroutines.
type packer struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// newPacker returns a packer. Its memory is bounded by a few encoders and
// decoders, independent of the number of streams.
func newPacker() *packer {
	priorities := max(2, min(4, runtime.GOMAXPROCS(0)))
	encoder, err := zstd.NewWriter(nil,
		zstd.WithEncoderConcurrency(priorities),
		zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(512<<10),
		zstd.WithLowerEncoderMem(true),
		// A frame has a checksum of its own.
		zstd.WithEncoderCRC(false))
	if err != nil {
		panic("link: options of the encoder: " + err.Error())
	}
	decoder, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(priorities),
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(wire.MaxFrameBytes),
		zstd.WithDecoderMaxWindow(wire.MaxFrameBytes))
	if err != nil {
		panic("link: options of the decoder: " + err.Error())
	}
	return &packer{encoder: encoder, decoder: decoder}
}

// close releases the memory of the packer, which must not be used afterwards.
func (p *packer) close() { p.decoder.Close() }

// pack returns the item of a frame, compressed when that is shorter.
func (p *packer) pack(frame []byte) item {
	plain := item{kind: kindFrame, body: frame}
	if len(frame) < minPacked {
		return plain
	}
	pool := mem.DefaultBufferPool()
	buffer := pool.Get(len(frame))
	packed := p.encoder.EncodeAll(frame, (*buffer)[:0])
	if len(packed) >= len(frame) || &packed[0] != &(*buffer)[:1][0] {
		pool.Put(buffer)
		return plain
	}
	*buffer = packed
	return item{kind: kindPacked, body: packed, memory: mem.NewBuffer(buffer, pool)}
}

// unpack returns the frame of a compressed body, in buffer if it fits.
func (p *packer) unpack(body, buffer []byte) ([]byte, error) {
	frame, err := p.decoder.DecodeAll(body, buffer[:0])
	if err != nil {
		return nil, fmt.Errorf("packed frame of %d bytes: %w", len(body), err)
	}
	if len(frame) > wire.MaxFrameBytes {
		return nil, fmt.Errorf("packed frame of %d bytes, want at most %d", len(frame), wire.MaxFrameBytes)
	}
	return frame, nil
}
