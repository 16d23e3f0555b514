package audit

import (
	"slices"
	"strings"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/rules"
)

// language is a second, small reading of the limits language, from the text of
// the limits: what a descriptor matches, what its limit is and what it shares a
// counter with. It has nothing in common with packages limits and rules, and
// does not check what it reads. Defaults of a file are not read.
type language struct {
	domain string
	roots  []*written
}

// written is one descriptor of a file.
type written struct {
	key, value, path      string
	limited, unlimited    bool
	shadow, quota, shared bool
	name, unit, requests  string
	replaces              []string
	parent                *written
	children              []*written
}

// readLanguage reads a file of limits; nil when there is no text or it has
// defaults.
func readLanguage(text string) *language {
	root, _, fault := yamlpos.Parse("limits", []byte(text), yamlpos.Options{MaxBytes: len(text) + 1})
	if text == "" || fault != nil || root == nil || field(root, "defaults") != nil {
		return nil
	}
	return &language{domain: textOf(root, "domain"), roots: readLevel(root, nil)}
}

func readLevel(n *yamlpos.Node, parent *written) (all []*written) {
	list := field(n, "descriptors")
	if list == nil {
		return nil
	}
	for _, item := range list.Items {
		w := &written{
			key: textOf(item, "key"), value: textOf(item, "value"), parent: parent,
			shadow: isTrue(item, "shadow_mode"), quota: isTrue(item, "quota_mode"), shared: isTrue(item, "share_threshold"),
		}
		w.path = w.key
		if w.value != "" {
			w.path += "=" + w.value
		}
		if parent != nil {
			w.path = parent.path + " > " + w.path
		}
		if l := field(item, "rate_limit"); l != nil {
			w.limited, w.unlimited = true, isTrue(l, "unlimited")
			w.name, w.unit, w.requests = textOf(l, "name"), textOf(l, "unit"), textOf(l, "requests_per_unit")
			if r := field(l, "replaces"); r != nil {
				for _, name := range r.Items {
					w.replaces = append(w.replaces, textOf(name, "name"))
				}
			}
		}
		w.children = readLevel(item, w)
		all = append(all, w)
	}
	return all
}

// field returns a field of a map, nil for none. The last of two counts.
func field(n *yamlpos.Node, name string) *yamlpos.Node {
	for i := len(n.Pairs) - 1; i >= 0; i-- {
		if n.Pairs[i].Key.Text == name {
			return n.Pairs[i].Value
		}
	}
	return nil
}

func textOf(n *yamlpos.Node, name string) string {
	if v := field(n, name); v != nil {
		return v.Text
	}
	return ""
}

// isTrue reports whether a field is one of the words of YAML 1.1 for true.
func isTrue(n *yamlpos.Node, name string) bool {
	return slices.Contains([]string{"true", "yes", "on", "y"}, strings.ToLower(textOf(n, name)))
}

// match returns the entry of the tree that a descriptor matches, nil for none.
func (l *language) match(domain string, entries []rules.Entry) *written {
	if domain != l.domain {
		return nil
	}
	var at *written
	level := l.roots
	for _, e := range entries {
		at = best(level, e)
		if at == nil {
			return nil
		}
		level = at.children
	}
	return at
}

// best returns what an entry matches on a level: its own value first, then the
// first pattern, then the key alone.
func best(level []*written, e rules.Entry) *written {
	var pattern, alone *written
	for _, w := range level {
		switch {
		case w.key != e.Key:
		case w.value == "":
			alone = w
		case w.value == e.Value:
			return w
		case pattern == nil && strings.Contains(w.value, "*") && covers(w.value, e.Value):
			pattern = w
		}
	}
	if pattern != nil {
		return pattern
	}
	return alone
}

// covers reports whether a pattern, in which * stands for any text, covers a
// text.
func covers(pattern, text string) bool {
	if pattern == "" {
		return text == ""
	}
	if pattern[0] == '*' {
		for i := range len(text) + 1 {
			if covers(pattern[1:], text[i:]) {
				return true
			}
		}
		return false
	}
	return text != "" && text[0] == pattern[0] && covers(pattern[1:], text[1:])
}

// counterName names the counter of a descriptor, but for its window: values
// that share a threshold are named by their pattern.
func counterName(domain string, entries []rules.Entry, w *written) string {
	patterns := make([]string, len(entries))
	for i := len(entries) - 1; w != nil && i >= 0; i, w = i-1, w.parent {
		if w.shared && strings.Contains(w.value, "*") {
			patterns[i] = w.value
		}
	}
	var b strings.Builder
	b.WriteString(domain)
	for i, e := range entries {
		b.WriteString("\x00" + e.Key)
		if patterns[i] != "" {
			b.WriteString("\x01" + patterns[i])
		} else {
			b.WriteString("\x00" + e.Value)
		}
	}
	return b.String()
}

// dropped returns the names of the limits that the matched ones of a call
// replace. Those with a limit of the call neither replace nor are replaced.
func dropped(matched []*written) (names []string) {
	for _, w := range matched {
		if w != nil {
			names = append(names, w.replaces...)
		}
	}
	return names
}

// isDropped reports whether a limit is among the replaced ones.
func (w *written) isDropped(names []string) bool {
	return w.name != "" && slices.Contains(names, w.name)
}
