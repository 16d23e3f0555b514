package lint

import (
	"go/ast"
	"go/token"
	"slices"
)

// ruleFold: only quota knows the algorithms.
const ruleFold = "fold"

// algorithms lists the constants of rules.Algorithm.
var algorithms = []string{"FixedWindow", "SlidingWindow", "SlidingLog", "TokenBucket", "LeakyBucket"}

// mayKnow lists the folders that may depend on an algorithm: the folds, the
// definition, and the limits language. Every other package asks quota.Fold.
var mayKnow = []string{"quota", "rules", "limits"}

// checkFold reports code that depends on the algorithm of a limit. A literal
// that sets an algorithm is no dependence.
func (c *checker) checkFold(f *file) {
	if f.test || f.generated || slices.ContainsFunc(mayKnow, func(pkg string) bool { return within(f.pkg, pkg) }) {
		return
	}
	knows := func(nodes ...ast.Expr) {
		for _, n := range nodes {
			if sel, ok := n.(*ast.SelectorExpr); ok && (sel.Sel.Name == "Algorithm" || slices.Contains(algorithms, sel.Sel.Name)) {
				c.report(f, n.Pos(), ruleFold, "depends on %s: ask quota.Of(limit), so that a new algorithm is one change", sel.Sel.Name)
				return
			}
		}
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				knows(n.X, n.Y)
			}
		case *ast.SwitchStmt:
			knows(n.Tag)
		case *ast.CaseClause:
			knows(n.List...)
		case *ast.IndexExpr:
			knows(n.Index)
		case *ast.SelectorExpr:
			if n.Sel.Name == "Bucket" {
				knows(n.X)
			}
		}
		return true
	})
}
