package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/georld/rld/hlc"
	"github.com/georld/rld/quota/epoch"
)

// drawRecord draws a first record.
func drawRecord(t *rapid.T) *Record {
	f := &Founding{Cluster: drawNumber(t), Begun: rapid.Int64().Draw(t, "begun")}
	left := uint32(Whole)
	for i := range rapid.IntRange(1, 5).Draw(t, "regions") {
		weight := rapid.Uint32Range(0, left).Draw(t, "weight")
		f.Regions = append(f.Regions, FirstRegion{Name: string(rune('a' + i)), Weight: weight, Founders: []ID{drawID(t)}})
		left -= weight
	}
	f.Regions[0].Weight += left
	for i := range rapid.IntRange(1, MaxFounders).Draw(t, "founders") {
		f.Founders = append(f.Founders, Founder{Name: string(rune('a' + i)), Region: "a", Daemon: drawID(t), Raft: Number(i + 1)})
	}
	return f.record()
}

func drawNumber(t *rapid.T) Number { return Number(rapid.Uint64Min(1).Draw(t, "number")) }

func drawID(t *rapid.T) (d ID) {
	copy(d[:], rapid.SliceOfN(rapid.Byte(), len(d), len(d)).Draw(t, "id"))
	return d
}

// lawsFormat is the newest format that is read here.
const lawsFormat = 3

// drawFormat draws a change of the format. Most of them are possible.
func drawFormat(t *rapid.T, r *Record) *FormatChange {
	c := &FormatChange{Op: rapid.SampledFrom([]FormatOp{NextReadable, NextUnread, RaiseFormat, HoldFormat, UnholdFormat, "double"}).Draw(t, "op")}
	c.Format = rapid.SampledFrom([]int{r.Next.Format, r.Format + 1, r.Format, maxFormat + 1}).Draw(t, "format")
	return c
}

// drawEntry draws an entry. Most of them were checked against the record.
func drawEntry(t *rapid.T, r *Record) *Entry {
	e := &Entry{
		Format: r.Format, Changes: r.Changes, Before: r.Hash(),
		Command: Command{Request: drawNumber(t), At: rapid.Int64().Draw(t, "at"), Author: drawText(t), Reason: drawText(t)},
	}
	switch rapid.IntRange(0, 19).Draw(t, "checked") {
	case 0:
		e.Changes += rapid.Uint64Range(0, 2).Draw(t, "changes")
		e.Before = rapid.SampledFrom([]string{"", e.Before}).Draw(t, "before")
	case 1:
		e.Format++
	case 2:
		e.Command.Request = rapid.SampledFrom(r.Outcomes).Draw(t, "repeated").Request
	case 3: // a refusal, as a leader makes it
		e.Command, e.Refused = Command{Request: e.Command.Request}, shorten(drawText(t), maxRefusal)
		return e
	}
	kind := rapid.IntRange(0, 31).Draw(t, "kind")
	if kind > 15 {
		c := drawLimitsChange(t, r)
		e.Limits = &c
		return e
	}
	if rapid.IntRange(0, 9).Draw(t, "dropped") == 0 {
		e.Dropped = &Command{
			Request: drawNumber(t), Version: Version{Recovery{rapid.Uint32().Draw(t, "recovery"), 7}, 1}, Author: drawText(t), Text: drawText(t),
		}
	}
	if kind == 15 {
		e.Change.Format = drawFormat(t, r)
		e.Format = e.Change.makes(r.Format)
		return e
	}
	if kind == 2 {
		e.Dead = drawDead(t, r)
		return e
	}
	if kind == 3 {
		e.Change.Epoch = drawEpoch(t, r)
		return e
	}
	if kind > 0 {
		e.Region = drawChange(t, r)
	}
	if kind < 2 {
		e.Note = &Note{drawText(t)}
	}
	return e
}

// drawDead draws an id that ended, now and then one that has ended before, or
// with impossible times.
func drawDead(t *rapid.T, r *Record) *DeadID {
	d := DeadID{ID: drawID(t), From: rapid.Int64().Draw(t, "from"), Until: rapid.Int64().Draw(t, "until")}
	if d.Until < d.From && rapid.IntRange(0, 9).Draw(t, "order") > 0 {
		d.From, d.Until = d.Until, d.From
	}
	if len(r.Dead) > 0 && rapid.IntRange(0, 5).Draw(t, "again") == 0 {
		d.ID = rapid.SampledFrom(r.Dead).Draw(t, "dead").ID
	}
	return &d
}

