package replica

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/node"
)

// Whatever comes in which order and however the wall clock leaps, no number is
// entered twice, and no more are remembered than may be.
func TestRefundsEnterOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := Refunds{Max: rapid.IntRange(1, 8).Draw(t, "max")}
		until := map[uint64]int64{} // of a number, as its token has it
		did := map[uint64]bool{}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			now := rapid.Int64Range(0, 10*RefundGrace).Draw(t, "now")
			n := rapid.Uint64Range(0, 20).Draw(t, "number")
			if _, ok := until[n]; !ok {
				until[n] = rapid.Int64Range(0, 10*RefundGrace).Draw(t, "until")
			}
			latest := max(g.now, now)
			late := until[n] < latest-RefundGrace
			alive := 0
			for n := range did {
				if until[n] >= latest-RefundGrace {
					alive++
				}
			}
			want := RefundEntered
			switch {
			case late:
				want = RefundOver
			case did[n]:
				want = RefundAlready
			case alive == g.Max:
				want = RefundsFull
			}
			if got := g.Enter(&RefundToken{Number: n, Receipt: node.Receipt{Until: until[n]}}, now); got != want {
				t.Fatalf("%d until %d at %d: %v, want %v", n, until[n], now, got, want)
			}
			if want == RefundEntered {
				did[n] = true
			}
			if len(g.seen) > g.Max || len(g.seen) != len(g.ends) {
				t.Fatalf("remembers %d numbers and %d ends, at most %d", len(g.seen), len(g.ends), g.Max)
			}
		}
	})
}

func TestTokenRoundTrip(t *testing.T) {
	s := NewTokenSealer([16]byte{1, 2, 15: 3})
	rapid.Check(t, func(t *rapid.T) {
		var in RefundToken
		for _, p := range []*uint64{
			(*uint64)(&in.Incarnation), &in.Number, &in.Receipt.Key.Hi, &in.Receipt.Key.Lo, (*uint64)(&in.Receipt.ID),
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
