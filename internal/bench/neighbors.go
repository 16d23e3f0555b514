package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/georld/rld/config"
	"github.com/georld/rld/daemon"
	"github.com/georld/rld/internal/bench/secured"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// roleNeighbors is this binary as the other daemons of a cluster.
const roleNeighbors = "as-neighbors"

// neighborRegions are the regions, three daemons each; the one that is
// measured lives in the first.
var neighborRegions = []string{"us", "eu", "ap"}

const (
	daemonsOfRegion = 3
	// neighborRate is the decisions a second of all neighbors together,
	// neighborKeys over how many keys; of these one in sharedKeys is asked for
	// in all regions, and each other in one.
	neighborRate = 1_000
	neighborKeys = 20_000
	sharedKeys   = 20
)

// neighborhood is the configuration of the neighbors' process.
type neighborhood struct {
	Peer, Swim     string // addresses of the daemon that is measured
	Secret, Limits string // files
	Certs          string // folder of the daemons' certificates, "" for plain streams
}

// measuredName is the name of the daemon that is measured.
const measuredName = "measured"

// neighborName is the name of a neighbor, by its number in its region.
func neighborName(region string, i int) string { return fmt.Sprintf("%s-%d", region, i) }

// clusterNames lists all nine daemons as REGION/NAME. The one that is measured
// has the first place of its region.
func clusterNames() []string {
	var all []string
	for _, region := range neighborRegions {
		for i := range daemonsOfRegion {
			all = append(all, region+"/"+neighborName(region, i))
		}
	}
	all[0] = neighborRegions[0] + "/" + measuredName
	return all
}

// serveNeighbors runs eight daemons, prints a line when all nine know each
// other, and sends them calls until its input ends.
func serveNeighbors(in io.Reader, out io.Writer) {
	lines := bufio.NewReader(in)
	var n neighborhood
	check(json.Unmarshal(must(lines.ReadBytes('\n')), &n))
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, lines) // its end is all there is to know
		cancel(nil)
	}()
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel(nil)
	handles := n.start(ctx, func(o daemon.Options) {
		running.Go(func() {
			if err := daemon.Run(ctx, o); err != nil {
				cancel(err)
			}
		})
	})
	must(fmt.Fprintln(out, "ready"))
	decide(ctx, handles)
	if err := context.Cause(ctx); err != context.Canceled {
		check(err)
	}
}

// start runs the daemons and returns when each knows all the others.
func (n *neighborhood) start(ctx context.Context, run func(daemon.Options)) []*daemon.Handle {
	started := make(chan *daemon.Handle, daemonsOfRegion)
	var all []*daemon.Handle
	// The measured daemon starts without seeds and learns its peers from their
	// calls. So do the first regions of the later ones.
	contacts := []config.Region{{Name: neighborRegions[0], Peers: []string{n.Peer}}}
	for i, region := range neighborRegions {
		seed := n.Swim
		if i > 0 {
			seed = ""
		}
		for j := range daemonsOfRegion {
			if i == 0 && j == 0 {
				continue // that is the one that is measured
			}
			c := n.config(region, neighborName(region, j), seed)
			c.Regions = contacts[:i]
			run(daemon.Options{Config: c, Started: func(h *daemon.Handle) { started <- h }})
			select {
			case h := <-started:
				all = append(all, h)
				if seed == "" {
					seed = h.Swim()
					contacts = append(contacts, config.Region{Name: region, Peers: []string{h.Peer()}})
				}
			case <-ctx.Done():
				check(context.Cause(ctx))
			}
		}
	}
	for _, h := range all {
		for len(h.Members()) <= len(all) || h.Ready() != nil {
			if sleep(ctx, readyPoll) != nil {
				check(context.Cause(ctx))
			}
		}
	}
	return all
}

// config is the settings of one of the daemons.
func (n *neighborhood) config(region, name, seed string) config.Config {
	c := config.Default()
	c.Region, c.Name = region, name
	for _, addr := range []*string{&c.GRPC.Addr, &c.HTTP.Addr, &c.Admin.Addr, &c.Peer.Addr, &c.Swim.Addr} {
		*addr = "127.0.0.1:0"
	}
	if seed != "" {
		c.Swim.Seeds = []string{seed}
	}
	c.Cluster.SecretFile, c.Limits.Path = n.Secret, n.Limits
	if n.Certs != "" {
		c.Peer.TLS = secured.PeerTLS(n.Certs, region, name)
	}
	return c
}

// decide asks the daemons at a steady rate until ctx ends.
func decide(ctx context.Context, handles []*daemon.Handle) {
	rng := rand.New(rand.NewPCG(1, 2))
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for range neighborRate / 100 {
			key := rng.IntN(neighborKeys)
			i := rng.IntN(len(handles))
			name := fmt.Sprintf("shared-%d", key)
			if key%sharedKeys != 0 {
				name = fmt.Sprintf("of-%d-%d", i/daemonsOfRegion, key)
			}
			c := node.Call{Domain: benchDomain, Descriptors: []rules.Descriptor{{
				Hits: 1, Entries: []rules.Entry{{Key: benchKey, Value: name}},
			}}}
			check(handles[i].Engine().Check(context.Background(), &c))
		}
	}
}
