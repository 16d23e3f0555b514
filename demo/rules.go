package demo

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
)

// Domain is the domain of the demo's limits.
const Domain = "demo"

// Rule is one limit of the demo. All that are shown use fixed windows, so that
// the count of a window compares with the limit without an estimate.
type Rule struct {
	// Name is what commands and tables call it.
	Name string
	// Entries lists the entries that the limits file matches, left to right. An
	// entry without a value matches any value, each with its own count.
	Entries []rules.Entry
	// Limit is how many hits a window takes, Window how many seconds it has.
	Limit  uint32
	Window int
	// Budget is its overage_budget, where HasBudget.
	Budget    rules.PPM
	HasBudget bool
	// Strict selects consistency strict. Home is then the home region of all
	// its keys, or "" for one computed per key.
	Strict bool
	Home   string
	// Sliding selects sliding windows: other regions learn of any hit, also of
	// those that are too few to matter.
	Sliding bool
}

// Most is how many hits a window takes with its budget.
func (r *Rule) Most() uint64 {
	l := rules.Limit{Requests: r.Limit, Budget: r.Budget, HasBudget: r.HasBudget}
	return l.Total()
}

// entries returns the descriptor of a key: the value of each entry that matches
// any is the key's name.
func (r *Rule) entries(key string) []rules.Entry {
	out := slices.Clone(r.Entries)
	for i := range out {
		out[i].Value = cmp.Or(out[i].Value, key)
	}
	return out
}

// Period is the window as a time.
func (r *Rule) Period() time.Duration { return time.Duration(r.Window) * time.Second }

// The rules of the demo, by their place in Rules.
const (
	steady = iota // users below their limit, each in one region
	spread        // one user over the limit, in all regions at once
	burst         // everybody at once, now and then
	login         // logins that are tried much too often, at all daemons
	ruleCount
)

// markRule is the rule that the demo measures with: see marks. It comes last
// and is shown to nobody.
const markRule = ruleCount

// loginLimit is how many logins of an account a minute takes.
const loginLimit = 5

// NewRules returns the demo's limits for a rate of asks. All but that of logins
// are in proportion to it, so that the picture is the same at any rate.
func NewRules(asksPerSecond int) []Rule {
	perWindow := float64(asksPerSecond) * 10
	of := func(share float64) uint32 { return uint32(max(5, perWindow*share+0.5)) }
	return []Rule{
		steady: {
			Name: "steady", Entries: []rules.Entry{{Key: "user"}}, Window: 10,
			Limit: uint32(max(10, 2.5*perWindow*crowds[steady].share/float64(crowds[steady].keys)+0.5)),
		},
		spread: {Name: "spread", Entries: []rules.Entry{{Key: "user", Value: crowds[spread].name}}, Window: 10, Limit: of(0.06)},
		burst:  {Name: "burst", Entries: []rules.Entry{{Key: "burst"}}, Window: 10, Limit: of(0.05)},
		login: {
			Name: "login", Entries: []rules.Entry{{Key: "path", Value: "/login"}, {Key: "account"}}, Window: 60,
			Limit: loginLimit, Strict: true,
		},
		markRule: {Name: "mark", Entries: []rules.Entry{{Key: "mark"}}, Window: int(markWindow / time.Second), Limit: markLimit, Sliding: true},
	}
}

// ruleNames lists the rules that commands may name.
func ruleNames(all []Rule) []string {
	var out []string
	for _, r := range all[:ruleCount] {
		out = append(out, r.Name)
	}
	return out
}

// limitsFile is the file that all daemons of the demo read their limits from.
// It is safe for concurrent use.
type limitsFile struct {
	path string
	// options is how the daemons will read it.
	options limits.Options

	mu    sync.Mutex
	rules []Rule
}

// newLimitsFile writes the rules into a folder, for daemons in regions.
func newLimitsFile(folder string, all []Rule, regions []string, daemons int) (*limitsFile, error) {
	f := &limitsFile{path: filepath.Join(folder, "demo.yaml"), options: limits.Options{
		Replicated: true, Regions: regions, Daemons: len(regions) * daemons, DaemonsOfRegion: daemons,
	}}
	return f, f.write(slices.Clone(all))
}

// folder is where the file lies, and what daemons keep.
func (f *limitsFile) folder() string { return filepath.Dir(f.path) }

// Rules returns the rules as they are in the file.
func (f *limitsFile) Rules() []Rule {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.rules)
}

// change changes a rule and writes the file anew.
func (f *limitsFile) change(name string, to func(*Rule)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := slices.Clone(f.rules)
	i := slices.IndexFunc(next, func(r Rule) bool { return r.Name == name })
	if i < 0 {
		return fmt.Errorf("there is no rule %q", name)
	}
	to(&next[i])
	if err := f.check(name, next); err != nil {
		return err
	}
	return f.write(next)
}

// check returns why the daemons would refuse the rules, of which one was
// changed.
func (f *limitsFile) check(name string, all []Rule) error {
	_, found := limits.Parse([]limits.File{{Name: f.path, Data: []byte(limitsText(all))}}, f.options)
	for i := range found {
		if d := &found[i]; d.Severity == yamlpos.Error {
			return fmt.Errorf("the daemons would refuse %s: %s: %s", name, d.Message, d.Hint)
		}
	}
	return nil
}

// write puts rules in place as a whole file, so that no daemon reads half of
// it.
func (f *limitsFile) write(all []Rule) error {
	next := f.path + ".next"
	if err := os.WriteFile(next, []byte(limitsText(all)), 0o644); err != nil {
		return err
	}
	if err := os.Rename(next, f.path); err != nil {
		return err
	}
	f.rules = all
	return nil
}

// limitsText is the rules in the limits language.
func limitsText(all []Rule) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by rld demo, and again at each of its commands limit and budget.\ndomain: %s\ndescriptors:\n", Domain)
	for _, r := range all {
		indent := "  "
		for i, e := range r.Entries {
			fmt.Fprintf(&b, "%s- key: %s\n", indent, e.Key)
			indent += "  "
			if e.Value != "" {
				fmt.Fprintf(&b, "%svalue: %s\n", indent, e.Value)
			}
			if i < len(r.Entries)-1 {
				fmt.Fprintf(&b, "%sdescriptors:\n", indent)
				indent += "  "
			}
		}
		fmt.Fprintf(&b, "%srate_limit: {name: %s, unit: second, unit_multiplier: %d, requests_per_unit: %d",
			indent, r.Name, r.Window, r.Limit)
		if r.Sliding {
			b.WriteString(", algorithm: sliding_window")
		}
		if r.HasBudget {
			fmt.Fprintf(&b, ", overage_budget: %s", r.Budget.String())
		}
		if r.Strict {
			b.WriteString(", consistency: strict")
		}
		if r.Home != "" {
			fmt.Fprintf(&b, ", home: %s", r.Home)
		}
		b.WriteString("}\n")
	}
	return b.String()
}
