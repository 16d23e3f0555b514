package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// record is a line of the file of results.
type record struct {
	Mutation string // its key
	Name     string
	Tree     string
	Runs     int `json:",omitempty"` // seeds of the swarm
	Suite    suiteName
	outcome
}

// results are the outcomes that are known. They are safe for concurrent use.
type results struct {
	mu    sync.Mutex
	file  string
	tree  string
	runs  int
	any   bool
	known map[string]map[suiteName]*outcome // by the key of the mutation
}

// openResults reads the file of results. Results of another tree count if the
// options allow it.
func openResults(root string, o *options) (*results, error) {
	tree, err := treeHash(root)
	if err != nil {
		return nil, err
	}
	k := &results{file: o.results, tree: tree, runs: o.runs, any: o.any, known: map[string]map[suiteName]*outcome{}}
	if !filepath.IsAbs(k.file) {
		k.file = filepath.Join(root, k.file)
	}
	f, err := os.Open(k.file)
	if errors.Is(err, fs.ErrNotExist) {
		return k, os.MkdirAll(filepath.Dir(k.file), 0o777)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			continue // the line that an interrupted run wrote
		}
		if (r.Tree == tree || k.any) && (r.Runs == 0 || r.Runs == o.runs || r.Caught && r.Runs < o.runs) {
			k.put(r.Mutation, r.Suite, &r.outcome)
		}
	}
	return k, nil
}

func (k *results) put(key string, suite suiteName, out *outcome) {
	if k.known[key] == nil {
		k.known[key] = map[suiteName]*outcome{}
	}
	k.known[key][suite] = out
}

// of returns the kept outcome of a suite.
func (k *results) of(m *mutation, suite suiteName) (*outcome, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	out, ok := k.known[m.key()][suite]
	return out, ok
}

// add keeps an outcome.
func (k *results) add(m *mutation, suite suiteName, out *outcome) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.put(m.key(), suite, out)
	r := record{Mutation: m.key(), Name: m.Name, Tree: k.tree, Suite: suite, outcome: *out}
	if suite == swarmSuite {
		r.Runs = k.runs
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(k.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// treeHash returns a hash of all files that tests and the simulator read, but
// not of this tool.
func treeHash(root string) (string, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git ls-files: %w", err)
	}
	h := sha256.New()
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if strings.HasPrefix(name, "internal/mutate/") || strings.HasPrefix(name, "docs/") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(data), data)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
