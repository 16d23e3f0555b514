package sim

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
	processShards  = 4
	processCells   = 64 // of a message of counts
	processForward = 50 * time.Millisecond
	processMargin  = 100 * time.Millisecond
)

var (
	processBreaker = breaker.Config{Calls: 4, Window: 10 * time.Second, Open: time.Minute}
	processSecret  = [rules.SecretBytes]byte{'s', 'i', 'm'}
	processRegions = []string{"ap", "eu", "us"}
)

// processRules returns the rules of all scripts: strict keys of two regions,
// one of them with regional reserves, plain limits, and rights.
func processRules() *rules.Set {
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

// daemons returns the daemons of the region of the process.
func (x *processScript) daemons() []string {
	if x.alone {
		return []string{"us-0"}
	}
	return []string{"us-0", "us-1", "us-2"}
}

// layout returns the layout, in which the process has the store number that it
// had when it began.
func (x *processScript) layout() *route.Layout {
	l := &route.Layout{Number: 1, Reserves: []route.Reserves{{Regions: len(processRegions)}}}
	for _, name := range processRegions {
		voters := []string{name + "-0"}
		if name == "us" {
			voters = x.daemons()
		}
		l.Regions = append(l.Regions, route.Region{Name: name, Weight: 1, Replicas: voters})
	}
	l.Region("us").Generations = route.Generations(nil).With(route.Generation{Voter: route.NameHash("us-0"), Generation: x.store()})
	l.Pins = replica.Pins(processRules())
	return l
}

// store returns the store number that the process began with.
func (x *processScript) store() uint64 {
	if x.stores == 0 {
		x.driver.acceptor(func(a *quorum.Acceptor) { x.stores = a.Status().Generation })
	}
	return x.stores
}

// processPeers are the peers that scripts name.
func processPeers() []gossip.Peer {
	var all []gossip.Peer
	for i, name := range []string{"us-1", "us-2", "eu-0", "ap-0"} {
		all = append(all, gossip.Peer{ID: crdt.Incarnation(1_001 + i), Name: name, Region: name[:2], Ready: true})
	}
	return all
}
