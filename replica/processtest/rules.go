package processtest

import (
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/breaker"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
)

// The constants of all scripts.
const (
	Shards         = 4
	Cells          = 64 // of a message of counts
	ForwardTimeout = 50 * time.Millisecond
	ForwardMargin  = 100 * time.Millisecond
)

var (
	Breaker = breaker.Config{Calls: 4, Window: 10 * time.Second, Open: time.Minute}
	Secret  = [rules.SecretBytes]byte{'s', 'i', 'm'}
	regions = []string{"ap", "eu", "us"}
)

// Rules returns the rules of all scripts: strict keys of two regions,
// one of them with regional reserves, plain limits, and rights.
func Rules() *rules.Set {
	strict := func(home string, on rules.OnFailure) *rules.Limit {
		return &rules.Limit{
			Unit: rules.Minute, Multiplier: 1, Requests: 1_000, Consistency: rules.Strict, Placed: rules.Owner,
			Home: home, OnFailure: on,
		}
	}
	shared := strict("ap", rules.Share)
	shared.ReserveShare = 30 * rules.Percent
	weights := []rules.Weight{
		{Region: "ap", Share: 20 * rules.Percent}, {Region: "eu", Share: 30 * rules.Percent}, {Region: "us", Share: 50 * rules.Percent},
	}
	set, err := rules.NewSet([]rules.DomainNode{{Name: "edge", Children: []rules.Node{
		{Key: "near", Limit: strict("us", rules.Deny)},
		{Key: "far", Limit: strict("eu", rules.Deny)},
		{Key: "shared", Limit: shared},
		{Key: "plain", Limit: &rules.Limit{Unit: rules.Minute, Multiplier: 1, Requests: 1_000}},
		{Key: "free", Limit: &rules.Limit{Unlimited: true}},
		{Key: "none"},
		{Key: "part", Limit: &rules.Limit{
			Unit: rules.Minute, Multiplier: 2, Requests: 1_000, Consistency: rules.Partition, Weights: weights,
		}},
		{Key: "hour", Limit: &rules.Limit{
			Unit: rules.Hour, Multiplier: 1, Requests: 1_000, Consistency: rules.Partition, Weights: weights,
		}},
	}}})
	if err != nil {
		panic(err)
	}
	return set
}

// Daemons returns the daemons of the region of the process.
func (x *Script) Daemons() []string {
	if x.alone {
		return []string{"us-0"}
	}
	return []string{"us-0", "us-1", "us-2"}
}

// Layout returns the layout, in which the process has the store number that it
// had when it began.
func (x *Script) Layout() *route.Layout {
	l := &route.Layout{Number: 1, Reserves: []route.Reserves{{Regions: len(regions)}}}
	for _, name := range regions {
		voters := []string{name + "-0"}
		if name == "us" {
			voters = x.Daemons()
		}
		l.Regions = append(l.Regions, route.Region{Name: name, Weight: 1, Replicas: voters})
	}
	l.Region("us").Generations = route.Generations(nil).With(route.Generation{Voter: route.NameHash("us-0"), Generation: x.store()})
	l.Pins = replica.Pins(Rules())
	return l
}

// store returns the store number that the process began with.
func (x *Script) store() uint64 {
	if x.stores == 0 {
		x.driver.Acceptor(func(a *quorum.Acceptor) { x.stores = a.Status().Generation })
	}
	return x.stores
}

// Peers are the peers that scripts name.
func Peers() []gossip.Peer {
	var all []gossip.Peer
	for i, name := range []string{"us-1", "us-2", "eu-0", "ap-0"} {
		all = append(all, gossip.Peer{ID: crdt.Incarnation(1_001 + i), Name: name, Region: name[:2], Ready: true})
	}
	return all
}
