package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// NextFormat is the state of the format that may follow that of the record.
type NextFormat struct {
	// Format is the one that all daemons have read since a time in Unix
	// milliseconds, as the leaders saw them, 0 while one of them does not.
	Format int   `json:"format,omitempty"`
	Since  int64 `json:"since,omitempty"`
	// Held is the version of the command that holds the present format, zero
	// for none.
	Held Version `json:"held,omitzero"`
}

// FormatOp is the operation of a FormatChange.
type FormatOp string

// The operations. A leader submits the first three, an operator the others.
const (
	// NextReadable notes that all daemons read a later format, and NextUnread
	// that one of them does not any more.
	NextReadable FormatOp = "readable"
	NextUnread   FormatOp = "unread"
	RaiseFormat  FormatOp = "raise"
	// HoldFormat keeps the present format until UnholdFormat.
	HoldFormat   FormatOp = "hold"
	UnholdFormat FormatOp = "unhold"
)

// FormatChange changes the format of the record, or the state of the next one.
type FormatChange struct {
	Op FormatOp `json:"op"`
	// Format is the later one of the first three operations.
	Format int `json:"format,omitempty"`
}

// maxFormat bounds the format of a record.
const maxFormat = 1 << 16

// FormatError is the error of a record or an entry of a format that is newer
// than this daemon reads.
type FormatError struct {
	What          string
	Format, Reads int
}

// Error returns a text with both formats.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%s of format %d: this version of rld reads formats up to %d", e.What, e.Format, e.Reads)
}

// silent reports whether the change is none of the history.
func (c *FormatChange) silent() bool { return c.Op == NextReadable || c.Op == NextUnread }

// describe returns the text of the change.
func (c *FormatChange) describe() string {
	switch c.Op {
	case NextReadable:
		return fmt.Sprintf("all daemons read format %d", c.Format)
	case NextUnread:
		return fmt.Sprintf("not all daemons read format %d", c.Format)
	case RaiseFormat:
		return fmt.Sprintf("the record has format %d", c.Format)
	case HoldFormat:
		return "the format of the record is held"
	default:
		return "the format of the record is not held any more"
	}
}

// makes returns the format of a record after the change, from that before.
func (c *Change) makes(format int) int {
	if c.Format != nil && c.Format.Op == RaiseFormat {
		return c.Format.Format
	}
	return format
}

// changeFormat makes the change at a time in Unix milliseconds.
func (r *Record) changeFormat(c *FormatChange, at int64) error {
	next := &r.Next
	switch {
	case c.Op == NextReadable && c.Format > r.Format && c.Format <= maxFormat:
		next.Format, next.Since = c.Format, at
	case c.Op == NextUnread && c.Format == next.Format && c.Format != 0:
		next.Format, next.Since = 0, 0
	case c.Op == RaiseFormat && c.Format == next.Format && c.Format != 0 && next.Held == (Version{}):
		r.Format, r.Next = c.Format, NextFormat{}
	case c.Op == HoldFormat:
		next.Held = r.Version
	case c.Op == UnholdFormat:
		next.Held = Version{}
	default:
		return fmt.Errorf("%s format %d of a record of format %d, whose next one is %d", shorten(string(c.Op), 16), c.Format, r.Format, next.Format)
	}
	return nil
}

// validateNext returns an error if the formats break an invariant.
func (r *Record) validateNext() error {
	if n := r.Next.Format; n != 0 && n <= r.Format || max(n, r.Format) > maxFormat {
		return fmt.Errorf("format %d after format %d: want a later one, or none", n, r.Format)
	}
	return nil
}

// readEntry reads an entry that follows the record, for a daemon that reads
// formats up to a number.
func (r *Record) readEntry(data []byte, reads int) (*Entry, error) {
	var head struct {
		Format  int
		Changes uint64
		Command struct{ Request Number }
	}
	if err := json.Unmarshal(data, &head); err != nil || head.Format <= reads {
		return DecodeEntry(data)
	}
	if head.Changes < r.Changes || r.Outcome(head.Command.Request) != nil {
		return nil, errVoid // as in apply
	}
	return nil, &FormatError{What: "entry", Format: head.Format, Reads: reads}
}

// formats is the part of a daemon in the format of the record.
type formats struct {
	node *Node
	// unread is the format of a record that this daemon cannot read, 0 for
	// none, and recovery the one that has it.
	unread   int
	recovery Recovery
	due      time.Duration // of the next look of the leader
	proposed Number        // the command that it submitted
}

