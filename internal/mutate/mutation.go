package main

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// mutation is one change of one file.
type mutation struct {
	Name string
	File string // from the root of the module, with slashes
	Line int    // where it begins
	Why  string // the promise that it breaks; "" if it was drawn
	// Change is the line before and after.
	Change string
	// Equivalent argues that no caller can see a difference, Survives why no
	// test finds it; "" otherwise.
	Equivalent, Survives string

	// The mutation writes text from one offset in the file to another.
	from, to int
	text     string
	content  []byte // of the file, with the mutation
}

// pkg returns the folder of the package.
func (m *mutation) pkg() string { return path.Dir(m.File) }

// key identifies the mutation in kept results: its name, its file and its new
// text.
func (m *mutation) key() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", m.Name, m.File, m.Change))
	return hex.EncodeToString(sum[:8])
}

// verdict is what named/ states about a mutation that operators draw.
type verdict struct {
	name, file           string
	equivalent, survives string
}

//go:embed named/*.txt
var namedFiles embed.FS

// readNamed reads the named mutations, and the verdicts on drawn ones by their
// names and changes.
func readNamed(root string) ([]*mutation, map[string]*verdict, error) {
	files, err := fs.Glob(namedFiles, "named/*.txt")
	if err != nil {
		return nil, nil, err
	}
	var list []*mutation
	var wrong []error
	verdicts := map[string]*verdict{}
	for _, file := range files {
		data, err := namedFiles.ReadFile(file)
		if err != nil {
			return nil, nil, err
		}
		for _, block := range blocks(string(data)) {
			e, err := parseEntry(block)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w:\n%s", file, err, strings.Join(block, "\n"))
			}
			if e.fields["drawn"] != "" {
				verdicts[e.fields["drawn"]+"\n"+e.before+e.after] = &verdict{
					name: e.fields["drawn"], file: e.fields["file"], equivalent: e.fields["equivalent"], survives: e.fields["survives"],
				}
				continue
			}
			m, err := e.apply(root)
			if err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %s: %w", file, e.fields["mutation"], err))
				continue
			}
			if slices.ContainsFunc(list, func(o *mutation) bool { return o.Name == m.Name }) {
				return nil, nil, fmt.Errorf("%s: two mutations are named %q", file, m.Name)
			}
			list = append(list, m)
		}
	}
	return list, verdicts, errors.Join(wrong...)
}

// blocks splits a text at its empty lines, without comments.
func blocks(text string) (all [][]string) {
	var block []string
	for line := range strings.Lines(text + "\n\n") {
		switch line = strings.TrimSuffix(line, "\n"); {
		case line == "" && len(block) > 0:
			all, block = append(all, block), nil
		case line != "" && line[0] != '#':
			block = append(block, line)
		}
	}
	return all
}

// entry is a block of named/: fields, then a change as in a unified diff.
type entry struct {
	fields        map[string]string
	before, after string
}

// parseEntry reads a block.
func parseEntry(block []string) (*entry, error) {
	e := &entry{fields: map[string]string{}}
	for _, line := range block {
		text := line[1:] + "\n"
		switch line[0] {
		case '-':
			e.before += text
		case '+':
			e.after += text
		case ' ':
			e.before += text
			e.after += text
		default:
			key, value, _ := strings.Cut(line, ": ")
			if !slices.Contains([]string{"mutation", "drawn", "file", "why", "equivalent", "survives"}, key) || value == "" {
				return nil, fmt.Errorf("%q is no field with a value", line)
			}
			e.fields[key] = value
		}
	}
	f := e.fields
	switch {
	case (f["mutation"] == "") == (f["drawn"] == ""):
		return nil, errors.New("needs one of mutation and drawn")
	case f["file"] == "" || e.before == e.after || e.before == "":
		return nil, errors.New("needs a file and a change")
	case f["mutation"] != "" && f["why"] == "":
		return nil, errors.New("needs why: the promise that it breaks")
	case f["drawn"] != "" && f["equivalent"] == "" && f["survives"] == "":
		return nil, errors.New("needs equivalent or survives")
	}
	return e, nil
}

// apply finds the text in the file, where it must be exactly once.
func (e *entry) apply(root string) (*mutation, error) {
	f := e.fields
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f["file"])))
	if err != nil {
		return nil, err
	}
	before := []byte("\n" + e.before) // whole lines
	if n := bytes.Count(data, before); n != 1 {
		return nil, fmt.Errorf("the text is %d times in %s, not once", n, f["file"])
	}
	at := bytes.Index(data, before) + 1
	from, to, text := narrowed(at, e.before, e.after)
	return &mutation{
		Name: f["mutation"], File: f["file"], Why: f["why"], Equivalent: f["equivalent"], Survives: f["survives"],
		Line: 1 + bytes.Count(data[:at], []byte("\n")), Change: e.before + e.after,
		from: from, to: to, text: text, content: replaced(data, at, at+len(e.before), e.after),
	}, nil
}

// narrowed returns the part of a text at an offset that changes, and the new
// text of it: the line of a short function has its head, too.
func narrowed(at int, before, after string) (from, to int, text string) {
	same := 0
	for same < min(len(before), len(after)) && before[same] == after[same] {
		same++
	}
	before, after = before[same:], after[same:]
	rest := 0
	for rest < min(len(before), len(after)) && before[len(before)-1-rest] == after[len(after)-1-rest] {
		rest++
	}
	return at + same, at + same + len(before) - rest, after[:len(after)-rest]
}

// replaced returns a copy of data with another text from one offset to another.
func replaced(data []byte, from, to int, text string) []byte {
	return slices.Concat(data[:from], []byte(text), data[to:])
}

// moduleRoot returns the folder of go.mod.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	file := strings.TrimSpace(string(out))
	if file == "" || file == os.DevNull {
		return "", errors.New("run it inside the repository")
	}
	return filepath.Dir(file), nil
}
