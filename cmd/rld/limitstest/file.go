package limitstest

import (
	"io"
	"os"
	"time"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// Bounds of a file of tests.
const (
	maxFileBytes = 4 << 20
	maxTests     = 10_000
	maxCalls     = 1_000
	maxTimes     = 100_000
	maxLength    = 10 * 365 * 24 * time.Hour // of a test
)

// test is a list of calls to limits that have counted nothing yet.
type test struct {
	name, domain string
	pos          yamlpos.Position
	calls        []call
}

// length returns the time from the first call to the last one, or one that is
// longer than maxLength.
func (t *test) length() time.Duration {
	var out time.Duration
	for i := range t.calls {
		if out += t.calls[i].after; out > maxLength {
			break
		}
	}
	return out
}

// call is a call that is made a number of times, and what each answer must be.
type call struct {
	pos         yamlpos.Position
	after       time.Duration // since the call before
	times       int
	hits        uint64
	peek        bool
	descriptors []rules.Descriptor
	expect      []member
}

// member is an expected member of an answer.
type member struct {
	pos        yamlpos.Position
	name, want string
}

// fileKind is what a file of tests looks like.
var fileKind = yamlpos.FileKind{Name: "a file of tests of limits", Want: "write tests: a list of tests", Keys: []string{"tests"}}

// reader reads files of tests.
type reader struct{ yamlpos.Collector }

// read reads the tests of a file. It adds the faults of the file to r.
func (r *reader) read(path string) ([]test, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	return r.parse(path, data), nil
}

// parse reads the tests in the text of a file.
func (r *reader) parse(path string, data []byte) []test {
	root := r.Parse(path, data, yamlpos.Options{MaxBytes: maxFileBytes, Kind: fileKind})
	if root == nil {
		return nil
	}
	var tests []test
	seen := false
	r.Fields(root, "a file of tests", yamlpos.Field{Name: "tests", Read: func(n *yamlpos.Node, name string) bool {
		seen = true
		return r.ListOf(maxTests, "- name: the limit holds", func(item *yamlpos.Node) bool {
			t := test{pos: item.Pos}
			good := r.Fields(item, "a test",
				yamlpos.Field{Name: "name", Read: r.Text(&t.name)},
				yamlpos.Field{Name: "domain", Read: r.Text(&t.domain)},
				yamlpos.Field{Name: "calls", Read: r.ListOf(maxCalls, "- descriptors: [{user: ann}]", func(item *yamlpos.Node) bool {
					c := r.call(item)
					t.calls = append(t.calls, c)
					return len(c.descriptors) > 0
				})},
			)
			switch {
			case !good:
			case t.name == "":
				good = r.Errorf(item.Pos, "add name: what the test shows", "a test without a name")
			case t.domain == "":
				good = r.Errorf(item.Pos, "add domain: that of the limits", "test %s has no domain", yamlpos.Quote(t.name))
			case t.length() > maxLength:
				good = r.Errorf(item.Pos, "begin another test, with unused limits", "test %s takes %v, at most %v", yamlpos.Quote(t.name), t.length(), maxLength)
			case len(t.calls) == 0:
				good = r.Errorf(item.Pos, "add calls: a list", "test %s has no calls", yamlpos.Quote(t.name))
			}
			tests = append(tests, t)
			return good
		})(n, name)
	}})
	if !seen && !r.Failed() {
		r.Errorf(root.Pos, "add tests: a list of tests", "no tests")
	}
	return tests
}

// call reads a call. It has no descriptors if it is faulty.
func (r *reader) call(item *yamlpos.Node) call {
	c := call{pos: item.Pos, times: 1, hits: 1}
	expected := false
	good := r.Fields(item, "a call",
		yamlpos.Field{Name: "after", Read: r.Duration(&c.after, 0, maxLength)},
		yamlpos.Field{Name: "times", Read: yamlpos.Whole(&r.Collector, &c.times, 1, maxTimes)},
		yamlpos.Field{Name: "hits", Read: yamlpos.Whole(&r.Collector, &c.hits, 1, 1<<63-1)},
		yamlpos.Field{Name: "peek", Read: r.Bool(&c.peek)},
		yamlpos.Field{Name: "descriptors", Read: r.ListOf(node.MaxDescriptors, "- {user: ann}", func(item *yamlpos.Node) bool {
			var d rules.Descriptor
			good := r.Each(item, "a descriptor", func(key string, p yamlpos.Pair) bool {
				e := rules.Entry{Key: key}
				ok := r.Text(&e.Value)(p.Value, key)
				d.Entries = append(d.Entries, e)
				return ok
			})
			c.descriptors = append(c.descriptors, d)
			return good
		})},
		yamlpos.Field{Name: "expect", Read: func(n *yamlpos.Node, name string) bool {
			expected = true
			return r.expect(n, name, &c.expect)
		}},
	)
	switch {
	case !good:
	case len(c.descriptors) == 0:
		good = r.Errorf(item.Pos, "add descriptors: [{key: value}]", "a call without descriptors")
	case !expected || len(c.expect) == 0:
		good = r.Errorf(item.Pos, "add expect: {allowed: true}", "a call that expects nothing")
	}
	if !good {
		c.descriptors = nil
	}
	return c
}

// expect reads the expected members of an answer.
func (r *reader) expect(n *yamlpos.Node, name string, out *[]member) bool {
	fields := make([]yamlpos.Field, len(members))
	for i, known := range members {
		fields[i] = yamlpos.Field{Name: known, Read: func(n *yamlpos.Node, name string) bool {
			m := member{pos: n.Pos, name: name}
			ok := r.Text(&m.want)(n, name)
			*out = append(*out, m)
			return ok
		}}
	}
	return r.Fields(n, name, fields...)
}
