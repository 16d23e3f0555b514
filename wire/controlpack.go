package wire

import (
	"bytes"
	"compress/flate"
	"io"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// Payloads of control frames are compressed from the least of these sizes up to
// the greatest. Larger ones have records, which are compressed already.
const (
	deflateFrom = 64
	deflateTo   = 64 << 10
	// mostInflated bounds how many times as large a payload is as its
	// compressed form.
	mostInflated = 8
)

// lastBlock ends each compressed payload, and is not sent: an empty block.
var lastBlock = []byte{0, 0, 0xff, 0xff}

// packedField is the number of ControlFrame.packed.
const packedField = 12

// deflater is a compressor and its output.
type deflater struct {
	out bytes.Buffer
	w   *flate.Writer
}

var deflaters = sync.Pool{New: func() any {
	d := new(deflater)
	d.w, _ = flate.NewWriterDict(&d.out, flate.DefaultCompression, []byte(dictionary)) // the level exists
	return d
}}

// deflated replaces the payload of a frame behind a number of bytes by its
// compressed form if that is shorter.
func deflated(frame []byte, at int) []byte {
	payload := frame[at:]
	if len(payload) < deflateFrom || len(payload) > deflateTo {
		return frame
	}
	d := deflaters.Get().(*deflater)
	defer deflaters.Put(d)
	d.out.Reset()
	d.w.Reset(&d.out)
	_, err := d.w.Write(payload)
	if err == nil {
		err = d.w.Close()
	}
	packed := bytes.TrimSuffix(d.out.Bytes(), lastBlock)
	short := protowire.AppendBytes(protowire.AppendTag(nil, packedField, protowire.BytesType), packed)
	if err != nil || len(short) >= len(payload) || len(payload) > mostInflated*len(packed) {
		return frame
	}
	return append(frame[:at], short...)
}

var inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// inflated returns a payload that was compressed.
func inflated(packed []byte) ([]byte, error) {
	r := inflaters.Get().(io.ReadCloser)
	defer inflaters.Put(r)
	if err := r.(flate.Resetter).Reset(io.MultiReader(bytes.NewReader(packed), bytes.NewReader(lastBlock)), []byte(dictionary)); err != nil {
		return nil, malformed("compressed payload: %v", err)
	}
	most := min(mostInflated*len(packed), MaxFrameBytes)
	out, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err != nil {
		return nil, malformed("compressed payload: %v", err)
	}
	if len(out) > most {
		return nil, &SizeError{What: "bytes before compression", Got: len(out), Max: most}
	}
	return out, nil
}

// dictionary has texts of control messages. Those that are most frequent are at
// its end. A change of it is a change of the encoding.
const dictionary = `"limits":{"rules":{"set":{"hash":"","bytes":,"data":"","sizes":[{"name":"","daemons":` +
	`"override":{"target":{"domain":"","rule":"","rule_id":"","window":},"setting":{"requests":` +
	`"in_force":{"version":{"recovery":{"number":0,"random":"},"index":},"from":,"over":` +
	`{"requests":[{"id":"","author":"operator","reason":"` +
	`{"founding":{"founders":["us-0","step":"accepted","accept","promise","prepare",` +
	`"ballot":{"round":1,"proposer":"00000000000000000000000000000000"},` +
	`"promised":{"round":0,"proposer":"00000000000000000000000000000000"},` +
	`"accepted":{"round":0,"proposer":"00000000000000000000000000000000"}},` +
	`"value":{"cluster":"","begun":17,"from":0,"regions":[{"name":"us","weight":333333,"founders":["` +
	`"founders":[{"name":"us-0","region":"us","daemon":"","run":"","raft":"","witness":true` +
	`{"ask":"","answer":{"ask":"","version":{"recovery":{"number":0,"random":"` +
	`{"format":2,"version":{"recovery":{"number":0,"random":""},"index":1},"first":1,` +
	`"from":{"recovery":{"number":0,"random":"0000000000000000"},"index":0},"changes":1,` +
	`"cluster":{"id":"","begun":17},"regions":[{"name":"us","generation":{"recovery":{"number":0,"random":""},"index":1},` +
	`"weight":333333,"founders":[""],"horizon":30000},{"name":"eu","generation":{"recovery":{"number":0,"random":""},"index":1},` +
	`"weight":333334,"founders":["","",""],"horizon":30000}],"genesis":[{"name":"eu","weight":333333},{"name":"us","weight":333334}],` +
	`"voters":[{"raft":"","daemon":"","region":"us"},{"raft":"","daemon":"","region":"eu","learner":true}],` +
	`"history":[{"request":"","version":{"recovery":{"number":0,"random":""},"index":1},"at":17,"author":"cluster init","text":"the cluster began"}],` +
	`"outcomes":[{"request":"","version":{"recovery":{"number":0,"random":""},"index":1}}]}` +
	`{"log":{"number":0,"random":"},"entries":[{"index":1},{"index":10,"voter":{"raft":"","daemon":"","region":"us","learner":true},"remove":true}]}`
