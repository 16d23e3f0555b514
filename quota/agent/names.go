package agent

import (
	"fmt"
	"slices"

	"github.com/georld/rld/internal/rendezvous"
	"github.com/georld/rld/quota/epoch"
)

// regionID returns the participant ID of a region.
func regionID(name string) uint64 { return rendezvous.Hash("region", name) }

// memberID returns the participant ID of a daemon. The upper half is a hash of
// the name. The lower half is that of the generation since the daemon lost its
// record, 0 before the first loss: a daemon without its record is another
// participant but keeps its name.
func memberID(name string, generation uint64) uint64 {
	id := rendezvous.Hash("daemon", name) &^ 0xffffffff
	if generation != 0 {
		id |= max(rendezvous.Mix(generation)&0xffffffff, 1)
	}
	return id
}

// sameName reports whether two participants are generations of one daemon.
func sameName(a, b uint64) bool { return a>>32 == b>>32 }

// later reports whether a participant is of a later generation than the first:
// its daemon lost its record, and has a fence.
func later(member uint64) bool { return uint32(member) != 0 }

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

// genesisPrint returns the fingerprint of a genesis. Daemons with different
// ones reject each other's messages.
func genesisPrint(e epoch.Epoch) uint64 {
	h := rendezvous.Mix(uint64(e.Horizon) + 1)
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
	daemons []string // of the own region
}

// remember remembers the name of a daemon of the region.
func (n *names) remember(name string) {
	if len(n.daemons) < maxNames && !slices.Contains(n.daemons, name) {
		n.daemons = append(n.daemons, name)
	}
}

// of returns the name of a participant of a table, or its ID as text.
func (n *names) of(table int, id uint64) string {
	if table == regionTable {
		for _, r := range n.regions {
			if regionID(r.Name) == id {
				return r.Name
			}
		}
		return fmt.Sprintf("region %016x", id)
	}
	for _, name := range n.daemons {
		if sameName(id, memberID(name, 0)) {
			return name
		}
	}
	return fmt.Sprintf("daemon %016x", id)
}
