package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/georld/rld/internal/yamlpos"
)

// Parse reads a tokens file. An error lists every fault with its place and what
// would be right. It never repeats text of the file: a token may have been
// written into it by mistake, and the path may be that of another secret.
func Parse(file string, data []byte) (Tokens, error) { return parse(callers, file, data) }

// ParseOperators reads a file with the tokens of operators, as Parse.
func ParseOperators(file string, data []byte) (Tokens, error) { return parse(operators, file, data) }

// kind is what the tokens of a file are for.
type kind struct {
	setting string
	example string // the list of a file
	fields  string
	needs   []string
}

var (
	callers = &kind{
		"auth.tokens_file", "tokens: [{name: shop, sha256: HASH, domains: [shop]}]",
		"name, sha256, domains, verb and rate",
		[]string{"name", "sha256", "domains"},
	}
	operators = &kind{
		"admin.tokens_file", "tokens: [{name: ann, sha256: HASH, role: operate}]",
		"name, sha256 and role",
		[]string{"name", "sha256", "role"},
	}
)

func parse(k *kind, file string, data []byte) (Tokens, error) {
	root, _, fault := yamlpos.Parse(file, data, yamlpos.Options{MaxBytes: MaxBytes})
	p := parser{kind: k, lines: make(map[string]int), hashes: make(map[uint64]int)}
	if fault != nil {
		at := fault.Position
		if at.File == "" {
			at.File = file
		}
		p.fault(at, "is not YAML of at most 1 MiB with the map tokens")
	} else {
		p.root(root)
	}
	if err := p.found.Err(); err != nil {
		return nil, err
	}
	return p.tokens, nil
}

// parser gathers the tokens and the faults of one file.
type parser struct {
	kind   *kind
	tokens Tokens
	found  yamlpos.Diagnostics
	lines  map[string]int // of the names
	hashes map[uint64]int // their lines
}

// maxFaults bounds the reported faults.
const maxFaults = 20

func (p *parser) fault(at yamlpos.Position, format string, args ...any) {
	if len(p.found) < maxFaults {
		p.found = append(p.found, yamlpos.Diagnostic{Position: at, Message: fmt.Sprintf(format, args...)})
	}
}

func (p *parser) root(n *yamlpos.Node) {
	if n.Kind != yamlpos.Map {
		p.fault(n.Pos, "is no tokens file: want the map tokens, such as %s", p.kind.example)
		return
	}
	var list *yamlpos.Node
	p.fields(n, "a tokens file", map[string]func(*yamlpos.Node){"tokens": func(v *yamlpos.Node) { list = v }})
	switch {
	case list == nil:
		if len(p.found) == 0 {
			p.fault(n.Pos, "tokens is missing: without tokens nobody may call; leave %s out to require none", p.kind.setting)
		}
	case list.Kind != yamlpos.List || len(list.Items) == 0 || len(list.Items) > MaxTokens:
		p.fault(list.Pos, "tokens is not a list of 1 to %d tokens; rld token new makes one", MaxTokens)
	default:
		for _, item := range list.Items {
			p.token(item)
		}
	}
}

// fields reads a map with known fields, each at most once.
func (p *parser) fields(n *yamlpos.Node, what string, known map[string]func(*yamlpos.Node)) {
	seen := make(map[string]bool)
	for _, pair := range n.Pairs {
		name := pair.Key.Text
		read, ok := known[name]
		switch {
		case !ok:
			p.fault(pair.Key.Pos, "is no field of %s", what)
		case seen[name]:
			p.fault(pair.Key.Pos, "%s is given twice: keep one", name)
		default:
			seen[name] = true
			read(pair.Value)
		}
	}
}

