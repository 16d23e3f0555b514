package lint

import (
	"go/ast"
	"path"
	"slices"
)

// The rules about size.
const (
	ruleMethods = "methods" // a type is small enough to be read
	ruleFiles   = "files"   // a folder is small enough to be listed
	ruleNames   = "names"   // a package has a small door
)

const (
	maxMethods = 60 // of a type
	maxFiles   = 30 // of a folder, tests apart
)

// maxNames bounds the exported package-level names, as go doc lists them, of
// the widest packages. Those of subfolders count with their parent.
var maxNames = map[string]int{"node": 90, "sim": 90, "sticky": 90}

// checkShape holds types, folders and packages to their sizes.
func (c *checker) checkShape() {
	methods := make(map[string]int)
	files := make(map[string]int)
	names := make(map[string]int)
	for _, f := range c.files {
		if f.test || f.generated {
			continue
		}
		if files[f.pkg]++; files[f.pkg] == maxFiles+1 {
			c.report(f, f.syntax.Package, ruleFiles, "%s has more than %d files: split it by noun", f.pkg, maxFiles)
		}
		for _, decl := range f.syntax.Decls {
			if name := receiver(decl); name != "" {
				key := path.Join(f.pkg, name)
				if methods[key]++; methods[key] == maxMethods+1 {
					c.report(f, decl.Pos(), ruleMethods, "%s has more than %d methods: take a part out", key, maxMethods)
				}
				continue
			}
			for wide, most := range maxNames {
				if f.pkg != wide && !within(f.pkg, wide) {
					continue
				}
				before := names[wide]
				if names[wide] += exported(decl); before <= most && names[wide] > most {
					c.report(f, decl.Pos(), ruleNames, "%s and its subfolders export more than %d names", wide, most)
				}
			}
		}
	}
}

// receiver returns the name of the type that a method belongs to, "" of other
// declarations.
func receiver(decl ast.Decl) (name string) {
	fn, ok := decl.(*ast.FuncDecl)
	if !ok || fn.Recv == nil {
		return ""
	}
	ast.Inspect(fn.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" { // before its parameters
			name = id.Name
		}
		return name == ""
	})
	return name
}

// exported returns how many lines go doc lists for a declaration: one for a
// function, one for each type, one for a group of constants or variables.
func exported(decl ast.Decl) (lines int) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() {
			return 1
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					lines++
				}
			case *ast.ValueSpec:
				if slices.ContainsFunc(s.Names, (*ast.Ident).IsExported) {
					return 1
				}
			}
		}
	}
	return lines
}
