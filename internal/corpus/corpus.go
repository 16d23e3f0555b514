package corpus

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Entry is a seed, the hash of its draw, and the features that it was the first
// to reach.
type Entry struct {
	Seed  uint64
	Hash  string
	First []string
}

// Corpus is the content of a file.
type Corpus struct {
	path    string
	entries []Entry
	reached map[string]bool
}

// fileName is the name of the file in its folder.
const fileName = "seeds.txt"

// header begins the file.
const header = "# Seeds of rld sim swarm that reached something new: the seed, the hash of what it\n" +
	"# draws, and what no seed above it had reached.\n"

// Open reads the corpus of a folder, which is made if there is none.
func Open(folder string) (*Corpus, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	c := &Corpus{path: filepath.Join(folder, fileName), reached: make(map[string]bool)}
	f, err := os.Open(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() // it was only read
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		seed, err := strconv.ParseUint(words[0], 10, 64)
		if err != nil || len(words) < 2 {
			return nil, fmt.Errorf("%s:%d: want a seed, a hash, and what the seed reached; remove the line", c.path, n)
		}
		c.entries = append(c.entries, Entry{seed, words[1], words[2:]})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", c.path, err)
	}
	c.Keep(func(Entry) bool { return true })
	return c, nil
}

// Entries returns the entries in the order in which they were added.
func (c *Corpus) Entries() []Entry { return slices.Clone(c.entries) }

// Keep drops the entries that are not valid any more, with their features. It
// returns the number of dropped entries.
func (c *Corpus) Keep(useful func(Entry) bool) (dropped int) {
	before := len(c.entries)
	c.entries = slices.DeleteFunc(c.entries, func(e Entry) bool { return !useful(e) })
	clear(c.reached)
	for _, e := range c.entries {
		for _, name := range e.First {
			c.reached[name] = true
		}
	}
	return before - len(c.entries)
}

// Add records the features that a seed reached, as words without spaces. It
// returns those that no other seed reached before. If there are any, the seed
// is stored.
func (c *Corpus) Add(seed uint64, hash string, reached []string) (first []string, err error) {
	for _, name := range reached {
		if !c.reached[name] {
			c.reached[name] = true
			first = append(first, name)
		}
	}
	if len(first) == 0 {
		return nil, nil
	}
	i := slices.IndexFunc(c.entries, func(e Entry) bool { return e.Seed == seed && e.Hash == hash })
	if i < 0 {
		i = len(c.entries)
		c.entries = append(c.entries, Entry{Seed: seed, Hash: hash})
	}
	c.entries[i].First = append(c.entries[i].First, first...)
	return first, c.store()
}

// store replaces the file.
func (c *Corpus) store() error {
	var b strings.Builder
	b.WriteString(header)
	for _, e := range c.entries {
		fmt.Fprintf(&b, "%d %s %s\n", e.Seed, e.Hash, strings.Join(e.First, " "))
	}
	next := c.path + ".new"
	if err := os.WriteFile(next, []byte(b.String()), 0o644); err != nil {
		return err
	}
	return os.Rename(next, c.path)
}
