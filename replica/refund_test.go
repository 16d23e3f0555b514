package replica

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func TestTokenRoundTrip(t *testing.T) {
	s := NewTokenSealer([16]byte{1, 2, 15: 3})
	rapid.Check(t, func(t *rapid.T) {
		var in RefundToken
		for _, p := range []*uint64{
			(*uint64)(&in.Incarnation), &in.Receipt.Number, (*uint64)(&in.Receipt.Key), (*uint64)(&in.Receipt.ID),
			&in.Receipt.Rule, &in.Receipt.Hits,
		} {
			*p = rapid.Uint64().Draw(t, "number")
		}
		for _, p := range []*int64{&in.Receipt.Window, &in.Receipt.Length, &in.Receipt.Until} {
			*p = rapid.Int64().Draw(t, "instant")
		}
		in.Receipt.Alone, in.Receipt.Reserve = rapid.Bool().Draw(t, "alone"), rapid.Bool().Draw(t, "reserve")
		text := string(s.Append([]byte("x"), &in))[1:]
		out, err := s.Open(text, in.Incarnation)
		if err != nil || out != in {
			t.Fatalf("%+v came back as %+v, %v", in, out, err)
		}
		var foreign *ForeignTokenError
		if _, err := s.Open(text, in.Incarnation+1); !errors.As(err, &foreign) || foreign.Incarnation != in.Incarnation {
			t.Fatalf("at another process: %v", err)
		}
		i := rapid.IntRange(0, len(text)-1).Draw(t, "byte")
		bent := []byte(text)
		bent[i] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, err := s.Open(string(bent), in.Incarnation); err == nil {
			t.Fatalf("bent at byte %d it is still good", i)
		}
	})
}
