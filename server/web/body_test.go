package web

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/georld/rld/server"
)

// A string is read as it was, and bytes that are not UTF-8 as U+FFFD.
func TestTextLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Custom(func(t *rapid.T) []byte {
			return []byte(rapid.String().Draw(t, "text"))
		})).Draw(t, "bytes")
		var got string
		if err := json.Unmarshal(encode(string(b)), &got); err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		if want := strings.ToValidUTF8(string(b), ""); strings.ReplaceAll(got, "\ufffd", "") !=
			strings.ReplaceAll(want, "\ufffd", "") {
			t.Fatalf("%q is read as %q", b, got)
		}
	})
}

func TestRounding(t *testing.T) {
	tests := []struct {
		d               time.Duration
		seconds, millis uint64
		text            string
	}{
		{-1, 0, 0, "0s"},
		{0, 0, 0, "0s"},
		{1, 1, 1, "0.001s"},
		{time.Millisecond, 1, 1, "0.001s"},
		{time.Second, 1, 1_000, "1s"},
		{time.Second + 1, 2, 1_001, "1.001s"},
		{90*time.Second + 50*time.Millisecond, 91, 90_050, "90.050s"},
		{math.MaxInt64, 9_223_372_037, 9_223_372_036_855, "9223372036.855s"},
	}
	for _, tt := range tests {
		if text := durationText(tt.d); text != tt.text {
			t.Errorf("%d: %s, want %s", tt.d, text, tt.text)
		}
		if s, ms := server.Seconds(tt.d), server.Millis(tt.d); s != tt.seconds || ms != tt.millis {
			t.Errorf("%d: %d s and %d ms, want %d and %d", tt.d, s, ms, tt.seconds, tt.millis)
		}
	}
}
