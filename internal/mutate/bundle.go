package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// selector is the environment variable that selects a mutation of a bundle by
// its number, from 1 on.
const selector = "RLD_MUTATION"

// bundle is the tree with all mutations in it: a function with mutations has
// one copy for each, and begins with a jump to the selected one. So programs
// and tests are built once for all mutations, and without one they run the code
// of the tree. Mutations are inside one function each.
type bundle struct {
	overlay string            // the file for the go command
	numbers map[*mutation]int // from 1 on
}

// insertion is text that replaces a part of a file.
type insertion struct {
	from, to int
	text     string
}

// newBundle writes the files of a bundle to a folder.
func newBundle(root, folder string, list []*mutation) (*bundle, error) {
	b := &bundle{overlay: filepath.Join(folder, "overlay.json"), numbers: map[*mutation]int{}}
	byFile := map[string][]*mutation{}
	for i, m := range list {
		b.numbers[m] = i + 1
		byFile[m.File] = append(byFile[m.File], m)
	}
	replaced := map[string]string{}
	write := func(target, text string) error {
		file := filepath.Join(folder, strings.ReplaceAll(target, "/", "-"))
		replaced[filepath.Join(root, filepath.FromSlash(target))] = file
		return os.WriteFile(file, []byte(text), 0o600)
	}
	for file, mutations := range byFile {
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			return nil, err
		}
		text, name, err := b.embed(file, string(data), mutations)
		if err != nil {
			return nil, err
		}
		if err := write(file, text); err != nil {
			return nil, err
		}
		chosen := fmt.Sprintf("package %s\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\n"+
			"var selectedMutation, _ = strconv.Atoi(os.Getenv(%q))\n", name, selector)
		if err := write(mutations[0].pkg()+"/selected_mutation.go", chosen); err != nil {
			return nil, err
		}
	}
	data, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
	if err != nil {
		return nil, err
	}
	return b, os.WriteFile(b.overlay, data, 0o600)
}

// embed returns a file with mutations in it, and the name of its package.
func (b *bundle) embed(file, text string, mutations []*mutation) (embedded, pkg string, err error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, text, parser.SkipObjectResolution)
	if err != nil {
		return "", "", err
	}
	at := func(p token.Pos) int { return fset.Position(p).Offset }
	var edits []insertion
	copies := ""
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		jumps := ""
		for _, m := range mutations {
			if m.from <= at(fn.Body.Lbrace) || m.to > at(fn.Body.Rbrace) {
				continue
			}
			name := fmt.Sprintf("%s__%d", fn.Name.Name, b.numbers[m])
			jumps += jump(fn, b.numbers[m], name)
			copies += "\n" + text[at(fn.Pos()):at(fn.Name.Pos())] + name +
				text[at(fn.Name.End()):m.from] + m.text + text[m.to:at(fn.End())] + "\n"
		}
		if jumps != "" {
			edits = append(edits, nameArguments(fn, at)...)
			edits = append(edits, insertion{at(fn.Body.Lbrace) + 1, at(fn.Body.Lbrace) + 1, jumps})
		}
	}
	for _, m := range mutations {
		if !strings.Contains(copies, fmt.Sprintf("__%d", b.numbers[m])) {
			return "", "", fmt.Errorf("%s: it is not inside one function", m.Name)
		}
	}
	slices.SortStableFunc(edits, func(a, b insertion) int { return b.from - a.from })
	for _, e := range edits {
		text = text[:e.from] + e.text + text[e.to:]
	}
	return text + copies, f.Name.Name, nil
}

// jump returns the statement that calls a copy of a function in its place.
func jump(fn *ast.FuncDecl, number int, name string) string {
	call := name
	if fn.Recv != nil {
		call = argument(fn.Recv.List[0], 0, "mutationSelf") + "." + call
	} else if p := fn.Type.TypeParams; p != nil {
		var names []string
		for _, f := range p.List {
			for _, n := range f.Names {
				names = append(names, n.Name)
			}
		}
		call += "[" + strings.Join(names, ", ") + "]"
	}
	var args []string
	for i, f := range fn.Type.Params.List {
		for j := range max(1, len(f.Names)) {
			a := argument(f, j, fmt.Sprintf("mutation%d_%d", i, j))
			if _, ok := f.Type.(*ast.Ellipsis); ok {
				a += "..."
			}
			args = append(args, a)
		}
	}
	call += "(" + strings.Join(args, ", ") + ")"
	if fn.Type.Results != nil && len(fn.Type.Results.List) > 0 {
		return fmt.Sprintf(" if selectedMutation == %d { return %s };", number, call)
	}
	return fmt.Sprintf(" if selectedMutation == %d { %s; return };", number, call)
}

// argument returns the name of a parameter, or one for a parameter without.
func argument(f *ast.Field, i int, unnamed string) string {
	if len(f.Names) == 0 || f.Names[i].Name == "_" {
		return unnamed
	}
	return f.Names[i].Name
}

// nameArguments names the receiver and the parameters that have no name.
func nameArguments(fn *ast.FuncDecl, at func(token.Pos) int) (edits []insertion) {
	name := func(f *ast.Field, prefix func(j int) string) {
		if len(f.Names) == 0 {
			edits = append(edits, insertion{at(f.Type.Pos()), at(f.Type.Pos()), prefix(0) + " "})
		}
		for j, n := range f.Names {
			if n.Name == "_" {
				edits = append(edits, insertion{at(n.Pos()), at(n.End()), prefix(j)})
			}
		}
	}
	if fn.Recv != nil {
		name(fn.Recv.List[0], func(int) string { return "mutationSelf" })
	}
	for i, f := range fn.Type.Params.List {
		name(f, func(j int) string { return fmt.Sprintf("mutation%d_%d", i, j) })
	}
	return edits
}
