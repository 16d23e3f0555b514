package wire

import (
	"encoding/binary"
	"hash/crc32"

	"google.golang.org/protobuf/proto"

	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/quota/epoch"
)

// The offsets of the header's fields, and its size.
const (
	storedMagic   = "rldright"
	storedVersion = 1

	storedAtVersion  = 8
	storedAtChecksum = 12
	storedAtCluster  = 16
	storedAtName     = 24
	storedAtPayload  = 28
	storedHead       = 32
)

// EncodeStored returns the bytes of the file with the daemon's durable state.
// cluster is the fingerprint of the cluster and name the daemon's name:
// DecodeStored rejects the file of another.
func EncodeStored(cluster uint64, name string, s *agent.Stored) []byte {
	// It never fails, since the file has no text that might be invalid.
	payload, _ := deterministic.Marshal(&rldv1.RightsFile{
		Region: rightsRecord(&s.Region), Local: rightsRecord(&s.Local),
		Genesis: s.Genesis[:], Number: s.Number,
	})
	b := make([]byte, storedHead, storedHead+len(name)+len(payload))
	copy(b, storedMagic)
	binary.LittleEndian.PutUint32(b[storedAtVersion:], storedVersion)
	binary.LittleEndian.PutUint64(b[storedAtCluster:], cluster)
	binary.LittleEndian.PutUint32(b[storedAtName:], uint32(len(name)))
	binary.LittleEndian.PutUint32(b[storedAtPayload:], uint32(len(payload)))
	b = append(append(b, name...), payload...)
	binary.LittleEndian.PutUint32(b[storedAtChecksum:], crc32.Checksum(b[storedAtCluster:], castagnoli))
	return b
}

// DecodeStored returns the durable state in the file of the daemon of this name
// in this cluster. The error is a *StoredError.
func DecodeStored(data []byte, cluster uint64, name string) (*agent.Stored, error) {
	payload, err := storedPayload(data, cluster, name)
	if err != nil {
		return nil, err
	}
	var f rldv1.RightsFile
	if err := proto.Unmarshal(payload, &f); err != nil {
		return nil, stored(Damaged, "its content is none: %v", err)
	}
	if len(f.Genesis) != 2 {
		return nil, stored(Damaged, "it names %d beginnings, want 2", len(f.Genesis))
	}
	var regions, daemons rightsReader
	s := &agent.Stored{
		Genesis: [2]uint64(f.Genesis), Number: f.Number,
		Region: regions.record(f.Region), Local: daemons.record(f.Local),
	}
	switch {
	case regions.err != nil:
		return nil, stored(Damaged, "regions: %v", regions.err)
	case daemons.err != nil:
		return nil, stored(Damaged, "daemons: %v", daemons.err)
	}
	return s, nil
}

// storedPayload checks the header of the file and returns the bytes behind it.
func storedPayload(data []byte, cluster uint64, name string) ([]byte, error) {
	n := len(data)
	if known := min(n, len(storedMagic)); string(data[:known]) != storedMagic[:known] {
		return nil, stored(Foreign, "it is no file of rights: it begins with %q, want %q", data[:known], storedMagic)
	}
	if n < storedHead {
		return nil, stored(Truncated, "it has %d bytes, want at least %d", n, storedHead)
	}
	if v := binary.LittleEndian.Uint32(data[storedAtVersion:]); v != storedVersion {
		return nil, stored(Foreign, "it has version %d, want %d: it is of another release", v, storedVersion)
	}
	names := uint64(binary.LittleEndian.Uint32(data[storedAtName:]))
	payload := uint64(binary.LittleEndian.Uint32(data[storedAtPayload:]))
	switch want := storedHead + names + payload; {
	case uint64(n) < want:
		return nil, stored(Truncated, "it has %d bytes, want %d", n, want)
	case uint64(n) > want:
		return nil, stored(Damaged, "it has %d bytes, want %d", n, want)
	}
	got := crc32.Checksum(data[storedAtCluster:], castagnoli)
	if want := binary.LittleEndian.Uint32(data[storedAtChecksum:]); got != want {
		return nil, stored(Damaged, "its checksum is %08x, want %08x", got, want)
	}
	if c := binary.LittleEndian.Uint64(data[storedAtCluster:]); c != cluster {
		return nil, stored(Foreign, "it is from another cluster: it names %016x, want %016x", c, cluster)
	}
	if is := string(data[storedHead : storedHead+names]); is != name {
		return nil, stored(Foreign, "it is of daemon %q, want that of %q", is, name)
	}
	return data[storedHead+names:], nil
}

