package yamlpos

import (
	"regexp"
	"slices"
	"strings"

	"github.com/georld/rld/internal/suggest"
)

// FileKind is the kind of content that a file should have. A file with another
// content, such as a link to a secret or to a file of passwords, gives one
// fault, with its place and the expected form, and without any of its text.
type FileKind struct {
	// Name completes "this does not look like", Want is the expected form.
	Name, Want string
	// Keys are the keys at the top of such a file. A file looks like one if all
	// its keys at the top, or any one of them, are among these or are likely
	// mistyped ones, or if one of them is in Sure.
	Keys, Sure []string
	Any        bool
}

// maxTopKeys bounds the keys that are compared with those of a kind.
const maxTopKeys = 100

// topKey finds the keys at the top of a text that is no YAML.
var topKey = regexp.MustCompile(`(?m)^["']?([A-Za-z_.-]+)["']?[ \t]*:(?:[ \t]|$)`)

// unlike returns the fault of a file that does not look like its kind, nil for
// one that does. The root is nil for a file that is no YAML, which has a fault.
func (k *FileKind) unlike(root *Node, text string, fault *Diagnostic) *Diagnostic {
	if k.Name == "" || root.IsNull() && fault == nil {
		return nil
	}
	var keys []string
	var at Position
	if fault != nil {
		at = fault.Position
		for _, m := range topKey.FindAllStringSubmatch(text, -1) {
			keys = append(keys, m[1])
		}
	} else {
		at = root.Pos
		for _, p := range root.Pairs {
			keys = append(keys, p.Key.Text)
		}
	}
	known := func(key string) bool { return slices.Contains(k.Keys, key) || suggest.Closest(key, k.Keys) != "" }
	sure := slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(k.Sure, key) })
	keys = keys[:min(len(keys), maxTopKeys)]
	switch {
	case sure, k.Any && slices.ContainsFunc(keys, known):
		return nil
	case !k.Any && len(keys) > 0 && !slices.ContainsFunc(keys, func(key string) bool { return !known(key) }):
		return nil
	}
	if fault != nil && strings.TrimSpace(text) == "" {
		return nil // its size or encoding, and no text
	}
	return &Diagnostic{Position: at, Hint: k.Want, Message: "this does not look like " + k.Name}
}
