package gossip

import "time"

// toldRules is what a peer knows of the hash of the own rules: messages contain
// it until the peer has echoed one with it, and then once per tellEvery, since
// a peer may have dropped its link and made a new one.
type toldRules struct {
	rules uint64
	nonce uint64        // of the first message with it, 0 once the peer has it
	at    time.Duration // when it was sent last
}

// tellEvery is how often the hash of the rules is sent to a peer that has it.
const tellEvery = time.Second

// next returns the hash for a message, 0 for none.
func (t *toldRules) next(now time.Duration, rules, nonce uint64) uint64 {
	if t.rules != rules {
		t.rules, t.nonce = rules, nonce
	}
	if t.nonce == 0 && now/tellEvery == t.at/tellEvery {
		return 0
	}
	t.at = now
	return rules
}

// settle notes an echo of the peer.
func (t *toldRules) settle(echo uint64) {
	if t.nonce != 0 && t.nonce <= echo {
		t.nonce = 0
	}
}
