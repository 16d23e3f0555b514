package lint

import (
	"go/ast"
	"strings"
)

// ruleSecret is the rule about secrets: they come from secure randomness.
const ruleSecret = "secret"

// guessable is the function that returns secrets of a seeded source, for
// simulations and tests.
const guessable = "InsecureSeed"

// checkSecrets reports keys that can be guessed outside of the simulator.
func (c *checker) checkSecrets(f *file) {
	if f.test || f.pkg == "sim" || strings.HasPrefix(f.pkg, "sim/") {
		return
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && calls(call, guessable) {
			c.report(f, n.Pos(), ruleSecret, "%s: a key that can be guessed: take control.NewSeed(crypto/rand.Reader)", guessable)
		}
		return true
	})
}

// calls reports whether a call is of a function with a name, in any package.
func calls(call *ast.CallExpr, name string) bool {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name == name
	case *ast.SelectorExpr:
		return fun.Sel.Name == name
	}
	return false
}
