package control

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
)

const (
	// packed is the first byte of packed data. No JSON form begins with it.
	packed = 1
	// packFrom is the least number of bytes that pack compresses.
	packFrom = 4 << 10
)

// pack returns a shorter form of a JSON form for the disk and for messages. The
// result depends on the version of the compressor: it is never hashed or
// compared.
func pack(data []byte) []byte {
	if len(data) < packFrom {
		return data
	}
	var b bytes.Buffer
	b.WriteByte(packed)
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(fmt.Sprintf("control: %d bytes cannot be packed: %v", len(data), err)) // a buffer takes everything
	}
	return b.Bytes()
}

// unpack returns the JSON form that pack was given, of at most a number of
// bytes.
func unpack(data []byte, most int) ([]byte, error) {
	if len(data) == 0 || data[0] != packed {
		return data, nil
	}
	out, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data[1:])), int64(most)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%d packed bytes: %w", len(data), err)
	case len(out) > most:
		return nil, fmt.Errorf("%d packed bytes: more than %d unpacked, want at most that", len(data), most)
	}
	return out, nil
}
