package hlc

import (
	"testing"
	"time"
)

func TestNoAllocations(t *testing.T) {
	c := NewClock(Config{})
	at := Instant{Wall: noon}
	tests := []struct {
		name string
		call func()
	}{
		{"Millis", func() { c.Millis(at) }},
		{"Now", func() { c.Now(at) }},
		{"Observe", func() {
			if err := c.Observe(at, New(at.Wall/int64(time.Millisecond)+1, 1)); err != nil {
				t.Error(err)
			}
		}},
	}
	for _, tt := range tests {
		n := testing.AllocsPerRun(1_000, func() {
			at.Mono += time.Millisecond
			at.Wall += int64(time.Millisecond) + 1
			tt.call()
		})
		if n != 0 {
			t.Errorf("%s: %v allocations a call", tt.name, n)
		}
	}
}

// BenchmarkMillis is the cost a decision pays for its window: with the wall in
// step, with jitter between the two readings, and after a step back.
func BenchmarkMillis(b *testing.B) {
	cases := []struct {
		name        string
		step, every int64
	}{
		{"steady", 0, 0},
		{"jitter", 0, 40},
		{"stepped back", -int64(time.Hour), 0},
	}
	for _, bc := range cases {
		b.Run(bc.name, func(b *testing.B) {
			c := NewClock(Config{})
			at := Instant{Wall: noon}
			c.Millis(at)
			at.Wall += bc.step
			jitter := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				at.Mono += 100
				at.Wall += 100
				jitter = bc.every - jitter
				c.Millis(Instant{Mono: at.Mono, Wall: at.Wall + jitter})
			}
		})
	}
}

func BenchmarkNow(b *testing.B) {
	c := NewClock(Config{})
	at := Instant{Wall: noon}
	b.ReportAllocs()
	for b.Loop() {
		at.Mono += 100
		at.Wall += 100
		c.Now(at)
	}
}
