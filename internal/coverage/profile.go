package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
)

// block is a run of statements of a file that are reached together.
type block struct {
	file        string // below the module
	first, last int    // lines
	statements  int
	reached     bool
}

// parse reads a profile of the go tool: a line for each block, once for each
// binary that has it.
func parse(profile string) ([]block, error) {
	type place struct{ file, span string }
	var blocks []block
	at := make(map[place]int)
	for line := range strings.Lines(profile) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "mode:") {
			continue
		}
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, module), ":")
		b := block{file: name}
		var column, endColumn, count int
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.first, &column, &b.last, &endColumn, &b.statements, &count); err != nil {
			return nil, fmt.Errorf("profile: %q: %w", line, err)
		}
		span, _, _ := strings.Cut(rest, " ")
		i, known := at[place{name, span}]
		if !known {
			i = len(blocks)
			at[place{name, span}] = i
			blocks = append(blocks, b)
		}
		blocks[i].reached = blocks[i].reached || count > 0
	}
	slices.SortFunc(blocks, func(a, b block) int {
		return cmp.Or(cmp.Compare(path.Dir(a.file), path.Dir(b.file)), cmp.Compare(a.file, b.file), cmp.Compare(a.first, b.first))
	})
	return blocks, nil
}

// function is a function of a file and the lines of its body.
type function struct {
	name        string
	first, last int
}

// functionsOf returns the functions of a file of the module, none if the file
// cannot be read. The working directory is in the repository.
func functionsOf(file string) []function {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	var all []function
	for _, d := range parsed.Decls {
		f, is := d.(*ast.FuncDecl)
		if !is || f.Body == nil {
			continue
		}
		name := f.Name.Name
		if f.Recv != nil {
			name = receiver(f.Recv.List[0].Type) + "." + name
		}
		all = append(all, function{name, set.Position(f.Pos()).Line, set.Position(f.End()).Line})
	}
	return all
}

// receiver returns the name of the type of a receiver.
func receiver(t ast.Expr) string {
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return "?"
		}
	}
}
