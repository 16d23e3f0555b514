package agent

import (
	"fmt"

	"github.com/georld/rld/internal/rendezvous"

	"github.com/georld/rld/quota/epoch"
)

// regionID is a region as a participant of the regions' epochs.
func regionID(name string) uint64 { return rendezvous.Hash("region", name) }

// memberID is a daemon as a participant of its region's epochs. The upper half
// is of the name, the lower one of the life since a loss of memory, 0 before
// the first: a daemon that lost its record is another participant, and still
// known to be the same daemon.
func memberID(name string, generation uint64) uint64 {
	id := rendezvous.Hash("daemon", name) &^ 0xffffffff
	if generation != 0 {
		id |= max(rendezvous.Mix(generation)&0xffffffff, 1)
	}
	return id
}

// sameName reports whether two participants are lives of one daemon.
func sameName(a, b uint64) bool { return a>>32 == b>>32 }

// print is the fingerprint of an item: what a daemon says it has.
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

// genesisPrint is the fingerprint of a genesis: who derived another one must
// not take part.
func genesisPrint(e epoch.Epoch) uint64 {
	h := rendezvous.Mix(uint64(e.Horizon) + 1)
	for _, m := range e.Members {
		h = rendezvous.Mix(h ^ m.ID)
		h = rendezvous.Mix(h + m.Amount)
	}
	return h
}

// regionName returns the configured name of a region, or its number.
func (o *Agent) regionName(id uint64) string {
	for i := range o.cfg.Regions {
		if o.ids[i] == id {
			return o.cfg.Regions[i].Name
		}
	}
	return fmt.Sprintf("region %016x", id)
}

// daemonName returns the name of a daemon of the region, or its number.
func (o *Agent) daemonName(id uint64) string {
	if sameName(id, o.member) {
		return o.cfg.Name
	}
	for _, l := range o.links {
		if l.local && sameName(id, memberID(l.peer.Name, 0)) {
			return l.peer.Name
		}
	}
	for _, name := range o.names {
		if sameName(id, memberID(name, 0)) {
			return name
		}
	}
	return fmt.Sprintf("daemon %016x", id)
}

// maxNames bounds the names of daemons that are remembered for people.
const maxNames = 2 * epoch.MaxMembers

// remember keeps the name of a daemon of the region.
func (o *Agent) remember(name string) {
	for _, n := range o.names {
		if n == name {
			return
		}
	}
	if len(o.names) < maxNames {
		o.names = append(o.names, name)
	}
}