func rightsRecord(r *epoch.Record) *rldv1.RightsRecord {
	return &rldv1.RightsRecord{
		Stopped: rightsStopped(r),
		Owner:   r.Owner, Regional: r.Regional, Base: rightsEpoch(&r.Base),
		BaseFromMs: r.BaseFrom, BaseHeld: rightsHeld(r.BaseHeld), Mine: rightsIDs(r.Mine),
		Top: rightsID(r.Top), Pruned: rightsID(r.Pruned), WindowMs: r.Bounds.Window, HorizonMs: r.Bounds.Horizon,
		Epochs: listOf(r.Epochs, rightsEpoch), Acks: listOf(r.Acks, rightsAck),
		Settled: rightsID(r.Settled), SettledFromMs: r.SettledFrom, SettledHeld: rightsHeld(r.SettledHeld),
	}
}

// rightsStopped returns the part of a record after Stop, nil for another one.
func rightsStopped(r *epoch.Record) *rldv1.RightsStopped {
	if !r.Stopped {
		return nil
	}
	return &rldv1.RightsStopped{
		UnknownMs: r.Unknown, ExtendedMs: r.Extended,
		Past: listOf(r.Past, func(p *epoch.Past) *rldv1.RightsPast {
			return &rldv1.RightsPast{
				FromMs: p.From, CountsMs: p.Counts, UntilMs: p.Until, Amount: p.Amount, Weight: p.Weight, Total: p.Total,
				Rules: listOf(p.Rules, func(r *epoch.PastRule) *rldv1.RightsPastRule {
					return &rldv1.RightsPastRule{Rule: r.Rule, Amount: r.Amount}
				}),
			}
		}),
	}
}

// pastOf returns the owner's amounts of pruned epochs.
func pastOf(p *rldv1.RightsPast) epoch.Past {
	return epoch.Past{
		From: p.GetFromMs(), Counts: p.GetCountsMs(), Until: p.GetUntilMs(),
		Amount: p.GetAmount(), Weight: p.GetWeight(), Total: p.GetTotal(),
		Rules: fromList(p.GetRules(), func(r *rldv1.RightsPastRule) epoch.PastRule {
			return epoch.PastRule{Rule: r.GetRule(), Amount: r.GetAmount()}
		}),
	}
}

func (c *rightsReader) record(r *rldv1.RightsRecord) epoch.Record {
	if r == nil {
		c.fail("no record where one belongs")
		return epoch.Record{}
	}
	stopped := r.GetStopped()
	return epoch.Record{
		Stopped: stopped != nil, Unknown: stopped.GetUnknownMs(), Extended: stopped.GetExtendedMs(),
		Past:  fromList(stopped.GetPast(), pastOf),
		Owner: r.Owner, Regional: r.Regional, Base: c.epoch(r.Base),
		BaseFrom: r.BaseFromMs, BaseHeld: heldOf(r.BaseHeld),
		Mine: idsOf(r.Mine), Top: idOf(r.Top), Pruned: idOf(r.Pruned),
		Bounds: epoch.Bounds{Window: r.WindowMs, Horizon: r.HorizonMs},
		Epochs: fromList(r.Epochs, c.epoch), Acks: fromList(r.Acks, c.ack),
		Settled: idOf(r.Settled), SettledFrom: r.SettledFromMs, SettledHeld: heldOf(r.SettledHeld),
	}
}
