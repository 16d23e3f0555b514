package control

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// MaxSetBytes bounds the files of a rule set together.
	MaxSetBytes = 4 << 20
	// MaxSetFiles bounds the files of a rule set.
	MaxSetFiles = 1_000
	// maxSetPacked bounds the packed form of a rule set: an entry contains it
	// in base64.
	maxSetPacked = 700 << 10
	// maxSetForm bounds the JSON form of a rule set: most bytes of YAML have
	// one or two in JSON.
	maxSetForm = 2*MaxSetBytes + MaxSetFiles*2*maxText
)

// RuleFile is one file of limits, as the operator wrote it.
type RuleFile struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// RuleSet is a set of files of limits. It is packed once, by the daemon that
// submits it.
type RuleSet struct {
	// Hash is that of the files: of their names and texts.
	Hash string `json:"hash"`
	// Bytes is the sum of the lengths of the texts.
	Bytes int `json:"bytes"`
	// Data is the packed form of the files.
	Data []byte `json:"data"`
}

// NewRuleSet returns the set of files, each with a name of its own. The error
// names the file, or the sizes of a set that is too large. The contents are not
// parsed.
func NewRuleSet(files []RuleFile) (*RuleSet, error) {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b RuleFile) int { return strings.Compare(a.Name, b.Name) })
	total := 0
	for i, f := range files {
		switch {
		case f.Name == "" || len(f.Name) > maxText || !utf8.ValidString(f.Name):
			return nil, fmt.Errorf("limits file %q: want a name in UTF-8 of 1 to %d bytes", shorten(f.Name, 64), maxText)
		case i > 0 && files[i-1].Name == f.Name:
			return nil, fmt.Errorf("limits file %s is there twice", f.Name)
		case !utf8.ValidString(f.Text):
			return nil, fmt.Errorf("limits file %s: want UTF-8", f.Name)
		}
		total += len(f.Text)
	}
	if total > MaxSetBytes || len(files) > MaxSetFiles {
		return nil, fmt.Errorf("%d limits files with %d bytes: want at most %d with %d", len(files), total, MaxSetFiles, MaxSetBytes)
	}
	form, err := json.Marshal(files)
	if err != nil {
		return nil, fmt.Errorf("limits files: %w", err)
	}
	if len(form) > maxSetForm {
		return nil, fmt.Errorf("limits files of %d bytes in JSON: want at most %d", len(form), maxSetForm)
	}
	s := &RuleSet{Hash: hashOf(form), Bytes: total, Data: pack(form)}
	if len(s.Data) > maxSetPacked {
		return nil, fmt.Errorf("limits files with %d bytes, %d compressed: want at most %d compressed", total, len(s.Data), maxSetPacked)
	}
	return s, nil
}

// hashOf returns the hash of a JSON form.
func hashOf(form []byte) string {
	sum := sha256.Sum256(form)
	return hex.EncodeToString(sum[:16])
}

// Files returns the files, ordered by name. It returns an error if the set is
// not one that NewRuleSet returns.
func (s *RuleSet) Files() ([]RuleFile, error) {
	if len(s.Data) > maxSetPacked {
		return nil, fmt.Errorf("rule set of %d bytes: want at most %d", len(s.Data), maxSetPacked)
	}
	form, err := unpack(s.Data, maxSetForm)
	if err != nil {
		return nil, fmt.Errorf("rule set: %w", err)
	}
	var files []RuleFile
	if err := json.Unmarshal(form, &files); err != nil {
		return nil, fmt.Errorf("rule set: %w", err)
	}
	is, err := NewRuleSet(files)
	if err != nil {
		return nil, err
	}
	if is.Hash != s.Hash || is.Bytes != s.Bytes {
		return nil, fmt.Errorf("rule set %s with %d bytes: its files have hash %s and %d bytes", s.Hash, s.Bytes, is.Hash, is.Bytes)
	}
	return files, nil
}
