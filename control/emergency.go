package control

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// MaxEmergencies bounds the emergency overrides outside of the record.
	MaxEmergencies = 64
	// maxEntered bounds those that became entries and have not ended.
	maxEntered = 1_000
	// maxEmergency bounds the time that an emergency override counts at a
	// daemon.
	maxEmergency = 24 * time.Hour
)

// Emergency is an override that an operator sets while no majority of the
// voters can be reached. It only lowers: where several are there, and beside
// all else, the smallest amount counts. It cannot be unset before it is an
// entry, which it becomes as soon as there is a majority.
type Emergency struct {
	ID Number `json:"id"`
	Target
	Setting
	// Until is its end in Unix milliseconds. Each daemon ends it 24 hours after
	// it received it, if its clock does not reach Until before.
	Until  int64  `json:"until"`
	Author string `json:"author,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Signature is that of the operator, which Config.VerifyEmergency checks.
	Signature []byte `json:"signature,omitempty"`
}

// Entered names an emergency override that became an entry. One that was unset
// can come back from no daemon before it ends.
type Entered struct {
	ID    Number `json:"id"`
	Until int64  `json:"until"`
}

// maxSignature bounds a signature, in bytes.
const maxSignature = 256

// check returns an error for an emergency override that no daemon takes.
func (e *Emergency) check() error {
	if err := e.Setting.check(&e.Target); err != nil {
		return err
	}
	switch {
	case e.Mode == ModeShadow || e.Reset:
		return fmt.Errorf("an emergency override of %v with %q: it can lower, block and enforce only", &e.Target, &e.Setting)
	case e.ID == 0 || e.Key == "" && e.RuleID == 0 || e.Window < 0 || e.Until <= 0:
		return fmt.Errorf("an emergency override of %v until %d: want numbers of both, and a time", &e.Target, e.Until)
	case len(e.Signature) > maxSignature:
		return fmt.Errorf("a signature of %d bytes: want at most %d", len(e.Signature), maxSignature)
	}
	return checkTexts(e.Author, e.Reason, e.Rule, e.Domain)
}

// heldEmergency is an emergency override at a daemon.
type heldEmergency struct {
	Emergency
	// End is when it ends here, in Unix milliseconds.
	End int64 `json:"end"`
}

// emergencies are the emergency overrides that are no entries. They survive a
// restart. One that ended is kept until its Until, so that it cannot come back.
type emergencies struct {
	node   *Node
	all    []heldEmergency // ascending by ID
	digest Number          // of the ids, 0 for none
	sent   map[*peer]time.Duration
}

// SubmitEmergency takes an emergency override, which acts at once and reaches
// all daemons that can be reached. It is refused while a leader of the log can
// be reached: that takes commands. An ID other than 0 repeats one.
func (a *LimitsAgent) SubmitEmergency(e Emergency) (Number, error) {
	n := a.node
	switch p := n.byID(n.leader()); {
	case n.record == nil:
		return 0, ErrNoCluster
	case n.leads() || isLive(n, p):
		return 0, errors.New("control: a leader of the log is there: set an ordinary override")
	}
	if err := n.limits.lookUp(&e.Target, &e.Setting, true); err != nil {
		return 0, fmt.Errorf("control: %w", err)
	}
	e.ID = cmp.Or(e.ID, n.number())
	if err := e.check(); err != nil {
		return 0, fmt.Errorf("control: %w", err)
	}
	if e.Key == "" && !n.limits.effect(e.override()).Lowers {
		return 0, fmt.Errorf("control: %v with %v: an emergency override must lower something", &e.Target, &e.Setting)
	}
	if left := e.Until - n.wall; left <= 0 || left > maxEmergency.Milliseconds() {
		return 0, fmt.Errorf("control: an emergency override until %s: want an end within %v from %s on", when(e.Until), maxEmergency, when(n.wall))
	}
	if _, err := n.emergencies.take(&e); err != nil {
		return 0, fmt.Errorf("control: %w", err)
	}
	n.emergencies.flood()
	return e.ID, nil
}

// take adds an emergency override, and reports whether it is new.
func (x *emergencies) take(e *Emergency) (bool, error) {
	n := x.node
	if err := e.check(); err != nil {
		return false, err
	}
	if verify := n.cfg.VerifyEmergency; verify != nil {
		if err := verify(e); err != nil {
			return false, fmt.Errorf("emergency override %v by %s: %w", e.ID, e.Author, err)
		}
	}
	i, known := slices.BinarySearchFunc(x.all, e.ID, func(h heldEmergency, id Number) int {
		return compareNumbers(h.ID, id)
	})
	switch {
	case known || e.Until <= n.wall || n.record.entered(e.ID):
		return false, nil
	case len(x.all) >= MaxEmergencies:
		return false, fmt.Errorf("there are %d emergency overrides: want at most that", len(x.all))
	}
	h := heldEmergency{Emergency: *e, End: min(e.Until, n.wall+maxEmergency.Milliseconds())}
	x.set(slices.Insert(slices.Clone(x.all), i, h))
	n.events.Add(EmergencyTaken, "", fmt.Sprintf("%v: %v until %s by %s", &e.Target, &e.Setting, when(h.End), e.Author))
	return true, nil
}

// flood sends the set to all peers.
func (x *emergencies) flood() {
	clear(x.sent)
	for _, p := range x.node.peers {
		x.send(p)
	}
}

func compareNumbers(a, b Number) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// set replaces the set and stores it.
func (x *emergencies) set(all []heldEmergency) {
	x.all, x.digest = all, digestOf(all)
	x.node.queue(stored{Emergencies: &x.all})
}

// digestOf returns a hash of the ids of a set, 0 for none.
func digestOf(all []heldEmergency) Number {
	if len(all) == 0 {
		return 0
	}
	var b []byte
	for i := range all {
		b = binary.BigEndian.AppendUint64(b, uint64(all[i].ID))
	}
	sum := sha256.Sum256(b)
	return Number(binary.BigEndian.Uint64(sum[:]) | 1)
}

// send sends the set to a peer that lacks some of it.
func (x *emergencies) send(p *peer) {
	n := x.node
	if at, known := x.sent[p]; known && n.at-at < n.cfg.Retry {
		return
	}
	if len(x.sent) > 2*len(n.peers) { // of peers that have gone
		clear(x.sent)
	}
	x.sent[p] = n.at
	all := make([]Emergency, len(x.all))
	for i := range x.all {
		all[i] = x.all[i].Emergency
	}
	n.hold(p, Message{Emergencies: all})
}

// receive takes the emergency overrides of a peer, and sends it those that it
// lacks.
func (x *emergencies) receive(p *peer, m *Message) {
	if x.node.record == nil {
		return
	}
	news := false
	for i := range m.Emergencies[:min(len(m.Emergencies), MaxEmergencies)] {
		taken, err := x.take(&m.Emergencies[i])
		if err != nil {
			x.node.events.AddOnce(Rejected, p.Name, "emergency", err.Error())
		}
		news = news || taken
	}
	if news {
		x.flood()
	}
	if x.digest != 0 && m.Sender.Emergencies != x.digest {
		x.send(p)
	}
}

// turn drops what became an entry or ended for good, and submits the rest once
// a leader is there.
func (x *emergencies) turn() {
	n := x.node
	if n.record == nil || len(x.all) == 0 {
		return
	}
	left := without(x.all, func(h *heldEmergency) bool { return h.Until <= n.wall || n.record.entered(h.ID) })
	if len(left) < len(x.all) {
		x.set(left)
	}
	if n.leader() == (ID{}) {
		return
	}
	under := 0
	for i := range left {
		e := left[i].Emergency
		if n.record.Outcome(e.ID) != nil || n.wall >= left[i].End {
			continue
		}
		if under++; under > dropsAtOnce {
			break
		}
		if n.requests.index(e.ID) >= 0 {
			continue
		}
		r := Request{ID: e.ID, Author: e.Author, Reason: e.Reason, Change: Change{Limits: &LimitsChange{Emergency: &e}}}
		n.requests.own = append(n.requests.own, ownRequest{Request: r, due: n.at, silent: true})
	}
}

// active returns the emergency overrides that count now.
func (x *emergencies) active() []Emergency {
	var all []Emergency
	for i := range x.all {
		if h := &x.all[i]; x.node.wall < h.End {
			all = append(all, h.Emergency)
		}
	}
	return all
}

// Emergencies returns the emergency overrides that count and are no entries.
func (a *LimitsAgent) Emergencies() []Emergency { return a.node.emergencies.active() }

// entered reports whether an emergency override became an entry.
func (r *Record) entered(id Number) bool {
	return slices.ContainsFunc(r.Limits.Entered, func(e Entered) bool { return e.ID == id })
}

// enter makes an entry of an emergency override, at a version and a time.
func (l *Limits) enter(e *Emergency, v Version, at int64) error {
	l.prune(at)
	if err := e.check(); err != nil {
		return err
	}
	until := min(e.Until, at+maxEmergency.Milliseconds())
	switch {
	case slices.ContainsFunc(l.Entered, func(o Entered) bool { return o.ID == e.ID }):
		return fmt.Errorf("emergency override %v is an entry already", e.ID)
	case until <= at:
		return fmt.Errorf("emergency override %v ended at %s", e.ID, when(e.Until))
	case len(l.Entered) >= maxEntered:
		return fmt.Errorf("there are %d emergency overrides: want at most that", len(l.Entered))
	}
	l.Entered = append(slices.Clone(l.Entered), Entered{e.ID, e.Until})
	return l.add(Override{
		Version: v, Target: e.Target, Setting: e.Setting, From: at, For: until - at, Until: until,
		Author: e.Author, Reason: e.Reason, Emergency: e.ID,
	})
}
