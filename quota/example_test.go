package quota_test

import (
	"fmt"

	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// A token bucket of 10 per second charges a burst and refills.
func ExampleFold() {
	f := quota.Of(&rules.Limit{
		Algorithm: rules.TokenBucket, Unit: rules.Second, Multiplier: 1, Requests: 10, Burst: 10,
	})
	var key quota.Cell
	now := int64(1_700_000_000_000)
	f.Charge(&key, nil, now, 10)
	fmt.Println(f.Used(&key, nil, now), "of", f.Capacity(), "used")

	r := f.Describe(&key, nil, now, 0, 3)
	fmt.Println(r.Remaining, "remain, 3 fit in", r.Retry, "ms")

	now += r.Retry
	fmt.Println(f.Used(&key, nil, now), "used then")
	// Output:
	// 10 of 10 used
	// 0 remain, 3 fit in 300 ms
	// 7 used then
}