// drawEpoch draws the next epoch of the rebalancer, now and then one that does
// not fit the record.
func drawEpoch(t *rapid.T, r *Record) *epoch.Epoch {
	newest, err := r.Newest()
	if err != nil {
		t.Fatal(err)
	}
	e := newest
	e.Members = slices.Clone(e.Members)
	e.ID = epoch.ID{Stamp: newest.ID.Stamp + hlc.Timestamp(rapid.IntRange(0, 5).Draw(t, "stamp")), Proposer: rapid.Uint64Range(0, 3).Draw(t, "proposer")}
	e.Pred = rapid.SampledFrom([]epoch.ID{{}, newest.Pred, newest.ID}).Draw(t, "predecessor")
	e.Rules = nil
	for i := range rapid.IntRange(0, 3).Draw(t, "rules") {
		shares := make([]uint32, len(e.Members))
		shares[rapid.IntRange(0, len(shares)-1).Draw(t, "region")] = Whole
		e.Rules = append(e.Rules, epoch.RuleShares{Rule: uint64(i + 1), Shares: shares})
	}
	switch rapid.IntRange(0, 9).Draw(t, "fits") {
	case 0:
		e.Members[0].Amount++
	case 1:
		e.Members[0].ID++
	case 2:
		e.Retired = nil
	case 3:
		e.Horizon = 1_000
	}
	return &e
}

// drawChange draws a change of the regions. Most of them are possible.
func drawChange(t *rapid.T, r *Record) *RegionChange {
	c := &RegionChange{
		Op:   rapid.SampledFrom([]RegionOp{AddRegion, WeighRegion, DrainRegion, RemoveRegion}).Draw(t, "op"),
		Name: rapid.SampledFrom(r.names()).Draw(t, "region"), Weight: rapid.Uint32Range(1, Whole-1).Draw(t, "weight"),
	}
	if c.Op == AddRegion {
		c.Name = rapid.StringMatching("[a-z]{1,3}").Draw(t, "new region")
		c.Founders = []ID{drawID(t)}
		if rapid.IntRange(0, 4).Draw(t, "repeated") == 0 {
			c.Dropped = &Command{Request: drawNumber(t), Version: Version{Recovery{rapid.Uint32().Draw(t, "recovery"), 7}, 1}}
		}
	}
	if newest, err := r.Newest(); err == nil {
		c.Epoch.ID = epoch.ID{Stamp: newest.ID.Stamp + hlc.Timestamp(rapid.IntRange(0, 5).Draw(t, "stamp")), Proposer: rapid.Uint64().Draw(t, "proposer")}
		c.Epoch.Pred = rapid.SampledFrom([]epoch.ID{{}, newest.ID, c.Epoch.ID}).Draw(t, "predecessor")
		c.Epoch.Retired = slices.Clone(newest.Retired)
		if g := r.Region(c.Name); c.Op == RemoveRegion && g != nil {
			c.Stopped = rapid.Bool().Draw(t, "stopped")
			c.Epoch.Retired = append(c.Epoch.Retired, epoch.Retirement{ID: g.ID(), From: 7})
			slices.SortFunc(c.Epoch.Retired, compareRetirements)
		}
	}
	switch rapid.IntRange(0, 9).Draw(t, "possible") {
	case 0:
		c.Op = rapid.SampledFrom([]RegionOp{"", "double"}).Draw(t, "other op")
	case 1:
		c.Name = rapid.SampledFrom([]string{"", "a", "x\xff", "<&>"}).Draw(t, "other region")
	case 2:
		c.Weight = rapid.OneOf(rapid.Uint32Range(0, 2), rapid.Uint32Range(Whole-2, Whole+1), rapid.Uint32()).Draw(t, "other weight")
	}
	return c
}

func drawText(t *rapid.T) string {
	switch rapid.IntRange(0, 29).Draw(t, "long") {
	case 0:
		return strings.Repeat("x", rapid.IntRange(0, 5_000).Draw(t, "length"))
	case 1, 2, 3:
	default:
		return "text"
	}
	return rapid.OneOf(rapid.String(), rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
	})).Draw(t, "text")
}

