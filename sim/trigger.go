package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/breaker"
	"github.com/georld/rld/internal/enum"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/quorum"
)

// trigger is the event that a fault waits for, as the simulator observes it
// from outside.
type trigger struct {
	// Event is a word of Events, "" for none: the fault begins at Fault.At.
	Event string
	// Where are the regions and daemons that it happens at, none for all.
	Where []string
	// Count is how often it must happen from Fault.At on, 0 for once. The fault
	// begins After that, and behind all else of that instant.
	Count int
	After time.Duration
}

// The events of a trigger have the words of Result.Seen, and these.
const (
	ofSent     = "sent_"
	ofReceived = "received_"
	ofBegun    = "writing_" // a write of a file begins
	ofStored   = "stored_"  // it is done, and the process does not know yet
	over       = "_ended"   // a fault; its kind stands before it
	started    = "started"  // a process
	adopted    = "rules_adopted"
	// layoutAnnounced: a daemon with a control log follows another layout that
	// is announced, and not active yet.
	layoutAnnounced = "layout_announced"
)

// messageWords are the kinds of messages. A message may be of several kinds.
var messageWords = []string{
	"transfer", "resync", "repair", "epochs", "votes", "acknowledgements", "extension", "lease_requests",
	"grants", "accepts", "accepted", "snapshot_request", "snapshot_chunk",
}

// fileWords are the writes of a process.
var fileWords = [...]string{"record", "log", "control", "compaction"}

// triggerEvents holds all words of events.
var triggerEvents = func() (all []string) {
	all = append(all, words(gossip.EventKinds(), "", "")...)
	all = append(all, words(enum.All[agent.EventKind](int(agent.PinsUnfit)+1), ofRights, "")...)
	all = append(all, words(enum.All[quorum.EventKind](int(quorum.StoreFailed)+1), ofStrict, "")...)
	all = append(all, words(enum.All[control.EventKind](int(control.EmergencyTaken)+1), ofControl, "")...)
	all = append(all, words(enum.All[breaker.State](int(breaker.Open)+1), ofBreakers, "")...)
	for _, kind := range messageWords {
		all = append(all, ofSent+kind, ofReceived+kind)
	}
	for _, file := range fileWords {
		all = append(all, ofBegun+file, ofStored+file)
	}
	return append(append(all, started, adopted, layoutAnnounced), words(FaultKinds(), "", over)...)
}()

// The prefixes of events of rights agents, acceptors, the control log and
// breakers.
const (
	ofRights   = "rights_"
	ofStrict   = "strict_"
	ofControl  = "control_"
	ofBreakers = "breaker_"
)

// words returns the words of values.
func words[T fmt.Stringer](all []T, prefix, suffix string) (out []string) {
	for _, v := range all {
		out = append(out, prefix+strings.ReplaceAll(v.String(), " ", "_")+suffix)
	}
	return out
}

// Events lists the words of Event.
func (trigger) Events() []string { return triggerEvents }

// validate returns an error for an event that never happens.
func (t *trigger) validate() error {
	switch {
	case t.Event == "" && (len(t.Where) > 0 || t.Count != 0 || t.After != 0):
		return fmt.Errorf("it waits for no event")
	case t.Event != "" && !slices.Contains(triggerEvents, t.Event):
		return fmt.Errorf("no event %q", t.Event)
	case t.Count < 0 || t.After < 0 || t.After > MaxDuration:
		return fmt.Errorf("it waits for %d events and %v: want 0 or more", t.Count, t.After)
	}
	return nil
}

// armed is a fault that waits for its event.
type armed struct{ fault, left int }

// arm lets fault i wait for its event.
func (a *faults) arm(i int) {
	a.armed = append(a.armed, armed{i, max(a.all[i].When.Count, 1)})
}

// saw lets the faults begin that wait for an event at a daemon. A fault without
// places is about this daemon.
func (d *Daemon) saw(w *World, event string) {
	a := &w.faults
	for k := 0; k < len(a.armed); k++ {
		x := &a.armed[k]
		f := &a.all[x.fault]
		if f.When.Event != event || !d.in(f.When.Where) {
			continue
		}
		if x.left--; x.left > 0 {
			continue
		}
		if len(f.From) == 0 {
			f.From = []string{d.owner}
		}
		w.events.push(w.now+f.When.After, evFault, int32(x.fault))
		f.When = trigger{}
		a.armed = slices.Delete(a.armed, k, k+1)
		k--
	}
}

// sawKind is saw for an event that a part of a process reports.
func (d *Daemon) sawKind(w *World, prefix string, kind fmt.Stringer) {
	if len(w.faults.armed) > 0 {
		d.saw(w, prefix+strings.ReplaceAll(kind.String(), " ", "_"))
	}
}

// sawCounts is saw for a message of a node that was sent or received.
func (d *Daemon) sawCounts(w *World, prefix string, m *gossip.Message) {
	d.sawParts(w, prefix, part{"transfer", transfers(m)}, part{"resync", m.Lo == 0 && m.Hi > 0}, part{"repair", len(m.Repair) > 0})
}

// sawRights is saw for one of a rights agent.
func (d *Daemon) sawRights(w *World, prefix string, m *agent.Message) {
	r, l := &m.Regions, &m.Daemons
	d.sawParts(w, prefix, part{"epochs", len(r.Epochs)+len(l.Epochs) > 0}, part{"votes", len(m.Votes) > 0},
		part{"acknowledgements", len(r.Acks)+len(l.Acks) > 0}, part{"extension", m.Extension != nil})
}

// sawStrict is saw for one about strict keys.
func (d *Daemon) sawStrict(w *World, prefix string, m *sticky.Message) {
	d.sawParts(w, prefix, part{"lease_requests", len(m.Requests) > 0}, part{"grants", len(m.Grants) > 0},
		part{"accepts", len(m.Accepts) > 0}, part{"accepted", len(m.Accepted) > 0},
		part{"snapshot_request", len(m.SnapshotRequests) > 0}, part{"snapshot_chunk", len(m.SnapshotChunks) > 0})
}

// part is a kind of messages, and whether a message is of it.
type part struct {
	word string
	is   bool
}

func (d *Daemon) sawParts(w *World, prefix string, parts ...part) {
	for _, p := range parts {
		if p.is && len(w.faults.armed) > 0 {
			d.saw(w, prefix+p.word)
		}
	}
}
