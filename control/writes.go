package control

import (
	"fmt"
	"slices"
)

// Written is the latest durable write that a daemon reported: the greatest
// store number of an id, and the run that reported it. A later run of the id
// begins with as much, unless its disk is older than it was.
type Written struct {
	ID    ID     `json:"id"`
	Run   Number `json:"run"`
	Store uint64 `json:"store"`
}

// maxWritten bounds the ids whose writes are remembered. Voters and live
// daemons are kept.
const maxWritten = 1_024

// writes are the latest writes of all daemons, as far as this one knows.
type writes struct {
	node   *Node
	latest map[ID]Written
	stored []Written // those of voters, on disk
}

// note keeps the write that a message names, and reports whether the message
// counts. If not, the sender receives the later write that is known.
func (w *writes) note(p *peer, s *Sender) bool {
	was, known := w.latest[s.ID]
	switch {
	case was.Run == s.Run:
		was.Store = max(was.Store, s.Store)
	case s.Began < was.Store:
		w.node.send(p, Message{Written: &was})
		return false
	default:
		was = Written{s.ID, s.Run, s.Store}
	}
	if !known && len(w.latest) >= maxWritten {
		w.forget()
	}
	if known || len(w.latest) < maxWritten {
		w.latest[s.ID] = was
	}
	return true
}

// forget drops the writes of daemons that are neither live nor voters.
func (w *writes) forget() {
	n := w.node
	for id := range w.latest {
		if n.byID(id) == nil && (n.record == nil || n.record.VoterOf(id) == nil) {
			delete(w.latest, id)
		}
	}
}

// check gives up the id if another daemon knows of a later write under it than
// this disk holds.
func (w *writes) check(by *peer, h *Written) {
	n := w.node
	if h != nil && h.ID == n.self.ID && h.Run != n.self.Run && h.Store > n.disk.began {
		n.oldDisk(fmt.Sprintf("%s knows of write %d of this daemon, and it began after write %d", by.Name, h.Store, n.disk.began))
	}
}

// ofVoters returns the writes of the voters. A voter counts their votes, so it
// must know their old disks after a restart.
func (w *writes) ofVoters() []Written {
	var all []Written
	if r := w.node.record; r != nil && (w.node.raft != nil || w.node.stopped != nil) {
		for _, v := range r.Voters {
			if h, known := w.latest[v.Daemon]; known {
				all = append(all, h)
			}
		}
	}
	return all
}

// changed returns the writes of the voters if they are to be stored again.
func (w *writes) changed() []Written {
	all := w.ofVoters()
	if slices.Equal(all, w.stored) {
		return nil
	}
	w.stored = all
	return all
}
