package processtest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
	"github.com/georld/rld/wire"
)

// Sent prints a frame of the process, and keeps what it asks its peer.
func (x *Script) Sent(to crdt.Incarnation, frame []byte) {
	name := x.name(to)
	switch {
	case wire.IsRights(frame):
		m, err := wire.DecodeRights(frame)
		x.Must(err)
		if x.watch["rights"] {
			for _, e := range m.Regions.Epochs {
				x.printf("to %s: an epoch of %d regions, shares of rules %v", name, len(e.Members), e.Rules)
			}
			for _, d := range m.Demand {
				x.printf("to %s: demand of %d hits", name, d.Hits)
			}
		}
	case wire.IsStrict(frame):
		m, err := wire.DecodeStrict(frame)
		x.Must(err)
		x.sentStrict(name, m)
	default:
		all, err := new(wire.Decoder).Decode(x.driver.Self(), to, frame)
		x.Must(err)
		cells := 0
		var shards []int
		for i := range all {
			cells += len(all[i].Cells)
			shards = append(shards, all[i].Shard)
		}
		if x.watch["counts"] && cells > 0 {
			x.printf("to %s: counts of shards %v, %d cells", name, shards, cells)
		}
	}
}

func (x *Script) sentStrict(name string, m *sticky.Message) {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	for _, r := range m.Requests {
		switch {
		case isPosted(r.Key):
			add("post %d", r.ID)
			continue
		case r.ID == 0: // returns depend on when the timers of shards run
			continue
		case slices.ContainsFunc(x.asked[name], func(o sticky.LeaseRequest) bool { return o.Key == r.Key }): // so do repetitions
		case r.Reserve:
			add("request of a reserve, want %d", r.Want)
		default:
			add("request %s, want %d", x.key(r.Key), r.Want)
		}
		x.asked[name] = append(x.asked[name], r)
	}
	for _, g := range m.Grants {
		add("grant %s, total %d, denied %v %v", x.key(g.Key), g.Total, g.Denied, g.Reason)
	}
	for _, a := range m.Accepts {
		if again := fmt.Sprint(name, a.Key, a.Ballot, a.Seq); !x.seen[again] {
			x.seen[again] = true
			add("accept %s", x.key(a.Key))
			x.offers[name] = append(x.offers[name], a)
		}
	}
	for _, a := range m.Accepted {
		add("accepted %s, %v %v", x.key(a.Key), a.OK, a.Reason)
	}
	for _, r := range m.SnapshotRequests {
		add("snapshot request")
		x.copies[name] = append(x.copies[name], r)
	}
	for _, c := range m.SnapshotChunks {
		add("snapshot of %d records %v", len(c.Records), c.Reason)
	}
	if counts := countItems(m); len(parts) > 12 {
		parts = []string{counts}
	}
	if m.Number != 1 && len(parts) > 0 {
		add("number %d", m.Number)
	}
	if off := m.Stamp.Millis() - x.driver.Wall().UnixMilli(); (off < -100 || off > 100) && len(parts) > 0 {
		add("stamp off by %d ms", off)
	}
	if len(parts) > 0 {
		x.printf("to %s: %s", name, strings.Join(parts, "; "))
	}
}

// countItems describes a message with many items.
func countItems(m *sticky.Message) string {
	return fmt.Sprintf("%d requests, %d grants, %d accepts, %d accepted, %d snapshot requests",
		len(m.Requests), len(m.Grants), len(m.Accepts), len(m.Accepted), len(m.SnapshotRequests))
}

