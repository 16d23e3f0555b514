package wire

import (
	"encoding/binary"

	"github.com/georld/rld/gossip"
)

// notes writes what is said once.
func (e *encoder) notes(m *gossip.Message) error {
	if len(m.RightsMessages) > gossip.MaxRightsMessages {
		return &SizeError{What: "notes", Got: len(m.RightsMessages), Max: gossip.MaxRightsMessages}
	}
	for i := range m.RightsMessages {
		n := &m.RightsMessages[i]
		if n.Kind < gossip.TransferRequest || n.Kind > gossip.MaxRightsMessage {
			return malformed("shard %d: note of kind %d, want %d to %d", m.Shard, n.Kind, gossip.TransferRequest, gossip.MaxRightsMessage)
		}
		at := e.open(partNotes)
		e.uint(noteKind, uint64(n.Kind))
		key := e.open(noteKey)
		e.key(n.Key)
		e.close(key)
		e.uint(noteWindow, zigzag(n.Window-e.base))
		if n.Rule != 0 {
			e.b = append(e.b, byte(noteRule))
			e.b = binary.LittleEndian.AppendUint64(e.b, n.Rule)
		}
		e.uint(noteRights, n.Rights)
		e.uint(noteSecond, n.Second)
		e.uint(noteNeed, n.Need)
		if n.For != 0 {
			e.uint(noteFor, 1+e.incarnation(n.For))
		}
		e.close(at)
	}
	return nil
}

// readNotes reads what is said once.
func (d *decoder) readNotes(r *reader, m *gossip.Message) {
	for content := r.content(partNotes); content != nil; content = r.content(partNotes) {
		if len(m.RightsMessages) == gossip.MaxRightsMessages {
			d.exceed("notes", len(m.RightsMessages)+1, gossip.MaxRightsMessages)
			return
		}
		m.RightsMessages = append(m.RightsMessages, d.readNote(reader{d: d, b: content}))
	}
}

func (d *decoder) readNote(r reader) gossip.RightsMessage {
	kind := r.uint(noteKind)
	if kind < uint64(gossip.TransferRequest) || kind > uint64(gossip.MaxRightsMessage) {
		r.fail("note of kind %d, want %d to %d", kind, gossip.TransferRequest, gossip.MaxRightsMessage)
	}
	n := gossip.RightsMessage{Kind: gossip.RightsMessageKind(kind)}
	key := r.content(noteKey)
	if len(key) != keySize {
		r.fail("key of a note of %d bytes, want %d", len(key), keySize)
		return n
	}
	n.Key = readKey(key)
	n.Window = d.base + unzigzag(r.uint(noteWindow))
	if r.next(noteRule) {
		if n.Rule = r.word(); n.Rule == 0 {
			r.fail("rule of a note is 0 or cut, want it left out")
		}
	}
	n.Rights, n.Second, n.Need = r.uint(noteRights), r.uint(noteSecond), r.uint(noteNeed)
	if incarnation := r.uint(noteFor); incarnation > 0 {
		if n.For = d.incarnation(incarnation - 1); n.For == 0 {
			r.fail("note for slot 0, want it left out")
		}
	}
	r.end()
	return n
}