// drawItem draws a committed item that may follow a record. One voter at least
// remains, as raft sees to.
func drawItem(t *rapid.T, r *Record, index uint64) *Item {
	it := &Item{Index: index}
	switch rapid.IntRange(0, 9).Draw(t, "item") {
	case 0: // the first one of a leader
	case 1, 2:
		it.Voter = &Voter{Raft: r.Voters[len(r.Voters)-1].Raft + 1, Daemon: drawID(t), Region: "b", Learner: rapid.Bool().Draw(t, "learner")}
		if rapid.Bool().Draw(t, "remove") {
			v := rapid.SampledFrom(r.Voters).Draw(t, "voter")
			it.Voter, it.Remove = &v, v.Learner || r.Voting() > 1
		}
	case 3:
		it.Entry = rapid.SliceOf(rapid.Byte()).Draw(t, "entry")
	default:
		it.Entry = drawEntry(t, r).Encode()
	}
	return it
}

// TestRecordLaws checks records that random items make: each is valid, has one
// form, which restores it, and depends on the items alone.
func TestRecordLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, used := drawRecord(t), map[uint64]string{}
		for range rapid.IntRange(0, 20).Draw(t, "items") {
			it := drawItem(t, r, r.Version.Index+1)
			before := r.Encode()
			next, err := r.after(it, lawsFormat)
			if !bytes.Equal(r.Encode(), before) {
				t.Fatalf("the record before %s changed", it.Entry)
			}
			if next == nil {
				checkUnread(t, r, it, err)
				continue
			}
			checkAfter(t, r, it, next, err)
			checkEpochs(t, r, next, used)
			r = next
		}
	})
}

// checkEpochs checks the epochs of a record: the newest one, with the weights
// of the regions, divides the whole among them and nobody else; it is above all
// former ones, and keeps retirements that are not settled; and no participant
// is used twice.
func checkEpochs(t *rapid.T, r, next *Record, used map[uint64]string) {
	newest, err := next.Newest()
	former, _ := r.Newest()
	if err != nil || newest.Total() != Whole || len(newest.Members) != len(next.Regions) {
		t.Fatalf("epoch %+v of regions %+v: %v", newest, next.Regions, err)
	}
	for _, g := range next.Regions {
		if weightIn(&newest, g.ID()) != uint64(g.Weight) {
			t.Fatalf("region %q has a weight of %d, and in the newest epoch %d", g.Name, g.Weight, weightIn(&newest, g.ID()))
		}
		for _, rule := range newest.Rules {
			if newest.AmountOf(rule.Rule, g.ID()) > 0 && g.Draining {
				t.Fatalf("region %q drains, with a share of rule %d", g.Name, rule.Rule)
			}
		}
		made := fmt.Sprint(g.Name, g.Generation)
		if was, is := used[g.ID()]; is && was != made {
			t.Fatalf("%s is the participant that %s was", made, was)
		}
		used[g.ID()] = made
		if len(g.Founders) == 0 {
			t.Fatalf("region %q without founders", g.Name)
		}
	}
	if newest.ID == former.ID {
		return
	}
	if !former.ID.Before(newest.ID) {
		t.Fatalf("epoch %v after %v", newest.ID, former.ID)
	}
	for _, d := range former.Retired {
		if newest.Pred.Before(former.ID) && !slices.Contains(newest.Retired, d) {
			t.Fatalf("epoch %+v forgets %+v of %+v", newest, d, former)
		}
	}
}

// checkUnread checks that an item which no record follows is one of a later
// version of rld, or of no version.
func checkUnread(t *rapid.T, r *Record, it *Item, err error) {
	if e, unread := DecodeEntry(it.Entry); err == nil || unread == nil && e.Format <= lawsFormat {
		t.Fatalf("no record after %s: %v", it.Entry, err)
	}
}

