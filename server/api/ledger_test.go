package api

import (
	"testing"

	"pgregory.net/rapid"
)

// Whatever comes in which order and however the wall clock leaps, no number is
// entered twice, and no more are remembered than may be.
func TestLedgerEntersOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := ledger{max: rapid.IntRange(1, 8).Draw(t, "max")}
		until := map[uint64]int64{} // of a number, as its token has it
		did := map[uint64]bool{}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			now := rapid.Int64Range(0, 10*refundGrace).Draw(t, "now")
			n := rapid.Uint64Range(0, 20).Draw(t, "number")
			if _, ok := until[n]; !ok {
				until[n] = rapid.Int64Range(0, 10*refundGrace).Draw(t, "until")
			}
			latest := max(g.now, now)
			late := until[n] < latest-refundGrace
			alive := 0
			for n := range did {
				if until[n] >= latest-refundGrace {
					alive++
				}
			}
			want := entered
			switch {
			case late:
				want = over
			case did[n]:
				want = already
			case alive == g.max:
				want = full
			}
			if got := g.enter(n, until[n], now); got != want {
				t.Fatalf("%d until %d at %d: %v, want %v", n, until[n], now, got, want)
			}
			if want == entered {
				did[n] = true
			}
			if len(g.seen) > g.max || len(g.seen) != len(g.ends) {
				t.Fatalf("remembers %d numbers and %d ends, at most %d", len(g.seen), len(g.ends), g.max)
			}
		}
	})
}

func TestTokenRoundTrip(t *testing.T) {
	s := newSealer()
	rapid.Check(t, func(t *rapid.T) {
		var in token
		for _, p := range []*uint64{
			(*uint64)(&in.incarnation), &in.number, &in.receipt.Key.Hi, &in.receipt.Key.Lo, (*uint64)(&in.receipt.ID),
			&in.receipt.Rule, &in.receipt.Hits,
		} {
			*p = rapid.Uint64().Draw(t, "number")
		}
		for _, p := range []*int64{&in.receipt.Window, &in.receipt.Length, &in.receipt.Until} {
			*p = rapid.Int64().Draw(t, "instant")
		}
		in.receipt.Alone = rapid.Bool().Draw(t, "alone")
		text := string(s.append([]byte("x"), &in))[1:]
		out, err := readToken(text)
		if err != nil || out != in || !s.issued(text) {
			t.Fatalf("%+v came back as %+v, %v, issued %v", in, out, err, s.issued(text))
		}
		i := rapid.IntRange(0, len(text)-1).Draw(t, "byte")
		bent := []byte(text)
		bent[i] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, err := readToken(string(bent)); err == nil && s.issued(string(bent)) {
			t.Fatalf("bent at byte %d it is still good", i)
		}
	})
}
