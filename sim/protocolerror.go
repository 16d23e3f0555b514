package sim

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/georld/rld/control"
	"github.com/georld/rld/quota/agent"
	epochs "github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
	"github.com/georld/rld/wire"
)

// breaksProtocol reports whether a daemon sends a message now that no daemon
// may send, beside one of its own.
func (d *Daemon) breaksProtocol(w *World) bool {
	return slices.ContainsFunc(w.faults.active, func(i int) bool {
		f := &w.faults.all[i]
		return f.Kind == ProtocolErrors && d.in(f.From) && w.network.happens(cmp.Or(f.Share, 100*rules.Percent))
	})
}

// sendBadRights sends a message that must be rejected behind one of a rights
// agent.
func (d *Daemon) sendBadRights(w *World, m *agent.Message, to *incarnation) {
	bad := *m
	for _, s := range []*agent.Section{&bad.Regions, &bad.Daemons} {
		s.Epochs, s.Acks, s.Claim = nil, nil, nil
	}
	bad.Votes, bad.Extension, bad.Period, bad.Demand = nil, nil, 0, nil
	rng := w.faults.rng
	if rng.IntN(2) == 0 {
		badHeaders[rng.IntN(len(badHeaders))](&bad)
	} else {
		badItems(&bad, rng)
	}
	frame, err := wire.EncodeRights(w.network.buffer(), &bad)
	d.sendBad(w, to, frame, err)
}

// badHeaders change what all messages of rights agents have.
var badHeaders = []func(m *agent.Message){
	func(m *agent.Message) { m.To++ },
	func(m *agent.Message) { m.Name = "" },
	func(m *agent.Message) { m.Region = "nowhere" },
	func(m *agent.Message) { m.Member = 0 },
	func(m *agent.Message) { m.Genesis[0]++ },
	func(m *agent.Message) { m.HasVotes = []uint64{2, 1} },
	func(m *agent.Message) { m.Regions.Has = []uint64{2, 1} },
	func(m *agent.Message) { m.Daemons.Has = []uint64{1, 1} },
	func(m *agent.Message) { m.Demand = []agent.Demand{{Rule: 1, Hits: 1}} },
	func(m *agent.Message) { m.Period, m.Demand = 1, []agent.Demand{{Rule: 2}, {Rule: 1}} },
	func(m *agent.Message) { m.Votes = []epochs.Vote{{Daemon: 1}} },
	func(m *agent.Message) {
		m.Votes = []epochs.Vote{{Daemon: 1, Locals: make([]epochs.ID, epochs.MaxEpochs+1)}}
	},
	func(m *agent.Message) { m.Regions.Epochs = make([]epochs.Epoch, agent.MaxItems+1) },
	func(m *agent.Message) { m.Extension = &epochs.Extension{By: m.Member, To: m.Member} },
}

// badItems adds an epoch, an acknowledgement or a claim that nobody may make.
func badItems(m *agent.Message, rng *rand.Rand) {
	id := epochs.ID{Stamp: m.Stamp, Proposer: m.Member}
	one := []epochs.Member{{ID: 1, Amount: 1}}
	section := &m.Regions
	if rng.IntN(2) == 0 {
		section = &m.Daemons
	}
	all := []epochs.Epoch{
		{ID: id, Pred: id, Members: one},
		{ID: id, Horizon: -1, Members: one},
		{ID: id},
		{ID: id, Members: []epochs.Member{{ID: 2}, {ID: 1}}},
		{ID: id, Members: []epochs.Member{{ID: 1, Amount: math.MaxUint64}, {ID: 2, Amount: 1}}},
		{ID: id, Members: one, Retired: []epochs.Retirement{{ID: 1}}},
		{ID: id, Members: one, Retired: []epochs.Retirement{{ID: 3}, {ID: 2}}},
		{ID: id, Members: one, Rules: []epochs.RuleShares{{Rule: 2, Shares: []uint32{1}}, {Rule: 1, Shares: []uint32{1}}}},
		{ID: id, Members: one, Rules: []epochs.RuleShares{{Rule: 1}}},
		{ID: id, Members: one, Rules: []epochs.RuleShares{{Rule: 1, Shares: []uint32{epochs.Whole + 1}}}},
		{ID: id, Members: []epochs.Member{{ID: 1, Amount: epochs.Whole + 1}}, Rules: []epochs.RuleShares{{Rule: 1, Shares: []uint32{1}}}},
		{ID: epochs.ID{Stamp: m.Stamp + 1<<60}, Members: one},
	}
	acks := []epochs.Ack{
		{},
		{ID: id, Before: []epochs.ID{id}},
		{ID: id, Before: make([]epochs.ID, epochs.MaxEpochs+1)},
		{ID: id, Horizons: []epochs.Horizon{{ID: 2}, {ID: 1}}},
		{ID: id, Held: []epochs.ID{id, id}},
	}
	switch i := rng.IntN(len(all) + len(acks)); {
	case i >= len(all):
		section.Acks = acks[i-len(all):][:1]
	case rng.IntN(4) == 0:
		section.Claim = &epochs.Claim{Base: all[i]}
	default:
		section.Epochs = all[i:][:1]
	}
}

