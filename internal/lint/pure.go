package lint

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// The rules about pure packages. Tests are exempt.
const (
	rulePure  = "pure"
	ruleFloat = "float"
)

// impure lists the names that a pure package must not use, by package.
var impure = map[string][]string{
	"time": {
		"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", // Clock.
		"Local", "LoadLocation", // Environment and files.
	},
	"crypto/ed25519": {"GenerateKey"}, // It has a global source.
	"fmt":            {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
	"iter":           {"Pull", "Pull2"}, // Coroutines.
}

// seeded lists the names of math/rand/v2 that a pure package may use; the rest
// draws from the global source.
var seeded = []string{"New", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "PCG", "ChaCha8", "Zipf"}

// inexact lists the functions and methods that return floats without saying so
// where they are called.
var inexact = []string{
	"Seconds", "Minutes", "Hours", "ParseFloat", "Float32", "Float64", "NormFloat64", "ExpFloat64",
}

// checkPurity looks for what makes f impure or inexact.
func (c *checker) checkPurity(f *file) {
	e := c.policy.packages[f.pkg]
	if e == nil || f.test || !e.pure && !e.integer {
		return
	}
	names := make(map[string]string) // what code calls an import -> its path
	for _, spec := range f.syntax.Imports {
		name := importPath(spec)
		names[baseName(name)] = name
		if spec.Name != nil {
			names[spec.Name.Name] = name
		}
		if e.pure {
			c.checkPureImport(f, e, spec, name)
		}
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if e.pure {
			c.checkPureNode(f, n, names)
		}
		if e.integer {
			c.checkExactNode(f, n, names)
		}
		return true
	})
}

// checkPureImport lets pass the standard packages of the policy, packages of
// this module (their layers are checked) and the modules on e's line.
func (c *checker) checkPureImport(f *file, e *entry, spec *ast.ImportSpec, name string) {
	outside := func(module string) bool { return within(name, module) }
	if spec.Name != nil && spec.Name.Name == "." {
		c.report(f, spec.Pos(), rulePure, "dot import of %s: it hides where names come from", name)
	}
	if !c.policy.std[name] && !within(name, c.module) && !slices.ContainsFunc(e.ext, outside) {
		c.report(f, spec.Pos(), rulePure, "import of %s, which is not among the imports of pure packages", name)
	}
}

// checkPureNode reports concurrency, clocks, output and global randomness.
func (c *checker) checkPureNode(f *file, n ast.Node, names map[string]string) {
	switch n := n.(type) {
	case *ast.GoStmt:
		c.report(f, n.Pos(), rulePure, "go statement: the driver owns the goroutines")
	case *ast.SelectStmt:
		c.report(f, n.Pos(), rulePure, "select statement")
	case *ast.ChanType:
		c.report(f, n.Pos(), rulePure, "channel type: return duties, the driver has the channels")
	case *ast.SendStmt:
		c.report(f, n.Pos(), rulePure, "send to a channel")
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			c.report(f, n.Pos(), rulePure, "receive from a channel")
		}
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
			c.report(f, n.Pos(), rulePure, "%s writes to standard error", id.Name)
		}
	case *ast.SelectorExpr:
		name := importOf(n, names)
		switch {
		case slices.Contains(impure[name], n.Sel.Name):
			c.report(f, n.Pos(), rulePure, "%s.%s: time, order and chance are arguments", name, n.Sel.Name)
		case name == "math/rand/v2" && !slices.Contains(seeded, n.Sel.Name):
			c.report(f, n.Pos(), rulePure, "%s.%s draws from the global source: take a *rand.Rand", name, n.Sel.Name)
		}
	}
}

// checkExactNode reports floating point.
func (c *checker) checkExactNode(f *file, n ast.Node, names map[string]string) {
	switch n := n.(type) {
	case *ast.Ident:
		switch n.Name {
		case "float32", "float64", "complex64", "complex128":
			c.report(f, n.Pos(), ruleFloat, "%s: replicas must agree to the last bit", n.Name)
		}
	case *ast.BasicLit:
		if n.Kind == token.FLOAT || n.Kind == token.IMAG {
			c.report(f, n.Pos(), ruleFloat, "literal %s: write an integer", n.Value)
		}
	case *ast.SelectorExpr:
		integer := strings.Contains(n.Sel.Name, "Int") || strings.Contains(n.Sel.Name, "Uint") // MaxInt64 and such
		if importOf(n, names) == "math" && !integer {
			c.report(f, n.Pos(), ruleFloat, "math.%s is a float", n.Sel.Name)
		}
	case *ast.CallExpr:
		if sel, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(inexact, sel.Sel.Name) {
			c.report(f, n.Pos(), ruleFloat, "%s() returns a float", sel.Sel.Name)
		}
	}
}

// importOf returns the path of the import that sel selects from, "" if none.
func importOf(sel *ast.SelectorExpr, names map[string]string) string {
	if id, ok := sel.X.(*ast.Ident); ok {
		return names[id.Name]
	}
	return ""
}
