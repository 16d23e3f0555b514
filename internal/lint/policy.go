package lint

import (
	_ "embed" // For the policy.
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// policyFile is the name that findings about the policy itself carry.
const policyFile = "internal/lint/policy.txt"

//go:embed policy.txt
var policyText string

// entry is the line of one package.
type entry struct {
	pkg     string // folder, relative to the root
	line    int    // in the policy
	layer   int
	highest int // highest layer it sees
	pure    bool
	integer bool
	planned bool
	confine bool     // sees the packages of plus only, whatever their layer
	plus    []string // packages of its own layer that it sees
	tests   []string // packages of its own layer that its tests see
	ext     []string // modules that it imports although it is pure
	why     string
}

// exclusive is a module that only some packages import.
type exclusive struct {
	module string
	pkgs   []string
	why    string
}

// policy is the parsed text.
type policy struct {
	packages  map[string]*entry
	exclusive []exclusive
	std       map[string]bool // standard packages for pure ones
}

// parsePolicy reads the policy. Errors name the line.
func parsePolicy(text string) (*policy, error) {
	p := &policy{packages: make(map[string]*entry), std: make(map[string]bool)}
	layer := -1
	for i, line := range strings.Split(text, "\n") {
		rule, why, _ := strings.Cut(line, " -- ")
		words := strings.Fields(rule)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		var err error
		switch words[0] {
		case "layer":
			layer, err = strconv.Atoi(strings.Join(words[1:], " "))
		case "only":
			err = p.addExclusive(words[1:], why)
		case "std":
			for _, name := range words[1:] {
				p.std[name] = true
			}
		default:
			err = p.addPackage(words, why, layer, i+1)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", policyFile, i+1, err)
		}
	}
	return p, nil
}

func (p *policy) addPackage(words []string, why string, layer, line int) error {
	e := &entry{pkg: words[0], line: line, layer: layer, highest: layer, why: why}
	switch {
	case layer < 0:
		return fmt.Errorf("%s stands before the first layer", e.pkg)
	case p.packages[e.pkg] != nil:
		return fmt.Errorf("%s is listed twice", e.pkg)
	case why == "":
		return fmt.Errorf("%s has no reason: write it after \" -- \"", e.pkg)
	}
	for _, mark := range words[1:] {
		if err := e.mark(mark); err != nil {
			return err
		}
	}
	p.packages[e.pkg] = e
	return nil
}

func (e *entry) mark(mark string) error {
	switch {
	case mark == "pure":
		e.pure = true
	case mark == "integer":
		e.integer = true
	case mark == "planned":
		e.planned = true
	case strings.HasPrefix(mark, "+"):
		e.plus = append(e.plus, mark[1:])
	case strings.HasPrefix(mark, "="):
		e.confine = true
		e.plus = append(e.plus, mark[1:])
	case strings.HasPrefix(mark, "test:"):
		e.tests = append(e.tests, strings.TrimPrefix(mark, "test:"))
	case strings.HasPrefix(mark, "ext:"):
		e.ext = append(e.ext, strings.TrimPrefix(mark, "ext:"))
	case strings.HasPrefix(mark, "<="):
		highest, err := strconv.Atoi(mark[2:])
		e.highest = highest
		return err
	default:
		return fmt.Errorf("%s: unknown mark %q", e.pkg, mark)
	}
	return nil
}

func (p *policy) addExclusive(words []string, why string) error {
	at := slices.Index(words, "import")
	if at < 1 || at != len(words)-2 || why == "" {
		return fmt.Errorf("want: only PACKAGES import MODULE -- REASON")
	}
	p.exclusive = append(p.exclusive, exclusive{module: words[at+1], pkgs: words[:at], why: why})
	return nil
}

// objection returns why e, or a test of e, may not import to, or "" if it may.
func (e *entry) objection(to *entry, test bool) string {
	switch {
	case slices.Contains(e.plus, to.pkg), test && slices.Contains(e.tests, to.pkg):
		return ""
	case e.confine:
		return fmt.Sprintf("%s is not for %s, which sees only [%s] of this module: %s",
			to.pkg, e.pkg, strings.Join(e.plus, " "), e.why)
	case to.layer > e.highest:
		return fmt.Sprintf("%s is in layer %d and %s sees none above %d: imports go down only",
			to.pkg, to.layer, e.pkg, e.highest)
	case to.layer == e.layer:
		return fmt.Sprintf("%s is in layer %d as well, and the line of %s does not say +%s",
			to.pkg, to.layer, e.pkg, to.pkg)
	}
	return ""
}

// allows reports whether pkg may import the module.
func (x *exclusive) allows(pkg string) bool {
	return slices.ContainsFunc(x.pkgs, func(pattern string) bool {
		folder, below := strings.CutSuffix(pattern, "/...")
		return pkg == folder || below && within(pkg, folder)
	})
}

// within reports whether the slash-separated name is prefix or below it.
func within(name, prefix string) bool {
	return name == prefix || strings.HasPrefix(name, prefix+"/")
}

// baseName is the name by which code uses an import without an alias.
func baseName(importPath string) string {
	base := path.Base(importPath)
	if len(base) > 1 && base[0] == 'v' && strings.Trim(base[1:], "0123456789") == "" {
		return path.Base(path.Dir(importPath))
	}
	return base
}
