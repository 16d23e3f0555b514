package agent

import (
	"fmt"
	"slices"

	"github.com/georld/rld/internal/rendezvous"
	"github.com/georld/rld/quota/epoch"
)

// print is the fingerprint of an item.
type print = uint64

const (
	printEpoch = iota + 1
	printAck
	printVote
	printClaim
)

func itemPrint(kind, table uint64, id epoch.ID, by uint64) print {
	h := rendezvous.Mix(kind<<8 | table)
	h = rendezvous.Mix(h ^ uint64(id.Stamp))
	h = rendezvous.Mix(h + id.Proposer)
	return rendezvous.Mix(h + by*0x9e3779b97f4a7c15)
}

// demandPrint returns the fingerprint of the demand of a period.
func demandPrint(period uint64) print { return rendezvous.Mix(period) }

// genesisPrint returns the fingerprint of a genesis: that of the regions of a
// cluster, or of the daemons of a region. Daemons with different ones reject
// each other's messages.
func genesisPrint(of uint64, e *epoch.Epoch) uint64 {
	h := rendezvous.Mix(rendezvous.Mix(of) + uint64(e.Horizon) + 1)
	for _, m := range e.Members {
		h = rendezvous.Mix(h ^ m.ID)
		h = rendezvous.Mix(h + m.Amount)
	}
	return h
}

// maxNames bounds the remembered names of daemons.
const maxNames = 2 * epoch.MaxMembers

// names finds the names of participants for status pages.
type names struct {
	regions []Region
	daemons []named // of the own region, the latest last
}

// named is a participant with its name.
type named struct {
	id   uint64
	name string
}

// remember remembers the name of a daemon of the region.
func (n *names) remember(id uint64, name string) {
	d := named{id, name}
	if i := slices.Index(n.daemons, d); i >= 0 {
		return
	}
	if len(n.daemons) >= maxNames {
		n.daemons = slices.Delete(n.daemons, 0, 1)
	}
	n.daemons = append(n.daemons, d)
}

// of returns the name of a participant of a table, or its ID as text.
func (n *names) of(table int, id uint64) string {
	if table == regionTable {
		for _, r := range n.regions {
			if r.ID == id {
				return r.Name
			}
		}
		return fmt.Sprintf("region %016x", id)
	}
	i := slices.IndexFunc(n.daemons, func(d named) bool { return d.id == id })
	if i < 0 {
		return fmt.Sprintf("daemon %016x", id)
	}
	name := n.daemons[i].name
	if slices.ContainsFunc(n.daemons[i+1:], func(d named) bool { return d.name == name }) {
		return fmt.Sprintf("%s, formerly %016x", name, id)
	}
	return name
}

// daemon returns the participant that a daemon of the region is now, 0 if it is
// not known.
func (n *names) daemon(name string) uint64 {
	for i := len(n.daemons) - 1; i >= 0; i-- {
		if n.daemons[i].name == name {
			return n.daemons[i].id
		}
	}
	return 0
}