// leaveUnread notes that this daemon cannot read the record of a recovery. It
// goes on with the one that it has, and its voter stops: a later version takes
// part again when it starts.
func (x *formats) leaveUnread(log Recovery, err *FormatError) {
	x.unread, x.recovery = err.Format, log
	x.node.abstain(err.Error())
}

// cannotRead reports whether this daemon cannot read the record of a recovery.
func (x *formats) cannotRead(log Recovery) bool { return x.unread != 0 && x.recovery == log }

// adopts ends that when this daemon gets the record of another recovery.
func (x *formats) adopts(log Recovery) {
	if n := x.node; x.unread != 0 && x.recovery != log {
		x.unread, n.abstains, n.stopped = 0, "", nil // its voter has ended
	}
}

// reads returns the newest format that a daemon reads.
func (s *Sender) reads() int { return max(s.Format, 1) }

// CannotRead reports whether the version of a peer is too old for a record, nil
// for none.
func (p *PeerStatus) CannotRead(r *Record) bool {
	return r != nil && p.Age >= 0 && p.Sender.reads() < r.Format
}

// seen returns the live daemons but this one, with those that are new and have
// sent nothing yet.
func (x *formats) seen(yield func(*peer) bool) {
	n := x.node
	for _, p := range n.peers {
		live := n.at-max(p.heardAt, p.metAt) < n.cfg.patience(len(n.peers))
		if live && p.foreign == 0 && !yield(p) {
			return
		}
	}
}

// readable returns the latest format that all live daemons read, 0 where one of
// them has sent nothing yet.
func (x *formats) readable() int {
	least := x.node.cfg.Format
	for p := range x.seen {
		if p.heardAt < 0 {
			return 0
		}
		least = min(least, p.sender.reads())
	}
	return least
}

// behind returns the live daemons that read no later format than that of the
// record, if another one does, as region/name.
func (x *formats) behind() []string {
	n := x.node
	if n.record == nil {
		return nil
	}
	has, newest := n.record.Format, n.cfg.Format
	var all []string
	if n.cfg.Format <= has {
		all = append(all, n.cfg.Region+"/"+n.cfg.Name)
	}
	for p := range x.seen {
		if p.heardAt < 0 || p.sender.reads() <= has {
			all = append(all, p.Region+"/"+p.Name)
		}
		newest = max(newest, p.sender.reads())
	}
	if newest <= has {
		return nil
	}
	return all
}

// refusesRaise returns why the format must not be raised to a later one now,
// nil if it may be.
func (x *formats) refusesRaise(format int) error {
	n := x.node
	next := &n.record.Next
	since := time.Duration(n.wall-next.Since) * time.Millisecond
	switch is := x.readable(); {
	case is == 0:
		return errors.New("not all live daemons have sent the format that they read")
	case is < format:
		return fmt.Errorf("not all live daemons read format %d", format)
	case next.Format == 0 || since < n.cfg.FormatAfter:
		return fmt.Errorf("all daemons must have read format %d for %s", format, n.cfg.FormatAfter)
	}
	return nil
}

// turn lets the leader raise the format of the record when all daemons that
// were seen for some time read a later one. The record has that time, so that
// it goes on under the next leader, and ends when any leader sees a daemon that
// reads less.
func (x *formats) turn() {
	n := x.node
	if !n.leads() || n.at < x.due || !n.raft.complete() || n.requests.index(x.proposed) >= 0 {
		return
	}
	x.due = n.at + n.cfg.Retry
	next, is := &n.record.Next, x.readable()
	c := FormatChange{Format: next.Format}
	switch {
	case is == 0:
		return
	case next.Format == 0 && is > n.record.Format:
		c = FormatChange{Op: NextReadable, Format: is}
	case next.Format > is:
		c.Op = NextUnread
	case next.Format != 0 && next.Held == (Version{}) && x.refusesRaise(next.Format) == nil:
		c.Op = RaiseFormat
	default:
		return
	}
	x.proposed = n.number()
	r := Request{ID: x.proposed, Author: "control", Change: Change{Format: &c}}
	n.requests.own = append(n.requests.own, ownRequest{Request: r, due: n.at, silent: true})
	sendRequests(n)
}
