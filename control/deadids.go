package control

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// MaxDeadIDs bounds the dead ids of a record.
const MaxDeadIDs = 512

// DeadID is an id that ended: its disk was lost, or copied, or is older than it
// was. Nobody counts its messages. From and Until are Unix milliseconds.
type DeadID struct {
	ID ID `json:"id"`
	// From is when it holds nothing any more: in windows that start then or
	// later.
	From int64 `json:"from"`
	// Until is when the record drops it: no window that it may have held rights
	// in is left.
	Until int64 `json:"until"`
}

// stamp sets the times of the entry of a dead id, by the clock of the leader.
func (d DeadID) stamp(c *Config, wall int64) *DeadID {
	ahead := 2 * c.MaxOffset.Milliseconds()
	d.From = wall + ahead
	d.Until = d.From + c.Longest.Milliseconds() + ahead
	return &d
}

// DeadID returns the entry of a dead id, nil for none.
func (r *Record) DeadID(d ID) *DeadID {
	i, ok := slices.BinarySearchFunc(r.Dead, d, func(e DeadID, d ID) int { return e.ID.Compare(d) })
	if !ok {
		return nil
	}
	return &r.Dead[i]
}

// end adds a dead id.
func (r *Record) end(d *DeadID) error {
	switch {
	case r.DeadID(d.ID) != nil:
		return fmt.Errorf("the id %v is dead already", d.ID)
	case len(r.Dead) >= MaxDeadIDs:
		return fmt.Errorf("%d ids are dead: want at most %d: the record drops the next one at %s", len(r.Dead), MaxDeadIDs, stamped(r.nextDrop()))
	}
	r.Dead = append(slices.Clone(r.Dead), *d)
	slices.SortFunc(r.Dead, func(a, b DeadID) int { return a.ID.Compare(b.ID) })
	return nil
}

// dropDead drops the dead ids whose windows are over at a time.
func (r *Record) dropDead(at int64) {
	over := func(d DeadID) bool { return d.Until <= at }
	if slices.ContainsFunc(r.Dead, over) {
		r.Dead = slices.DeleteFunc(slices.Clone(r.Dead), over)
	}
}

// nextDrop returns the least Until.
func (r *Record) nextDrop() int64 {
	return slices.MinFunc(r.Dead, func(a, b DeadID) int { return cmp.Compare(a.Until, b.Until) }).Until
}

// validateDead returns an error if the dead ids break an invariant.
func (r *Record) validateDead() error {
	if len(r.Dead) > MaxDeadIDs {
		return fmt.Errorf("%d dead ids: want at most %d", len(r.Dead), MaxDeadIDs)
	}
	for i, d := range r.Dead {
		if i > 0 && r.Dead[i-1].ID.Compare(d.ID) >= 0 {
			return fmt.Errorf("dead id %v at place %d: want them in order, each once", d.ID, i)
		}
		if d.Until < d.From {
			return fmt.Errorf("dead id %v from %d until %d: want an end after the beginning", d.ID, d.From, d.Until)
		}
	}
	return nil
}

// describe returns the text of the entry.
func (d *DeadID) describe() string {
	return fmt.Sprintf("the id %v is dead: it holds nothing from %s on", d.ID, stamped(d.From))
}

// stamped returns the text of a time in Unix milliseconds.
func stamped(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano) }

// request returns the number of the command that declares the id dead, the same
// at every daemon: it is done once however many ask for it.
func (d *DeadID) request() Number {
	sum := sha256.Sum256(append([]byte("rld dead id\x00"), d.ID[:]...))
	return Number(binary.BigEndian.Uint64(sum[:]) | 1)
}

// Dead reports whether an id is dead, by the record or as far as this daemon
// has seen: nobody may count what such a daemon acknowledges, votes or grants.
func (n *Node) Dead(d ID) bool {
	_, here := n.runs.dead[d]
	return here || n.record != nil && n.record.DeadID(d) != nil
}

// Ended is a notice to a daemon whose id is dead.
type Ended struct {
	ID     ID     `json:"id"`
	Reason string `json:"reason"`
}

// giveUp gives the daemon a new id: its own is dead. It drops the items and
// messages of its voter that are not stored or sent yet.
func (r *runs) giveUp(why string) {
	n := r.node
	n.events.Add(OldDisk, "", why)
	if n.former == (ID{}) {
		n.former = n.self.id()
	}
	n.raft, n.stopped = nil, nil
	clear(r.doubts) // the proofs are for the former id
	n.self, n.disk.number, n.disk.began = storedSelf{Key: n.keys.next(), Run: n.self.Run}, 0, 0
	n.rights.holds = Version{}
	promises := func(m Message) bool { return m.Raft != nil || m.Founding != nil }
	n.out = slices.DeleteFunc(n.out, promises)
	for _, b := range []*batch{n.disk.flight, &n.disk.next} {
		if b != nil {
			b.items = slices.DeleteFunc(b.items, func(s stored) bool { return s.ofVoter() || s.Self != nil })
			b.messages = slices.DeleteFunc(b.messages, promises)
		}
	}
	self := n.self
	n.queue(stored{Self: &self}) // which ends the voter
	n.confirmation.begin()
}