// checkAfter checks the record after an item, and the error of one that changes
// nothing.
func checkAfter(t *rapid.T, r *Record, it *Item, next *Record, refused error) {
	if err := next.validate(); err != nil {
		t.Fatalf("after %s: %v", it.Entry, err)
	}
	sum := uint64(0)
	for _, g := range next.Regions {
		sum += uint64(g.Weight)
	}
	if sum != Whole {
		t.Fatalf("after %s: weights sum to %d", it.Entry, sum)
	}
	if next.Version != (Version{r.Version.Recovery, it.Index}) {
		t.Fatalf("version %v after item %d of %v", next.Version, it.Index, r.Version)
	}
	requests := map[Number]string{}
	for _, o := range next.Outcomes {
		requests[o.Request] = o.Refused
	}
	if len(requests) < len(next.Outcomes) {
		t.Fatalf("after %s a command has two outcomes", it.Entry)
	}
	done := map[Number]bool{}
	for _, c := range next.History {
		if why, known := requests[c.Request]; done[c.Request] || !known || why != "" {
			t.Fatalf("after %s command %v is done twice, or its outcome is %q", it.Entry, c.Request, why)
		}
		done[c.Request] = true
	}
	same := next.Changes == r.Changes && next.Hash() == r.Hash()
	if refused != nil && !same || refused == nil && it.Entry != nil && next.Changes != r.Changes+1 {
		t.Fatalf("after %s with error %v: %d changes of %d", it.Entry, refused, next.Changes, r.Changes)
	}
	restored, err := DecodeRecord(next.Encode(), lawsFormat)
	if err != nil {
		t.Fatalf("after %s: %v", it.Entry, err)
	}
	if !bytes.Equal(restored.Encode(), next.Encode()) || restored.Hash() != next.Hash() {
		t.Fatalf("%s is restored as %s", next.Encode(), restored.Encode())
	}
	// The same item makes the same record of one that came from a disk.
	former, err := DecodeRecord(r.Encode(), lawsFormat)
	if err != nil {
		t.Fatal(err)
	}
	again, err := former.after(it, lawsFormat)
	if !bytes.Equal(again.Encode(), next.Encode()) || again.Hash() != next.Hash() || (err == nil) != (refused == nil) {
		t.Fatalf("%s the first time and %s the second time, errors %v and %v", next.Encode(), again.Encode(), refused, err)
	}
}

// TestEntryLaws checks that entries have one form, which restores them.
func TestEntryLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEntry(t, drawRecord(t))
		once, err := DecodeEntry(e.Encode())
		if err != nil {
			t.Fatalf("%s: %v", e.Encode(), err)
		}
		twice, err := DecodeEntry(once.Encode())
		if err != nil || !bytes.Equal(once.Encode(), twice.Encode()) {
			t.Fatalf("%s, then %s: %v", once.Encode(), twice.Encode(), err)
		}
	})
}

// aHistory returns what the disks of a cluster hold after founding, commands,
// changes of voters, a recovery and an old disk.
func aHistory(t testing.TB) (disks [][][]byte) {
	w := newWorld(t, 1, "a-0", "b-0", "c-0")
	for _, name := range []string{"a-0", "b-0", "c-0", "c-1"} {
		w.add(name[:1], name, true)
	}
	w.run(time.Second)
	if err := w.find("a-0").node.Init(even("a", "b", "c"), true); err != nil {
		t.Fatal(err)
	}
	w.until("begun", 20*time.Second, func() bool { return w.leader() != nil && w.equal() })
	old := slices.Clone(w.find("b-0").disk)
	w.submit(w.find("b-0"), Change{Region: &RegionChange{Op: AddRegion, Name: "d", Weight: 100_000}})
	w.submit(w.find("b-0"), Change{Note: &Note{Text: "note"}})
	w.crash(w.find("c-0"))
	w.until("a vote", time.Minute, func() bool { return w.find("c-1").node.Status().Votes })
	w.run(10 * time.Second)
	disks = append(disks, old, w.find("c-1").node.Snapshot())
	w.crash(w.find("b-0"))
	w.find("b-0").disk = old
	w.start(w.find("b-0"))
	w.run(20 * time.Second)
	w.crash(w.find("c-1"))
	w.crash(w.find("b-0"))
	w.run(time.Second)
	if err := w.find("a-0").node.Recover(RecoverRequest{Author: "operator", Reason: "lost"}); err != nil {
		t.Fatal(err)
	}
	w.run(10 * time.Second)
	for _, m := range w.machines {
		disks = append(disks, m.disk)
	}
	return disks
}

