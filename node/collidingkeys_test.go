package node

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestCollidingKeys counts the hits of two keys with one hash and different
// rules of one kind and window length. If their limits are equal and have no
// budget, both together stay within it. Else each stays within its own, unless
// rights can move between daemons for the greater one.
func TestCollidingKeys(t *testing.T) {
	for _, algorithm := range []string{"fixed_window", "sliding_window", "sliding_log", "token_bucket", "leaky_bucket"} {
		t.Run(algorithm, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				c := rightsCluster(t, fixed100, "a1", "b1")
				limit := map[string]int{"one": 20, "other": rapid.SampledFrom([]int{5, 20, 60}).Draw(rt, "limit")}
				how := rapid.SampledFrom([]string{"", ", overage_budget: 0%"})
				budgets := [2]string{how.Draw(rt, "budget"), how.Draw(rt, "budget")}
				c.put(t, fmt.Sprintf("domain: d\ndescriptors:\n"+
					"  - {key: one, rate_limit: {unit: day, requests_per_unit: %d, algorithm: %s%s}}\n"+
					"  - {key: other, rate_limit: {unit: day, requests_per_unit: %d, algorithm: %s%s}}\n",
					limit["one"], algorithm, budgets[0], limit["other"], algorithm, budgets[1]))
				equal := limit["one"] == limit["other"]
				together, each := equal && budgets == [2]string{}, equal || budgets[0] == "" || budgets[1] == ""
				admitted, all := map[string]int{}, 0
				var call Call
				for range rapid.IntRange(1, 150).Draw(rt, "hits") {
					key := rapid.SampledFrom([]string{"one", "other"}).Draw(rt, "key")
					d := c.daemons[rapid.IntRange(0, 1).Draw(rt, "daemon")]
					c.resolve(t, &call, key)
					call.Hits()[0].Key = 7
					at := d.instant(c.now)
					d.node.Probe(at, call.Hits(), call.Statuses)
					c.front.Decide(&call)
					d.node.Charge(at, call.Hits(), call.Statuses)
					c.drain(d)
					if call.Decision.Allowed {
						admitted[key]++
						all++
					}
					if each && admitted[key] > limit[key] || together && all > limit[key] {
						rt.Fatalf("%d admitted of %q, whose limit is %d, and %d of both", admitted[key], key, limit[key], all)
					}
					c.pass(3 * time.Second) // all daemons know the hit
				}
			})
		})
	}
}
