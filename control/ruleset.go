package control

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/georld/rld/rules"
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
		return nil, fmt.Errorf("%d limits files with %d bytes: want at most %d with %d; remove rules, or give some domains to the files of the daemons", len(files), total, MaxSetFiles, MaxSetBytes)
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
		return nil, fmt.Errorf("limits files with %d bytes, %d compressed: want at most %d compressed; remove rules, or give some domains to the files of the daemons", total, len(s.Data), maxSetPacked)
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

// complete sets all rules of a change, and the domains that it supplies, and
// returns the rules: what a change does not replace stays.
func (a *LimitsAgent) complete(c *RulesChange) (*rules.Set, error) {
	l := &a.node.record.Limits
	set, err := l.wanted(c)
	if err != nil {
		return nil, err
	}
	own, err := a.parse(set, c.Sizes)
	if err != nil || len(l.Local) == 0 && !c.Adopt {
		return own, err
	}
	latest, err := a.latest()
	if err != nil {
		return nil, err
	}
	// Files replace no rules that were applied, and rules of files do not roll
	// back.
	local := func(domain string) bool { return l.SupplierOf(domain) == SupplierLocal }
	supplied := without(own.Domains(), func(d *string) bool {
		return c.Adopt && latest.Domain(*d) != nil && !local(*d) || c.Rollback != nil && local(*d)
	})
	if c.Adopt && len(supplied) == 0 {
		return nil, fmt.Errorf("the files have no domain to adopt: the log has the rules of %s by rld limits apply", few(own.Domains()))
	}
	supplies := func(domain string) bool { return slices.Contains(supplied, domain) }
	all, err := a.filesOf(set, c.Sizes, supplies)
	if err != nil {
		return nil, err
	}
	if is := l.Latest(); is != nil {
		kept, err := a.filesOf(l.Set(is.Set), c.Sizes, func(d string) bool { return local(d) != c.Adopt && !supplies(d) })
		if err != nil {
			return nil, err
		}
		all = append(all, kept...)
	}
	if c.Set, err = NewRuleSet(all); err != nil {
		return nil, fmt.Errorf("with the files of domains that stay: %w", err)
	}
	if c.Rollback == nil {
		c.Domains = slices.Sorted(slices.Values(supplied))
	}
	return a.parse(c.Set, c.Sizes)
}

// filesOf returns the files of a set that have rules of some domains.
func (a *LimitsAgent) filesOf(s *RuleSet, sizes []RegionSize, of func(domain string) bool) ([]RuleFile, error) {
	files, err := s.Files()
	if err != nil {
		return nil, err
	}
	var out []RuleFile
	for i := range files {
		set, err := a.node.cfg.Language.Parse(files[i:i+1], sizes)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(set.Domains(), of) {
			out = append(out, files[i])
		}
	}
	return out, nil
}

// few names up to eight domains.
func few(domains []string) string {
	if len(domains) > 8 {
		return fmt.Sprintf("%s and %d more", strings.Join(domains[:8], ", "), len(domains)-8)
	}
	return strings.Join(domains, ", ")
}

// proposals are the files of a daemon, and those of the log that came from
// files.
type proposals struct {
	files *RuleSet // of this daemon, nil for none
	// own and active are hashes of the texts in the domains of Limits.Local, 0
	// for none. They belong to of.
	own, active Number
	of          proposed
	// agreed is since when all daemons that are live propose own, -1 while they
	// do not. entry is the command that adopts it, and again when another one
	// may follow.
	agreed, again time.Duration
	entry         Number
	// reported is when the leader was sent own, and wait the time after that.
	reported, wait time.Duration
}

// proposed identifies what hashes depend on.
type proposed struct {
	files  *RuleSet
	latest string
	local  string
}

// adoptAfter is how long the other daemons must propose the same files while
// some of them are silent.
const adoptAfter = 10 * time.Second

// Files sets the files of limits of this daemon, nil for none. In domains that
// were adopted from files they are a proposal, which becomes an entry when all
// daemons have it.
func (a *LimitsAgent) Files(s *RuleSet) { a.proposals.files = s }

// Adoption returns the change that adopts the files of this daemon.
func (a *LimitsAgent) Adoption() (*LimitsChange, error) {
	s := a.proposals.files
	if s == nil {
		return nil, errors.New("this daemon has no valid files of limits")
	}
	return &LimitsChange{Rules: &RulesChange{Set: s, Adopt: true}}, nil
}

// compare computes the hashes of the proposals again if they may have changed.
func (a *LimitsAgent) compare() {
	p, l := &a.proposals, &a.node.record.Limits
	is := proposed{files: p.files, local: strings.Join(l.Local, "\n")}
	if s := l.Latest(); s != nil {
		is.latest = s.Set
	}
	if p.of == is {
		return
	}
	p.of, p.own, p.active, p.agreed, p.again = is, 0, 0, -1, 0
	local := func(domain string) bool { return l.SupplierOf(domain) == SupplierLocal }
	hash := func(s *RuleSet) Number {
		if s == nil || len(l.Local) == 0 {
			return 0
		}
		files, err := a.filesOf(s, a.sizes(), local)
		if err != nil || len(files) == 0 { // a daemon without files proposes nothing
			return 0
		}
		var texts []string
		for i := range files {
			texts = append(texts, files[i].Text)
		}
		slices.Sort(texts)
		form, err := json.Marshal(texts)
		if err != nil {
			return 0
		}
		sum := sha256.Sum256(form)
		return Number(binary.BigEndian.Uint64(sum[:]) | 1) // not 0
	}
	p.own, p.active = hash(p.files), hash(l.Set(is.latest))
}

// adopt makes the leader adopt files that all daemons propose, and all others
// send their proposal to it.
func (a *LimitsAgent) adopt() {
	n, p := a.node, &a.proposals
	a.compare()
	if p.own == 0 || p.own == p.active || n.record.Limits.Pending() != (Version{}) {
		p.agreed, p.wait = -1, 0
		return
	}
	if !n.leads() {
		if leader := n.byID(n.leader()); leader != nil && n.at >= p.reported+p.wait {
			p.reported, p.wait = n.at, min(max(2*p.wait, n.cfg.Retry), 32*n.cfg.Retry)
			n.send(leader, Message{})
		}
		return
	}
	silent := false
	for _, g := range n.record.Regions {
		silent = silent || g.Name != n.cfg.Region && !slices.ContainsFunc(n.peers, func(o *peer) bool { return o.Region == g.Name })
	}
	for _, o := range n.peers {
		switch heard := isLive(n, o); {
		case !heard || o.sender.Files == 0:
			silent = true
		case o.sender.Files != p.own:
			p.agreed = -1
			return
		}
	}
	if p.agreed < 0 {
		p.agreed = n.at
	}
	if silent && n.at-p.agreed < adoptAfter || !n.raft.complete() || n.requests.index(p.entry) >= 0 || n.at < p.again {
		return
	}
	change, err := a.Adoption()
	if err != nil {
		return
	}
	p.entry, p.again = n.number(), n.at+time.Minute
	r := Request{ID: p.entry, Author: "files", Reason: "all daemons have them", Change: Change{Limits: change}}
	n.requests.own = append(n.requests.own, ownRequest{Request: r, due: n.at, silent: true})
	sendRequests(n)
}
