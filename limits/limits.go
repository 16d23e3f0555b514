package limits

import (
	"cmp"
	"slices"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/rules"
)

// Bounds on the files that Parse accepts. They are far above any limits written
// by hand, and keep a hostile or generated file from costing more than its
// size.
const (
	// MaxFileBytes is the size of the longest file.
	MaxFileBytes = 4 << 20
	// MaxRules bounds the descriptors of all files together.
	MaxRules = 100_000
	// MaxDepth bounds how deep descriptors nest. A request has at most as
	// many entries, so a deeper rule could never match.
	MaxDepth = 32
	// MaxTextBytes bounds a domain, a key, a value or a name. The texts of a
	// request have the same bound.
	MaxTextBytes = 4_096
	// MaxLogHits bounds requests_per_unit of a sliding_log.
	MaxLogHits = 10_000
	// MaxSharedLogHits bounds it where every hit goes to other daemons.
	MaxSharedLogHits = 1_000

	// maxPathBytes bounds the paths of all rules together: a path repeats
	// the keys and values of every parent.
	maxPathBytes = 64 << 20
	// maxWindowMillis bounds unit x unit_multiplier: 100 years of 365 days.
	maxWindowMillis = 100 * 31_536_000_000
	// shortWindowMillis is 20 times the 250 ms by which the clocks of two
	// daemons may differ by default. In shorter windows this shows.
	shortWindowMillis = 20 * 250
	// briefBucketMillis is the refill time below which a bucket has owners in
	// vain: a request to one in another region takes about as long.
	briefBucketMillis = 200
)

// fileKind is how a file of limits begins.
var fileKind = yamlpos.FileKind{
	Name: "limits", Want: "a file of limits has domain: NAME and descriptors: at its top",
	Keys: []string{"domain", "descriptors", "defaults"}, Sure: []string{"descriptors"},
}

// File is one file of limits: its name, for messages, and its content, either
// as Data or as the Root of a document that was parsed before. Parse keeps
// nothing of it after it has returned.
type File struct {
	Name string
	Data []byte
	Root *yamlpos.Node
}

// Options describes how files are read, and the cluster that they are for.
type Options struct {
	// MergeDomains allows one domain in several files
	// (MERGE_DOMAIN_CONFIG=true). Otherwise that is an error.
	MergeDomains bool
	// ChargeDenied is charge_denied of rules where neither the rule nor the
	// defaults of its file set it (RLD_CHARGE_DENIED).
	ChargeDenied bool
	// Replicated is true where counts go to other daemons. It bounds a
	// sliding_log that is neither strict nor of scope node by
	// MaxSharedLogHits.
	Replicated bool
	// Alone is true for a daemon without a cluster, whose strict limits hold
	// only until it restarts.
	Alone bool

	// Regions are the names of all regions of the cluster, including the own
	// one; nil when they are not known. Then the regions of weights and home:,
	// the regional reserves and the greatest overage_budget are not checked.
	Regions []string
	// Daemons and DaemonsOfRegion are the numbers of daemons that share the
	// rights of a rule, in all regions and in the own one; 0 when they are not
	// known, and then no rule's rights are placed. See rules.Limit.Placed.
	Daemons, DaemonsOfRegion int
	// Replicas is the number of strict voters of the own region
	// (strict.replicas), 0 when it is not known. Too few give a warning.
	Replicas int
	// NoRights is "" where this daemon can hold rights and own keys. Otherwise
	// it is the reason and its remedy, and rules that need rights are rejected
	// with it.
	NoRights string
}

// Parse compiles all files into one set. With any diagnostic of severity Error
// the set is nil. Files are read in the order of their names, so that the
// wildcards of a merged domain keep their order. No files make an empty set.
// The diagnostics are those of all files, up to a bound: see
// yamlpos.Diagnostics. Parse is safe for concurrent use.
func Parse(files []File, o Options) (*rules.Set, yamlpos.Diagnostics) {
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	l := &loader{options: o, domains: make(map[string]*domain)}
	for _, f := range files {
		l.file(f)
	}
	if l.Failed() {
		return nil, l.List()
	}
	l.reportShortWindows()
	l.reportBriefBuckets()
	l.reportOwned()
	nodes := make([]rules.DomainNode, 0, len(l.order))
	for _, d := range l.order {
		nodes = append(nodes, rules.DomainNode{Name: d.name, Children: d.children})
	}
	set, err := rules.NewSet(nodes)
	if err != nil {
		// Every fault that NewSet finds was found above, with its position.
		// This is the safety net.
		l.Errorf(yamlpos.Position{}, "", "%v", err)
	}
	return set, l.List()
}

// loader carries the state from file to file.
type loader struct {
	yamlpos.Collector
	options Options

	domains map[string]*domain
	order   []*domain // by first appearance

	rules     int  // descriptors so far
	full      bool // MaxRules was reached and reported
	pathBytes int  // of the rules so far

	short tally // limits with a short window
	brief tally // with owners, of buckets that refill in a short time
	owned tally // limits whose keys one daemon owns
}

// domain is a domain and its descriptors so far.
type domain struct {
	name     string
	at       yamlpos.Position // of its first file
	children []rules.Node
	top      level // the descriptors to compare with, across files
}

// fileScope is the state of one file.
type fileScope struct {
	defaults rldFields
	path     []rules.Entry // of the descriptor being read, parents first
	bytes    int           // of the texts in path
}

// file reads one file into its domain.
func (l *loader) file(f File) {
	root := f.Root
	if root == nil {
		root = l.Parse(f.Name, f.Data, yamlpos.Options{
			MaxBytes: MaxFileBytes,
			TooLong:  "split it; with MERGE_DOMAIN_CONFIG=true a domain may be in several files",
			Kind:     fileKind,
		})
	}
	if root == nil {
		return
	}
	if root.IsNull() {
		l.Errorf(yamlpos.Position{File: f.Name, Line: 1, Column: 1}, "begin it with domain: NAME", "the file holds no limits")
		return
	}
	var r decoded
	if !l.apply(root, inFile, &r) {
		return
	}
	scope := fileScope{defaults: l.defaults(&r)}
	d := l.domain(root, &r)
	d.children = append(d.children, l.descriptors(r.set[fDescriptors], &scope, &d.top)...)
}

// domain returns the domain of a file. When the file has no valid one, it
// returns a domain that is dropped later, so that the faults of the
// descriptors are found nevertheless.
func (l *loader) domain(root *yamlpos.Node, r *decoded) *domain {
	s := r.set[fDomain]
	at := s.posOr(root.Pos)
	switch name, ok := l.text(s, "domain"); {
	case !ok, name == "" && r.meant[fDomain]:
	case name == "":
		l.Errorf(at, "begin the file with domain: NAME", "the file has no domain")
	case l.domains[name] == nil:
		d := &domain{name: name, at: at}
		l.domains[name] = d
		l.order = append(l.order, d)
		return d
	case l.options.MergeDomains:
		return l.domains[name]
	default:
		l.Errorf(at, "one domain is one file, unless MERGE_DOMAIN_CONFIG=true",
			"domain %s is in %s already", yamlpos.Quote(name), l.domains[name].at)
	}
	return &domain{}
}
