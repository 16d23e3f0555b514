package limits

import (
	"strings"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/rules"
)

// descriptors reads a list of descriptors into nodes. seen holds the earlier
// descriptors of the same level.
func (l *loader) descriptors(s setting, scope *fileScope, seen *level) []rules.Node {
	if !s.given() {
		return nil
	}
	if s.Value.Kind != yamlpos.List {
		l.Errorf(s.Value.Pos, "write a list: - key: name", "descriptors is %s", s.Value.Describe())
		return nil
	}
	if len(scope.path) == MaxDepth {
		l.Errorf(s.Value.Pos, "a request has at most as many entries",
			"descriptors nested more than %d deep can never match", MaxDepth)
		return nil
	}
	nodes := make([]rules.Node, 0, len(s.Value.Items))
	for _, item := range s.Value.Items {
		var d decoded
		if !l.isMap(item) || !l.apply(item, inDescriptor, &d) {
			continue
		}
		n, ok := l.descriptor(&d, scope, seen)
		if !ok {
			break
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// descriptor reads one descriptor and the ones below it. It returns false when
// there are too many to continue.
func (l *loader) descriptor(d *decoded, scope *fileScope, seen *level) (rules.Node, bool) {
	n := rules.Node{Pos: rules.Position(d.at.Pos)}
	var keyed, valued bool
	n.Key, keyed = l.text(d.set[fKey], "key")
	n.Value, valued = l.text(d.set[fValue], "value")
	if n.Key == "" && d.meant[fKey] {
		keyed = false
	}
	if keyed && n.Key == "" {
		l.Errorf(d.set[fKey].posOr(d.at.Pos), "add key: NAME", "a descriptor without a key")
		keyed = false
	}
	if !l.room(d, &n, scope) {
		return n, false
	}
	if keyed && valued {
		seen.add(l, &n)
	}
	l.flags(d, &n)
	n.Metadata = l.metadata(d.set[fMetadata])
	n.Limit = l.limit(d, &scope.defaults)

	scope.path = append(scope.path, rules.Entry{Key: n.Key, Value: n.Value})
	scope.bytes += len(n.Key) + len(n.Value)
	n.Children = l.descriptors(d.set[fDescriptors], scope, &level{})
	scope.bytes -= len(n.Key) + len(n.Value)
	scope.path = scope.path[:len(scope.path)-1]
	return n, !l.full
}

// room counts one more rule, and adds one fault when there are too many.
func (l *loader) room(d *decoded, n *rules.Node, scope *fileScope) bool {
	l.rules++
	l.pathBytes += scope.bytes + len(n.Key) + len(n.Value)
	switch {
	case l.full:
		return false
	case l.rules > MaxRules:
		l.Errorf(d.at.Pos, "a key-only or wildcard descriptor stands for any number of values",
			"more than %d descriptors", MaxRules)
	case l.pathBytes > maxPathBytes:
		l.Errorf(d.at.Pos, "shorten the keys and values of parents",
			"the paths of the descriptors up to here are longer than %d MiB", maxPathBytes>>20)
	default:
		return true
	}
	l.full = true
	return false
}

// flags reads the modes of a descriptor that do not belong to its limit.
func (l *loader) flags(d *decoded, n *rules.Node) {
	for _, id := range []fieldID{fDetailedMetric, fValueToMetric} {
		// Accepted without effect, since the number of metrics is bounded.
		_, _ = l.boolean(d.set[id], id)
	}
	shared := d.set[fShareThreshold]
	n.ShareThreshold, _ = l.boolean(shared, fShareThreshold)
	if n.ShareThreshold && !strings.Contains(n.Value, "*") {
		l.Errorf(shared.pos(), "it makes one counter of all values that a * stands for; drop it, or add a *",
			"share_threshold on %s, which holds no *", yamlpos.Quote(entryText(rules.Entry{Key: n.Key, Value: n.Value})))
		n.ShareThreshold = false
	}
	if d.limit != nil {
		return
	}
	for _, id := range []fieldID{fShadowMode, fQuotaMode} {
		if on, _ := l.boolean(d.set[id], id); on {
			l.Warnf(d.set[id].pos(), "the mode is not handed down to the descriptors below",
				"%s has no effect without a rate_limit", id)
		}
	}
}

// level holds the descriptors of one level of the tree so far.
type level struct {
	at        map[rules.Entry]rules.Position
	wildcards map[string][]string // patterns by key, in file order
}

// maxShadows bounds how many earlier wildcards a later one is compared with.
const maxShadows = 64

// add adds a descriptor to the level, and reports one that is there already,
// and one that an earlier wildcard leaves nothing, or nothing but its own text.
func (v *level) add(l *loader, n *rules.Node) {
	pos := yamlpos.Position(n.Pos)
	e := rules.Entry{Key: n.Key, Value: n.Value}
	if first, twice := v.at[e]; twice {
		l.Errorf(pos, "keep one of the two", "descriptor %s is on this level already, in %s",
			yamlpos.Quote(entryText(e)), first)
		return
	}
	if v.at == nil {
		v.at = make(map[rules.Entry]rules.Position)
	}
	v.at[e] = n.Pos
	if strings.Contains(n.Key, "*") {
		l.Warnf(pos, "a wildcard goes into the value", "the * in the key %s stands for itself", yamlpos.Quote(n.Key))
	}
	for _, pattern := range v.wildcards[n.Key] {
		if (n.Value == "" || strings.Contains(n.Value, "*")) && covers(pattern, n.Value) {
			never := "can never match: %s takes all its values"
			if n.Value != "" { // a template of a gateway may be this text
				never = "matches this text alone: %s takes all its other values"
			}
			l.Warnf(pos, "put it first, or drop it", "%s "+never, yamlpos.Quote(entryText(e)), yamlpos.Quote(n.Key+"="+pattern))
			break
		}
	}
	v.remember(l, n)
}

// remember keeps a wildcard to compare later descriptors with.
func (v *level) remember(l *loader, n *rules.Node) {
	if !strings.Contains(n.Value, "*") || len(v.wildcards[n.Key]) == maxShadows {
		return
	}
	if v.wildcards == nil {
		v.wildcards = make(map[string][]string)
	}
	v.wildcards[n.Key] = append(v.wildcards[n.Key], n.Value)
	keyOnly := rules.Entry{Key: n.Key}
	if at, ok := v.at[keyOnly]; ok && covers(n.Value, "") {
		l.Warnf(yamlpos.Position(at), "drop one of the two", "%s can never match: %s takes all its values",
			yamlpos.Quote(n.Key), yamlpos.Quote(n.Key+"="+n.Value))
	}
}

// entryText returns an entry for messages: key=value or key.
func entryText(e rules.Entry) string {
	if e.Value == "" {
		return e.Key
	}
	return e.Key + "=" + e.Value
}

// covers reports whether every value that the wildcard later matches, or any
// value at all where later is "", is matched by the wildcard earlier. It may
// miss some that are.
func covers(earlier, later string) bool {
	if later == "" {
		return strings.Trim(earlier, "*") == ""
	}
	// A byte that no text has replaces the stars of later: only a star of
	// earlier can match it.
	return rules.Matches(earlier, strings.ReplaceAll(later, "*", "\xff"))
}
