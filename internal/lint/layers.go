package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The rules about imports.
const (
	ruleTable     = "table"     // every package is in the policy, and the reverse
	ruleLayers    = "layers"    // imports go down only
	ruleExclusive = "exclusive" // some modules belong to some packages
)

// checkTable compares the packages of the tree with those of the policy.
func (c *checker) checkTable() {
	seen := make(map[string]bool)
	for _, f := range c.files {
		if seen[f.pkg] {
			continue
		}
		seen[f.pkg] = true
		if c.policy.packages[f.pkg] == nil {
			c.report(f, f.syntax.Name.Pos(), ruleTable,
				"package %s is in no layer: give it a line in %s", f.pkg, policyFile)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.policy.packages)) {
		e := c.policy.packages[name]
		switch {
		case e.planned && seen[name]:
			c.reportPolicy(e, "%s is there: it is planned no more", name)
		case !e.planned && !seen[name]:
			c.reportPolicy(e, "%s has no Go files: take its line out or mark it planned", name)
		}
		for _, other := range slices.Concat(e.plus, e.tests) {
			if other != "" && c.policy.packages[other] == nil {
				c.reportPolicy(e, "%s may import %s, which has no line", name, other)
			}
		}
	}
}

// reportPolicy adds a finding about the line of e in the policy.
func (c *checker) reportPolicy(e *entry, format string, args ...any) {
	c.findings = append(c.findings, Finding{
		File: policyFile, Line: e.line, Rule: ruleTable, Text: fmt.Sprintf(format, args...),
	})
}

// checkImports holds the imports of f, tests included, to layers and modules.
func (c *checker) checkImports(f *file) {
	from := c.policy.packages[f.pkg]
	if from == nil {
		return // The table has a finding already.
	}
	for _, spec := range f.syntax.Imports {
		name := importPath(spec)
		for _, x := range c.policy.exclusive {
			if within(name, x.module) && !x.allows(f.pkg) {
				c.report(f, spec.Pos(), ruleExclusive, "import of %s: only %s may: %s",
					name, strings.Join(x.pkgs, ", "), x.why)
			}
		}
		local, ok := strings.CutPrefix(name, c.module+"/")
		if !ok || local == f.pkg { // A package's external tests import it.
			continue
		}
		to := c.policy.packages[local]
		if to == nil {
			c.report(f, spec.Pos(), ruleTable, "import of %s, which is in no layer", local)
			continue
		}
		if no := from.objection(to, f.test); no != "" {
			c.report(f, spec.Pos(), ruleLayers, "%s", no)
		}
	}
}
