package limits

import (
	"cmp"
	"slices"

	"github.com/georld/rld/rules"
)

// Bounds on what is loaded. They are far above what people write, and keep a
// hostile or generated file from costing more than its size.
const (
	// MaxFileBytes is the longest file that is read.
	MaxFileBytes = 4 << 20
	// MaxRules bounds the descriptors of all files together.
	MaxRules = 100_000
	// MaxDepth bounds how deep descriptors nest. A request has at most as
	// many entries, so a deeper rule could never match.
	MaxDepth = 32
	// MaxTextBytes bounds a domain, a key, a value or a name. A request's
	// texts have the same bound.
	MaxTextBytes = 4_096
	// MaxLogHits bounds requests_per_unit of a sliding_log.
	MaxLogHits = 10_000
	// MaxSharedLogHits bounds it where every stamp goes to other daemons.
	MaxSharedLogHits = 1_000

	// maxPathBytes bounds the paths of all rules together: a path repeats
	// the keys and values of every parent.
	maxPathBytes = 64 << 20
	// maxWindowMillis bounds unit x unit_multiplier: 100 years of 365 days.
	maxWindowMillis = 100 * 31_536_000_000
	// shortWindowMillis is 20 times the 250 ms that the clocks of two daemons
	// may be apart by default. In shorter windows that share is felt.
	shortWindowMillis = 20 * 250
)

// File is one file of limits: its name for messages and its bytes. Parse keeps
// neither after it has returned.
type File struct {
	Name string
	Data []byte
}

// Options is how files are read.
type Options struct {
	// MergeDomains lets several files carry one domain
	// (MERGE_DOMAIN_CONFIG); otherwise that is a fault.
	MergeDomains bool
	// ChargeDenied is charge_denied for the rules that do not say, in files
	// whose defaults do not say either (RLD_CHARGE_DENIED).
	ChargeDenied bool
	// Replicated says that counts go to other daemons: a sliding_log that is
	// neither strict nor of scope node is then bounded by MaxSharedLogHits.
	Replicated bool

	// Alone says that the files are those of a daemon without a cluster: strict
	// limits then hold for as long as it runs.
	Alone bool

	// Regions are the names of all regions of the cluster, the own one among
	// them; nil when they are not known, and then neither the regions of
	// weights and homes, nor floors, nor the greatest overage_budget are checked.
	Regions []string
	// Daemons is how many daemons share the rights of a rule, in the world and
	// in the own region; 0 when that is not known, and then no rule's rights
	// are placed. See rules.Limit.Placed.
	Daemons, DaemonsOfRegion int
	// Replicas is how many daemons of the own region hold what homes have used
	// (strict.replicas); 0 when that is not known. Too few are warned of.
	Replicas int
	// NoRights is why this daemon can neither hold rights nor be home of a key,
	// and what would be right, "" when it can. Rules that need one of the two are
	// then refused with these words.
	NoRights string
}

// Parse compiles all files into one set, all or nothing: with any diagnostic
// of severity Error the set is nil. Files are taken in the order of their
// names, whatever order they come in, so that the wildcards of a merged domain
// keep theirs. No files make an empty set. All faults of all files are listed,
// up to a bound; see Diagnostics. It is safe for concurrent use.
func Parse(files []File, o Options) (*rules.Set, Diagnostics) {
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	l := &loader{options: o, domains: make(map[string]*domain)}
	for _, f := range files {
		l.file(f)
	}
	if l.failed() {
		return nil, l.list()
	}
	l.warnShortWindows()
	l.tellHomes()
	nodes := make([]rules.DomainNode, 0, len(l.order))
	for _, d := range l.order {
		nodes = append(nodes, rules.DomainNode{Name: d.name, Children: d.children})
	}
	set, err := rules.NewSet(nodes)
	if err != nil {
		// Every fault that NewSet knows was looked for above, with its
		// position; this is the net below.
		l.errorf(rules.Position{}, "", "%v", err)
		return nil, l.list()
	}
	return set, l.list()
}

// loader carries what has been read so far from file to file.
type loader struct {
	collector
	options Options

	domains map[string]*domain
	order   []*domain // as first met

	rules     int  // descriptors so far
	full      bool // MaxRules was reached and said
	pathBytes int  // of the rules so far

	short tally // limits whose window is short
	homed tally // limits decided at a home
}

// domain is a domain and its descriptors so far.
type domain struct {
	name     string
	at       rules.Position // where it was named first
	children []rules.Node
	top      level // what the descriptors are checked against, across files
}

// fileScope is what holds for one file only.
type fileScope struct {
	defaults added
	path     []rules.Entry // of the descriptor being read, parents first
	bytes    int           // of the texts in path
}

// file reads one file into the domain that it names.
func (l *loader) file(f File) {
	root, ok := l.read(f)
	if !ok {
		return
	}
	start := rules.Position{File: f.Name, Line: 1, Column: 1}
	if root.isNull() {
		l.errorf(start, "begin it with domain: NAME", "the file holds no limits")
		return
	}
	var r record
	if !l.apply(root, inFile, &r) {
		return
	}
	scope := fileScope{defaults: l.defaults(&r)}
	d := l.domain(root, &r)
	kids := l.descriptors(r.set[fDescriptors], &scope, &d.top)
	d.children = append(d.children, kids...)
}

// domain returns the domain that a file's descriptors go to. It is one of no
// name, which is kept nowhere, when the file's own cannot be used: the
// descriptors are still looked at, so that all faults come out at once.
func (l *loader) domain(root *node, r *record) *domain {
	s := r.set[fDomain]
	name, ok := l.text(s, "domain")
	if !ok {
		return &domain{}
	}
	at := root.pos
	if s.value != nil {
		at = s.value.pos
	}
	if name == "" && r.meant[fDomain] {
		return &domain{}
	}
	if name == "" {
		l.errorf(at, "begin the file with domain: NAME", "the file has no domain")
		return &domain{}
	}
	d := l.domains[name]
	if d == nil {
		d = &domain{name: name, at: at}
		l.domains[name] = d
		l.order = append(l.order, d)
		return d
	}
	if !l.options.MergeDomains {
		l.errorf(at, "one domain is one file, unless MERGE_DOMAIN_CONFIG=true",
			"domain %s is in %s already", quote(name), d.at)
		return &domain{}
	}
	return d
}

// warnShortWindows says once a set how many windows are short.
func (l *loader) warnShortWindows() {
	if l.short.n == 0 {
		return
	}
	l.short.tell(l, Warning, l.short.limits("has a window", "have windows")+
		" shorter than 5s, 20 times what the clocks of two daemons may differ, "+
		"so the count at a window's edge may differ too", "a token_bucket has no edges")
}