// FuzzRecord checks that no bytes make DecodeRecord or DecodeEntry panic, and
// that a record that is accepted stays valid under any entry that is.
func FuzzRecord(f *testing.F) {
	for _, items := range aHistory(f) {
		for _, data := range items {
			var s stored
			form, err := unpack(data, maxItem)
			if err == nil {
				err = json.Unmarshal(form, &s)
			}
			if err != nil {
				f.Fatal(err)
			}
			switch {
			case s.Base != nil:
				f.Add([]byte(s.Base), []byte(nil))
			case s.Item != nil:
				f.Add([]byte(nil), s.Item.Entry)
			}
		}
	}
	f.Add([]byte(`{"format":1}`), []byte(`null`))
	known := (&Founding{Cluster: 1, Regions: even("a", "b"), Founders: []Founder{{Name: "a", Raft: 1}}}).record()
	f.Fuzz(func(t *testing.T, record, entry []byte) {
		r, err := DecodeRecord(record, lawsFormat)
		if err != nil {
			r = known
		} else if !bytes.Equal(r.Encode(), record) {
			t.Fatalf("accepted %q, which Encode does not return", record)
		}
		next, err := r.after(&Item{Index: r.Version.Index + 1, Entry: entry}, lawsFormat)
		if next != nil {
			checkFuzzed(t, r, next, err)
		}
		e, err := DecodeEntry(entry)
		if err != nil {
			return
		}
		e.Format, e.Changes, e.Before = r.Format, r.Changes, r.Hash()
		next, err = r.apply(Version{r.Version.Recovery, r.Version.Index + 1}, e)
		checkFuzzed(t, r, next, err)
	})
}

func checkFuzzed(t *testing.T, r, next *Record, refused error) {
	if err := next.validate(); err != nil {
		t.Fatalf("%s became invalid: %v", r.Encode(), err)
	}
	if _, err := DecodeRecord(next.Encode(), lawsFormat); err != nil {
		t.Fatalf("%s: %v", next.Encode(), err)
	}
	if refused != nil && next.Hash() != r.Hash() {
		t.Fatalf("refused (%v), and changed", refused)
	}
}

// FuzzStored starts a daemon with items of real disks in any order, and one
// item of any bytes among them. It is refused, or it runs, and a snapshot of it
// restores the same.
func FuzzStored(f *testing.F) {
	var pool [][]byte
	for _, items := range aHistory(f) {
		var order []byte
		for _, data := range items {
			i := slices.IndexFunc(pool, func(o []byte) bool { return bytes.Equal(o, data) })
			if i < 0 && len(pool) < 256 {
				i, pool = len(pool), append(pool, data)
			}
			if i >= 0 {
				order = append(order, byte(i))
			}
		}
		f.Add(order, uint(0), []byte(nil))
		f.Add(order, uint(len(order)/2), items[len(items)-1])
		f.Add(order[:len(order)/2], uint(len(order)/2), items[0])
	}
	f.Fuzz(func(t *testing.T, order []byte, at uint, other []byte) {
		var items [][]byte
		for i, o := range order[:min(len(order), 200)] {
			if uint(i) == at && other != nil {
				items = append(items, other)
			}
			items = append(items, pool[int(o)%len(pool)])
		}
		start, err := Recover(items, Config{})
		if err != nil {
			return
		}
		n, err := open(Config{Name: "a-0", Region: "a", Durable: true, Founders: []string{"a-0"}}, start)
		if err != nil {
			return
		}
		n.Peers(0, 1, []Peer{{Address: 1, Name: "a-0", Region: "a"}, {Address: 2, Name: "b-0", Region: "b"}})
		for at := time.Duration(0); at < 10*time.Second; at += 100 * time.Millisecond {
			n.Tick(at, 1)
			if r := n.Ready(at); r.Store != nil {
				n.Stored(at)
				n.Ready(at)
			}
		}
		again, err := Recover(n.Snapshot(), Config{})
		if err != nil {
			t.Fatalf("a snapshot cannot be restored: %v", err)
		}
		if is, was := again.record, n.Record(); (is == nil) != (was == nil) || is != nil && !bytes.Equal(is.Encode(), was.Encode()) {
			t.Fatalf("record %v restored as %v", was, is)
		}
	})
}