// peerCommand lets a peer send something.
func (x *Script) peerCommand(name string, p gossip.Peer, args []string) {
	m := sticky.Message{From: p.ID, To: x.driver.Self(), Number: 1, Stamp: x.stamp()}
	switch name {
	case "rtt":
		d, err := time.ParseDuration(args[0])
		x.Must(err)
		x.counts(p, d, 0)
		return
	case "counts":
		var shards []int
		for _, s := range args {
			shards = append(shards, x.int(s))
		}
		x.counts(p, -1, 3, shards...)
		return
	case "rights":
		frame, err := wire.EncodeRights(nil, &agent.Message{From: p.ID, To: x.driver.Self(), Region: p.Region, Name: p.Name, Stamp: x.stamp()})
		x.Must(err)
		x.receive(p, frame)
		return
	case "bad":
		x.bad(p, args[0])
		return
	case "grant", "deny", "fail":
		x.answer(name, p, args, &m)
	case "accept":
		for _, a := range x.offers[p.Name] {
			m.Accepted = append(m.Accepted, sticky.Accepted{Key: a.Key, Ballot: a.Ballot, Seq: a.Seq, Voter: route.NameHash(p.Name), OK: true})
		}
		x.offers[p.Name] = nil
	case "ask":
		x.ask(p.ID, args, &m)
	case "propose":
		_, hits := x.resolve(args[:1])
		x.number++
		m.Accepts = []sticky.Accept{{
			Key: hits[0].Key, Ballot: sticky.Ballot{Round: 1, Owner: p.ID, Term: 1}, Seq: x.number,
			Watermarks: sticky.Watermarks{{Window: x.window(), Amount: uint64(x.int(args[1])), End: x.window() + 60_000}},
		}}
	case "copy":
		m.SnapshotRequests = []sticky.SnapshotRequest{{Voter: route.NameHash(p.Name), Number: 1, Begin: true}}
		m.Layouts = []route.Layout{*x.Layout()}
	case "chunk":
		_, hits := x.resolve(args[:1])
		for _, q := range x.copies[p.Name] {
			m.SnapshotChunks = append(m.SnapshotChunks[:0], sticky.SnapshotChunk{
				Voter: route.NameHash(p.Name), Number: q.Number, After: q.After, Begin: q.Begin, Last: true,
				Records: []sticky.Record{{
					Key: hits[0].Key, Ballot: sticky.Ballot{Round: 1, Owner: p.ID, Term: 1},
					Watermarks: sticky.Watermarks{{Window: x.window(), Amount: 9, End: x.window() + 60_000}},
				}},
			})
		}
		x.copies[p.Name] = nil
	case "testify":
		m.SnapshotChunks = []sticky.SnapshotChunk{{Voter: route.NameHash(p.Name), Last: true}}
	default:
		x.t.Fatalf("no command %s", name)
	}
	frame, err := wire.EncodeStrict(nil, &m)
	x.Must(err)
	x.receive(p, frame)
}

// ask adds requests of a peer for leases on some keys.
func (x *Script) ask(from crdt.Incarnation, keys []string, m *sticky.Message) {
	_, hits := x.resolve(keys)
	for i := range hits {
		x.number++
		m.Requests = append(m.Requests, sticky.LeaseRequest{
			ID: x.number, Lessee: from, Key: hits[i].Key, Rule: hits[i].Rule.Shared(), Window: x.window(), Want: 3, Need: 3, Within: 100,
		})
	}
}

// answer adds the grants for the requests that a peer has got, those for some
// keys if keys are given.
func (x *Script) answer(name string, p gossip.Peer, args []string, m *sticky.Message) {
	keys := args
	if name == "fail" {
		keys = args[1:]
	}
	var rest []sticky.LeaseRequest
	for _, r := range x.asked[p.Name] {
		if len(keys) > 0 && !slices.Contains(keys, x.key(r.Key)) {
			rest = append(rest, r)
			continue
		}
		g := sticky.LeaseGrant{
			ID: r.ID, Owner: p.ID, Key: r.Key, Rule: r.Rule, Reserve: r.Reserve, Round: 1, Window: r.Window, Until: r.Window + 60_000, Remaining: 500,
		}
		total := fmt.Sprint(p.Name, r.Key, r.Window)
		switch name {
		case "grant":
			x.totals[total] += r.Want
		case "deny":
			g.Denied, g.Retry, g.Remaining = true, 1_000, 0
		case "fail":
			g = sticky.LeaseGrant{ID: r.ID, Owner: p.ID, Key: r.Key, Rule: r.Rule, Reserve: r.Reserve, Window: r.Window}
			for g.Reason = sticky.MaxReason; g.Reason.String() != args[0]; g.Reason-- {
			}
			m.Grants = append(m.Grants, g)
			continue
		}
		g.Total = x.totals[total]
		m.Grants = append(m.Grants, g)
	}
	x.asked[p.Name] = rest
}

// hexadecimal matches incarnations and checksums, which differ between drivers.
var hexadecimal = regexp.MustCompile("[0-9a-f]{8,}")

// receive hands a frame to the process, and prints why it rejects it.
func (x *Script) receive(from gossip.Peer, frame []byte) {
	if err := x.driver.Receive(from, frame); err != nil {
		if bad := (*replica.FrameError)(nil); errors.As(err, &bad) {
			x.printf("rejected for its %s: %s", bad.Reason, hexadecimal.ReplaceAllString(err.Error(), "#"))
			return
		}
		x.printf("rejected: %s", hexadecimal.ReplaceAllString(err.Error(), "#"))
	}
}