func (p *parser) token(n *yamlpos.Node) {
	what := "a token: " + p.kind.fields
	if n.Kind != yamlpos.Map {
		p.fault(n.Pos, "is not the map of %s", what)
		return
	}
	var t Token
	given := make(map[string]bool)
	read := func(name string, read func(*yamlpos.Node, *Token)) func(*yamlpos.Node) {
		return func(v *yamlpos.Node) {
			given[name] = true
			read(v, &t)
		}
	}
	known := map[string]func(*yamlpos.Node){"name": read("name", p.name), "sha256": read("sha256", p.hash)}
	if p.kind == operators {
		known["role"] = read("role", p.role)
	} else {
		known["domains"], known["verb"], known["rate"] = read("domains", p.domains), read("verb", p.verb), read("rate", p.rate)
	}
	p.fields(n, what, known)
	for _, name := range p.kind.needs {
		if !given[name] {
			p.fault(n.Pos, "the token has no %s", name)
		}
	}
	p.tokens = append(p.tokens, t)
}

func (p *parser) name(n *yamlpos.Node, t *Token) {
	if !ValidName(n.Text) || n.Kind != yamlpos.Scalar {
		p.fault(n.Pos, "name is not 1 to %d letters, digits, dots, underscores and dashes", maxName)
		return
	}
	if line, ok := p.lines[n.Text]; ok {
		p.fault(n.Pos, "name is that of the token in line %d: give each its own", line)
	}
	p.lines[n.Text], t.Name = n.Pos.Line, n.Text
}

// ValidName reports whether a token may have a name.
func ValidName(s string) bool {
	ok := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)
	}
	return s != "" && len(s) <= maxName && strings.IndexFunc(s, func(r rune) bool { return !ok(r) }) < 0
}

func (p *parser) hash(n *yamlpos.Node, t *Token) {
	sum, err := hex.DecodeString(n.Text)
	if err != nil || len(sum) != sha256.Size || n.Kind != yamlpos.Scalar {
		p.fault(n.Pos, "sha256 is not a hash of 64 hexadecimal digits; rld token new prints it, "+
			"or printf %%s TOKEN | sha256sum; the token itself does not belong here")
		return
	}
	copy(t.SHA256[:], sum)
	key := short(&t.SHA256)
	if line, ok := p.hashes[key]; ok {
		p.fault(n.Pos, "sha256 is that of the token in line %d: one token has one entry", line)
	}
	p.hashes[key] = n.Pos.Line
}

func (p *parser) domains(n *yamlpos.Node, t *Token) {
	if n.Kind != yamlpos.List || len(n.Items) == 0 || len(n.Items) > maxDomains {
		p.fault(n.Pos, `domains is not a list of 1 to %d domains, such as [shop], or ["*"] for all`, maxDomains)
		return
	}
	for _, item := range n.Items {
		if !ValidDomain(item.Text) || item.Kind != yamlpos.Scalar {
			p.fault(item.Pos, `a domain is 1 to %d bytes of text, or "*" for all; it has no other wildcards`, maxDomain)
			continue
		}
		t.Domains = append(t.Domains, item.Text)
	}
}

// ValidDomain reports whether a token may name a domain: there is no wildcard
// in it, except that Everything is all of them.
func ValidDomain(s string) bool {
	return s == Everything || s != "" && len(s) <= maxDomain && !strings.Contains(s, "*")
}

func (p *parser) verb(n *yamlpos.Node, t *Token) {
	v, ok := ParseVerb(n.Text)
	if !ok || n.Kind != yamlpos.Scalar {
		p.fault(n.Pos, "verb is neither check nor read (peeks only)")
	}
	t.Verb = v
}

func (p *parser) role(n *yamlpos.Node, t *Token) {
	r, ok := ParseRole(n.Text)
	if !ok || n.Kind != yamlpos.Scalar {
		p.fault(n.Pos, "role is neither view nor operate nor admin")
	}
	t.Role = r
}

// ParseVerb returns the verb of a name.
func ParseVerb(s string) (v Verb, ok bool) {
	switch s {
	case Check.String():
		return Check, true
	case Read.String():
		return Read, true
	}
	return Read, false
}

func (p *parser) rate(n *yamlpos.Node, t *Token) {
	f, err := strconv.ParseFloat(n.Text, 64)
	if err != nil || !ValidRate(f) || n.Kind != yamlpos.Scalar {
		p.fault(n.Pos, "rate is not a number of calls a second above 0, at most %d; leave it out for no bound", maxRate)
		return
	}
	t.Rate = f
}

// ValidRate reports whether a token may have a rate.
func ValidRate(f float64) bool { return f >= 0.001 && f <= maxRate }
