package daemon

import (
	"encoding/binary"
	"encoding/hex"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// keyRules are what overrides do to single keys. Both maps may be nil, and must
// not be modified.
type keyRules struct {
	blocked map[crdt.Key]bool
	resets  map[crdt.Key]node.KeyReset
}

// keyRulesOf returns the overrides of keys. The hasher names the keys that
// count in place of those that were reset: daemons with one secret agree.
func keyRulesOf(all []control.KeyOverride, h rules.Hasher) keyRules {
	var out keyRules
	for _, k := range all {
		digits, err := hex.DecodeString(k.Key)
		if err != nil || len(digits) != 16 {
			continue
		}
		key := crdt.Key{Hi: binary.BigEndian.Uint64(digits), Lo: binary.BigEndian.Uint64(digits[8:])}
		if k.Blocked {
			if out.blocked == nil {
				out.blocked = map[crdt.Key]bool{}
			}
			out.blocked[key] = true
		}
		if k.Reset != (control.Version{}) {
			if out.resets == nil {
				out.resets = map[crdt.Key]node.KeyReset{}
			}
			out.resets[key] = node.KeyReset{To: h.Derived(key, k.Reset.String()), From: k.ResetAt}
		}
	}
	return out
}
