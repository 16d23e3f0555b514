package hlc_test

import (
	"fmt"
	"time"

	"github.com/georld/rld/hlc"
)

// A clock stamps an event after every stamp it observed, and its windows
// continue when the wall clock steps back.
func ExampleClock() {
	c := hlc.NewClock(hlc.Config{})
	start := time.UnixMilli(1_700_000_000_000).UnixNano()
	at := hlc.Instant{Mono: 0, Wall: start}

	fmt.Println(c.Now(at))
	if err := c.Observe(at, hlc.New(1_700_000_000_100, 7)); err != nil {
		fmt.Println(err)
	}
	fmt.Println(c.Now(at))
	fmt.Println(c.Observe(at, hlc.New(1_700_000_009_000, 0)))

	at = hlc.Instant{Mono: time.Second, Wall: start - int64(time.Minute)}
	fmt.Println(c.Millis(at), c.Offset())
	// Output:
	// 1700000000000.0
	// 1700000000100.8
	// hlc: stamp 1700000009000.0 of a peer is 9s ahead of the local reading 1700000000000, at most 250ms is adopted
	// 1700000000950 1m0.95s
}