// sendBadStrict sends a message that must be rejected behind one about strict
// keys.
func (d *Daemon) sendBadStrict(w *World, m *sticky.Message, to *incarnation) {
	rng := w.faults.rng
	bad := sticky.Message{From: m.From, To: m.To, Stamp: m.Stamp, Number: m.Number}
	layout := d.acceptor.Acceptor.Layout()
	layout = (&layout).Clone()
	which := rng.IntN(5)
	if which == 1 && len(layout.Regions) == 0 { // the daemon knows none yet
		which = 0
	}
	switch which {
	case 0:
		bad.Accepts = []sticky.Accept{badAccepts[rng.IntN(len(badAccepts))]}
		if rng.IntN(2) == 0 {
			bad.Accepts[0].Ballot.Owner = m.From
		}
	case 1:
		badLayouts[rng.IntN(len(badLayouts))](&layout)
		bad.Layouts = []route.Layout{layout}
	case 2:
		bad.Requests = []sticky.LeaseRequest{{ID: 1, Lessee: m.From + 1}, {ID: 1, Lessee: m.From, Hops: 2}, {ID: 1, Lessee: m.To}}
		bad.Grants = []sticky.LeaseGrant{{ID: 1, Owner: m.From}, {ID: math.MaxUint64, Owner: m.From, Total: math.MaxUint64}}
	case 3:
		bad.SnapshotRequests = []sticky.SnapshotRequest{{Voter: 1, Number: m.Number}}
	case 4:
		if len(m.SnapshotChunks) == 0 {
			bad.Accepts = make([]sticky.Accept, sticky.MaxItems+1)
			break
		}
		chunk := m.SnapshotChunks[0]
		badChunks[rng.IntN(len(badChunks))](&chunk)
		bad.SnapshotChunks = []sticky.SnapshotChunk{chunk}
	}
	frame, err := wire.EncodeStrict(w.network.buffer(), &bad)
	d.sendBad(w, to, frame, err)
}

// unordered are watermarks that are out of order.
var unordered = sticky.Watermarks{{Window: 2, Amount: 1, End: 3}, {Window: 1, Amount: 1, End: 3}}

var badAccepts = []sticky.Accept{
	{},
	{Ballot: sticky.Ballot{Round: 1}},
	{Ballot: sticky.Ballot{Round: sticky.MaxRound + 1}},
	{Ballot: sticky.Ballot{Round: 1}, Watermarks: unordered},
	{Ballot: sticky.Ballot{Round: 1}, Watermarks: make(sticky.Watermarks, sticky.MaxWatermarks+1)},
	{Ballot: sticky.Ballot{Round: 1}, Watermarks: unordered[:1], Known: unordered},
}

