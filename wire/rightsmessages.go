package wire

import "github.com/georld/rld/gossip"

// rightsMessages encodes the messages about transfers of rights.
func (e *Encoder) rightsMessages(m *gossip.Message) error {
	if len(m.RightsMessages) > gossip.MaxRightsMessages {
		return &SizeError{What: "rightsMessages", Got: len(m.RightsMessages), Max: gossip.MaxRightsMessages}
	}
	e.optional(uint64(len(m.RightsMessages)))
	for i := range m.RightsMessages {
		n := &m.RightsMessages[i]
		if n.Kind < gossip.TransferRequest || n.Kind > gossip.MaxRightsMessage {
			return malformed("shard %d: rights message of kind %d, want %d to %d", m.Shard, n.Kind, gossip.TransferRequest, gossip.MaxRightsMessage)
		}
		e.byte(byte(n.Kind) | flag(rightsNamed, n.For != 0))
		e.key(n.Key)
		e.uint(zigzag(n.Window))
		e.word(n.Rule)
		e.uint(n.Rights)
		e.uint(n.Second)
		e.uint(n.Need)
		if n.For != 0 {
			e.incarnation(n.For)
		}
	}
	return nil
}

// rightsLeast is the size of the shortest rights message.
const rightsLeast = 1 + keySize + 1 + 8 + 1 + 1 + 1

// readRightsMessages decodes the messages about transfers of rights.
func (d *Decoder) readRightsMessages(r *reader, m *gossip.Message) {
	n := r.number("rightsMessages", gossip.MaxRightsMessages, rightsLeast)
	if n > 0 {
		m.RightsMessages = make([]gossip.RightsMessage, n)
	}
	for i := range m.RightsMessages {
		if m.RightsMessages[i] = readRightsMessage(r); d.err != nil {
			return
		}
	}
}

func readRightsMessage(r *reader) gossip.RightsMessage {
	head := r.byte()
	kind := gossip.RightsMessageKind(head &^ rightsNamed)
	if kind < gossip.TransferRequest || kind > gossip.MaxRightsMessage {
		r.fail("rights message of kind %d, want %d to %d", kind, gossip.TransferRequest, gossip.MaxRightsMessage)
	}
	n := gossip.RightsMessage{Kind: kind, Key: r.key(), Window: unzigzag(r.varint())}
	n.Rule = r.word("rule of a rights message")
	n.Rights, n.Second, n.Need = r.varint(), r.varint(), r.varint()
	if head&rightsNamed != 0 {
		if n.For = r.incarnation(); n.For == 0 {
			r.fail("rights message for incarnation 0, want it left out")
		}
	}
	return n
}
