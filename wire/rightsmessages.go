package wire

import "github.com/georld/rld/gossip"

// rightsMessages encodes the messages about transfers of rights.
func (e *Encoder) rightsMessages(m *gossip.Message) error {
	if len(m.RightsMessages) > gossip.MaxRightsMessages {
		return &SizeError{What: "rightsMessages", Got: len(m.RightsMessages), Max: gossip.MaxRightsMessages}
	}
	for i := range m.RightsMessages {
		n := &m.RightsMessages[i]
		if n.Kind < gossip.TransferRequest || n.Kind > gossip.MaxRightsMessage {
			return malformed("shard %d: rights message of kind %d, want %d to %d", m.Shard, n.Kind, gossip.TransferRequest, gossip.MaxRightsMessage)
		}
		at := e.open(partRightsMessages)
		e.uint(rightsMessageKind, uint64(n.Kind))
		key := e.open(rightsMessageKey)
		e.b = appendKey(e.b, n.Key)
		e.close(key)
		e.uint(rightsMessageWindow, zigzag(n.Window))
		e.word(rightsMessageRule, n.Rule)
		e.uint(rightsMessageRights, n.Rights)
		e.uint(rightsMessageSecond, n.Second)
		e.uint(rightsMessageNeed, n.Need)
		if n.For != 0 {
			e.uint(rightsMessageFor, 1+e.incarnation(n.For))
		}
		e.close(at)
	}
	return nil
}

// readRightsMessages decodes the messages about transfers of rights.
func (d *Decoder) readRightsMessages(r *reader, m *gossip.Message) {
	for content := r.content(partRightsMessages); content != nil; content = r.content(partRightsMessages) {
		if len(m.RightsMessages) == gossip.MaxRightsMessages {
			d.exceed("rightsMessages", len(m.RightsMessages)+1, gossip.MaxRightsMessages)
			return
		}
		m.RightsMessages = append(m.RightsMessages, d.readRightsMessage(reader{d: d, b: content}))
	}
}

func (d *Decoder) readRightsMessage(r reader) gossip.RightsMessage {
	kind := r.uint(rightsMessageKind)
	if kind < uint64(gossip.TransferRequest) || kind > uint64(gossip.MaxRightsMessage) {
		r.fail("rights message of kind %d, want %d to %d", kind, gossip.TransferRequest, gossip.MaxRightsMessage)
	}
	n := gossip.RightsMessage{Kind: gossip.RightsMessageKind(kind)}
	key := r.content(rightsMessageKey)
	if len(key) != keySize {
		r.fail("key of a rights message of %d bytes, want %d", len(key), keySize)
		return n
	}
	n.Key = readKey(key)
	n.Window = unzigzag(r.uint(rightsMessageWindow))
	n.Rule = r.word(rightsMessageRule, "rule of a rights message")
	n.Rights, n.Second, n.Need = r.uint(rightsMessageRights), r.uint(rightsMessageSecond), r.uint(rightsMessageNeed)
	if incarnation := r.uint(rightsMessageFor); incarnation > 0 {
		if n.For = d.incarnation(incarnation - 1); n.For == 0 {
			r.fail("rights message for incarnation 0, want it left out")
		}
	}
	r.end()
	return n
}