// badLayouts change a layout so that none may be like it.
var badLayouts = []func(l *route.Layout){
	func(l *route.Layout) { l.Number = 0 },
	func(l *route.Layout) { l.Number += 1 << 40 }, // not that of its message
	func(l *route.Layout) { l.Regions = nil },
	func(l *route.Layout) { l.Regions = append(l.Regions, l.Regions[0]) },
	func(l *route.Layout) { l.Regions[0].Name = "" },
	func(l *route.Layout) { l.Regions[0].Weight = math.MaxUint32 },
	func(l *route.Layout) { l.Regions[0].Replicas = []string{"a", "b", "c", "d"} },
	func(l *route.Layout) { l.Regions[0].Replicas = []string{"b", "a"} },
	func(l *route.Layout) { l.Regions[0].Replicas = []string{""} },
	func(l *route.Layout) {
		l.Formers = []route.Former{{Number: 1, Regions: []route.FormerRegion{{Name: "a", Replicas: []string{"b", "a"}}}}}
	},
	func(l *route.Layout) { l.Regions[0].Generations = route.Generations{{Voter: 2}, {Voter: 1}} },
	func(l *route.Layout) { l.Pins = []route.Pin{{Rule: 1, Region: "nowhere"}} },
	func(l *route.Layout) { l.Pins = []route.Pin{{Rule: 2, Region: l.Regions[0].Name}, {Rule: 1}} },
	func(l *route.Layout) {
		for i := range l.Regions {
			l.Regions[i].Weight = 0
		}
	},
}

// badChunks change a snapshot chunk so that none may be like it.
var badChunks = []func(c *sticky.SnapshotChunk){
	func(c *sticky.SnapshotChunk) { c.Voter++ },
	func(c *sticky.SnapshotChunk) { c.Records, c.Last = nil, false },
	func(c *sticky.SnapshotChunk) { c.Records = make([]sticky.Record, 2) },
	func(c *sticky.SnapshotChunk) { c.Records = make([]sticky.Record, sticky.MaxRecords+1) },
	func(c *sticky.SnapshotChunk) {
		c.Records = []sticky.Record{{Ballot: sticky.Ballot{Round: math.MaxUint64}}}
	},
	func(c *sticky.SnapshotChunk) { c.Records = []sticky.Record{{Watermarks: unordered}} },
	func(c *sticky.SnapshotChunk) { c.Generations = route.Generations{{Voter: 2}, {Voter: 1}} },
}

// sendBadControl sends a message of the control log under another id, or of
// another run, behind one of its own. A copy of its disk has the same id.
func sendBadControl(w *World, d *Daemon, m *control.Message, to *incarnation) {
	bad := *m
	if other := w.daemons[w.faults.rng.IntN(len(w.daemons))]; other.control != nil && other.control.ID() != bad.Sender.ID {
		bad.Sender.ID = other.control.ID()
	} else {
		bad.Sender.Run[w.faults.rng.IntN(len(bad.Sender.Run))]++
	}
	frame, err := wire.EncodeControl(w.network.buffer(), &bad)
	w.network.forged = true
	d.sendBad(w, to, frame, err)
	w.network.forged = false
}

// sendBad sends a frame that must be rejected, if there is a form for it.
func (d *Daemon) sendBad(w *World, to *incarnation, frame []byte, err error) {
	if err == nil && len(frame) <= wire.MaxFrameBytes {
		w.network.traffic.ProtocolErrors++
		w.network.send(w, d.Index, to, frame)
	}
}

// unknown are fields that this version does not know, as later ones may add
// them: a number and a text.
var unknown = append(binary.AppendUvarint(append(binary.AppendUvarint(nil, 1_999<<3), 1), 2_000<<3|2), "\x05later"...)

// withUnknown returns a frame about rights or strict keys as a later version
// sends it. Counts have no unknown fields: a change of them is another version
// of the protocol, which the handshake refuses.
func withUnknown(from replica.Origin, frame []byte) []byte {
	if !wire.IsRights(frame) && !wire.IsStrict(frame) && !wire.IsControl(frame) || len(frame)+len(unknown) > wire.MaxFrameBytes {
		return frame
	}
	return sealed(from, append(frame, unknown...))
}

// sealed sets the checksum of a frame.
func sealed(from replica.Origin, frame []byte) []byte {
	if wire.IsControl(frame) {
		wire.SetControlChecksum(from.ControlEnds(), frame)
	} else {
		wire.SetChecksum(frame)
	}
	return frame
}

// sameWithoutUnknown returns an error unless a frame of a later version means
// the same without its unknown fields.
func sameWithoutUnknown(in *replica.Inbound, from replica.Origin, frame []byte) error {
	rest, extended := bytes.CutSuffix(frame, unknown)
	if !extended {
		return nil
	}
	plain, err := replica.Decode(&wire.Decoder{}, from, sealed(from, bytes.Clone(rest)))
	if err == nil && !reflect.DeepEqual(plain, *in) {
		err = errors.New("unknown fields change a message")
	}
	return err
}
