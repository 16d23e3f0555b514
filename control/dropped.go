package control

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
)

const (
	// maxDropped bounds the dropped commands of a record, and those that a
	// daemon has to report, maxDroppedBytes their JSON form.
	maxDropped      = 100
	maxDroppedBytes = 256 << 10
	// dropsAtOnce bounds those that a daemon reports at a time, and the
	// emergency overrides that it submits.
	dropsAtOnce = 4
)

// dropped are the commands that this daemon knows to be dropped by a recovery,
// and that the record does not name yet. They survive a restart.
type dropped struct {
	node *Node
	all  []Command
}

// droppedBy returns the commands of the record that a later one lacks, and does
// not name as dropped.
func (r *Record) droppedBy(next *Record) []Command {
	var all []Command
	for _, c := range slices.Concat(r.Dropped, r.History) {
		o := next.Outcome(c.Request)
		has := next.Contains(c.Version) || o != nil && o.Version == c.Version
		if !has && !slices.ContainsFunc(next.Dropped, func(o Command) bool { return o.Request == c.Request }) {
			all = append(all, c)
		}
	}
	return all
}

// add notes dropped commands.
func (x *dropped) add(commands []Command) {
	if len(commands) > 0 {
		x.all = latest(slices.Concat(x.all, commands), maxDropped, maxDroppedBytes)
		x.store()
	}
}

// store stores the commands that are left.
func (x *dropped) store() {
	x.node.queue(stored{Dropped: &x.all})
}

// turn asks the leader to name the commands in the record.
func (x *dropped) turn() {
	n := x.node
	if n.record == nil || len(x.all) == 0 {
		return
	}
	left := slices.DeleteFunc(slices.Clone(x.all), func(c Command) bool { return n.record.Outcome(c.report()) != nil })
	if len(left) < len(x.all) {
		x.all = left
		x.store()
	}
	for i := range left[:min(len(left), dropsAtOnce)] {
		c := &left[i]
		if id := c.report(); n.requests.index(id) < 0 {
			r := Request{ID: id, Author: "recovery", Change: Change{Dropped: c}}
			n.requests.own = append(n.requests.own, ownRequest{Request: r, due: n.at, silent: true})
		}
	}
}

// report returns the number of the command that reports this one as dropped, at
// every daemon the same.
func (c *Command) report() Number {
	data, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("control: a command has no JSON form: %v", err)) // all its types have one
	}
	sum := sha256.Sum256(data)
	return Number(binary.BigEndian.Uint64(sum[:]) | 1)
}

// drop names a command as dropped by a recovery.
func (r *Record) drop(c *Command) error {
	if r.Contains(c.Version) {
		return fmt.Errorf("command %v of version %v is in the record: want one that a recovery dropped", c.Request, c.Version)
	}
	if err := checkTexts(c.Author, c.Reason, c.Text); err != nil {
		return err
	}
	r.Dropped = latest(append(slices.Clone(r.Dropped), *c), maxDropped, maxDroppedBytes)
	return nil
}