// counts sends a message of some shards with cells, which measures a round trip
// unless that is negative.
func (x *Script) counts(p gossip.Peer, rtt time.Duration, cells int, shards ...int) {
	x.receive(p, x.countsFrame(p, rtt, cells, shards...))
}

func (x *Script) countsFrame(p gossip.Peer, rtt time.Duration, cells int, shards ...int) []byte {
	var all []gossip.Message
	if rtt >= 0 {
		for i := range Shards {
			shards = append(shards[:i], i)
		}
	}
	x.number++
	now := uint64(x.driver.Mono() / gossip.NonceUnit)
	for _, shard := range shards {
		m := x.countsMessage(p.ID, x.driver.Self(), shard, Shards, cells)
		m.Nonce = now + x.number
		if rtt >= 0 {
			m.Echo = now - uint64(rtt/gossip.NonceUnit)
		}
		all = append(all, m)
	}
	frame, err := wire.Encode(nil, all)
	x.Must(err)
	return frame
}

// countsMessage returns a message with cells of a shard.
func (x *Script) countsMessage(from, to crdt.Incarnation, shard, shards, cells int) gossip.Message {
	m := gossip.Message{From: from, To: to, Shard: shard, Shards: shards}
	m.Header = gossip.Header{Stamp: x.stamp(), Rules: Rules().Hash(), Ready: true}
	m.Complete, m.Hi = true, uint64(cells)
	_, hits := x.resolve([]string{"plain=1"})
	for i := range cells {
		key := crdt.Key(uint64(shard)<<62 | uint64(i)<<8 | 1)
		m.Cells = append(m.Cells, gossip.Cell{
			CellID:   gossip.CellID{Key: key, Window: x.window(), Incarnation: from},
			Value:    crdt.PN{P: 1},
			CellMeta: gossip.CellMeta{WindowLength: hits[0].Limit.Window()},
		})
	}
	return m
}

// bad sends a frame that is not valid.
func (x *Script) bad(p gossip.Peer, kind string) {
	m := sticky.Message{From: p.ID, To: x.driver.Self(), Number: 1, Stamp: x.stamp()}
	encode := func() []byte {
		frame, err := wire.EncodeStrict(nil, &m)
		x.Must(err)
		return frame
	}
	frame := encode()
	switch kind {
	case "cut":
		frame = frame[:len(frame)-1]
	case "empty":
		frame = nil
	case "damaged":
		frame[len(frame)/2] ^= 1
	case "version":
		frame[0] = 99
	case "large":
		frame = make([]byte, wire.MaxFrameBytes+1)
	case "elsewhere":
		m.To = 4_711
		frame = encode()
	case "foreign":
		m.From = 4_711
		frame = encode()
	case "foreign-counts":
		q := p
		q.ID = 4_711
		frame = x.countsFrame(q, -1, 1, 0)
	case "foreign-rights":
		var err error
		frame, err = wire.EncodeRights(nil, &agent.Message{From: 4_711, To: m.To, Region: p.Region, Name: p.Name, Stamp: x.stamp()})
		x.Must(err)
	case "cells":
		frame = x.countsFrame(p, -1, gossip.DefaultFrameCells+1, 0)
	case "most-cells":
		frame = x.countsFrame(p, -1, gossip.DefaultFrameCells, 0)
	case "cells-of-another":
		all, err := new(wire.Decoder).Decode(p.ID, x.driver.Self(), x.countsFrame(p, -1, 1, 0))
		x.Must(err)
		more, err := new(wire.Decoder).Decode(p.ID, x.driver.Self(), x.countsFrame(p, -1, gossip.DefaultFrameCells+1, 1))
		x.Must(err)
		more[0].Header = all[0].Header
		frame, err = wire.Encode(nil, append(all, more...))
		x.Must(err)
	case "shards":
		frame = x.countsFrame(p, -1, 1, 0)
		all, err := new(wire.Decoder).Decode(p.ID, x.driver.Self(), frame)
		x.Must(err)
		all[0].Shards, all[0].Shard = 64, 63
		frame, err = wire.Encode(nil, all)
		x.Must(err)
	default:
		x.t.Fatalf("no kind %s", kind)
	}
	x.receive(p, frame)
}
