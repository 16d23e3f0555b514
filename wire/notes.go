package wire

import (
	"encoding/binary"

	"github.com/georld/rld/gossip"
)

// notes writes what is said once.
func (e *encoder) notes(m *gossip.Message) error {
	if len(m.Notes) > gossip.MaxNotes {
		return &SizeError{What: "notes", Got: len(m.Notes), Max: gossip.MaxNotes}
	}
	for i := range m.Notes {
		n := &m.Notes[i]
		if n.Kind < gossip.Ask || n.Kind > gossip.MaxNote {
			return malformed("shard %d: note of kind %d, want %d to %d", m.Shard, n.Kind, gossip.Ask, gossip.MaxNote)
		}
		at := e.open(partNotes)
		e.uint(noteKind, uint64(n.Kind))
		key := e.open(noteKey)
		e.key(n.Key)
		e.close(key)
		e.uint(noteLabel, zigzag(n.Label-e.base))
		if n.Rule != 0 {
			e.b = append(e.b, byte(noteRule))
			e.b = binary.LittleEndian.AppendUint64(e.b, n.Rule)
		}
		e.uint(noteRights, n.Rights)
		e.uint(noteSecond, n.Second)
		e.uint(noteNeed, n.Need)
		if n.For != 0 {
			e.uint(noteFor, 1+e.slot(n.For))
		}
		e.close(at)
	}
	return nil
}

// readNotes reads what is said once.
func (d *decoder) readNotes(r *reader, m *gossip.Message) {
	for content := r.content(partNotes); content != nil; content = r.content(partNotes) {
		if len(m.Notes) == gossip.MaxNotes {
			d.exceed("notes", len(m.Notes)+1, gossip.MaxNotes)
			return
		}
		m.Notes = append(m.Notes, d.readNote(reader{d: d, b: content}))
	}
}

func (d *decoder) readNote(r reader) gossip.Note {
	kind := r.uint(noteKind)
	if kind < uint64(gossip.Ask) || kind > uint64(gossip.MaxNote) {
		r.fail("note of kind %d, want %d to %d", kind, gossip.Ask, gossip.MaxNote)
	}
	n := gossip.Note{Kind: gossip.NoteKind(kind)}
	key := r.content(noteKey)
	if len(key) != keySize {
		r.fail("key of a note of %d bytes, want %d", len(key), keySize)
		return n
	}
	n.Key = readKey(key)
	n.Label = d.base + unzigzag(r.uint(noteLabel))
	if r.next(noteRule) {
		if n.Rule = r.word(); n.Rule == 0 {
			r.fail("rule of a note is 0 or cut, want it left out")
		}
	}
	n.Rights, n.Second, n.Need = r.uint(noteRights), r.uint(noteSecond), r.uint(noteNeed)
	if slot := r.uint(noteFor); slot > 0 {
		if n.For = d.slot(slot - 1); n.For == 0 {
			r.fail("note for slot 0, want it left out")
		}
	}
	r.end()
	return n
}
