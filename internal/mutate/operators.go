package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// source is a package whose code operators change.
type source struct {
	folder  string // from the root of the module
	fset    *token.FileSet
	paths   []string // of files, from the root
	data    [][]byte
	files   []*ast.File
	info    types.Info
	imports types.Importer
}

// site is a change that an operator can make.
type site struct {
	file     int
	from, to int // offsets
	text     string
	name     string // file:function:operator:index
}

// draw draws n mutations of the files by a seed: of each package in turn, those
// whose names have the lowest hash with the seed. So a change of one function
// does not change what is drawn in others. Mutations that do not compile are
// left out.
func draw(root string, files []string, n int, seed uint64, verdicts map[string]*verdict) ([]*mutation, error) {
	if n == 0 {
		return nil, nil
	}
	sources, err := load(root, files)
	if err != nil {
		return nil, err
	}
	sites := make([][]site, len(sources))
	for i, s := range sources {
		sites[i] = s.sites(files)
		slices.SortFunc(sites[i], func(a, b site) int {
			return strings.Compare(rank(seed, a.name), rank(seed, b.name))
		})
	}
	var list []*mutation
	for found := true; found && len(list) < n; {
		found = false
		for i, s := range sources {
			for len(sites[i]) > 0 && len(list) < n {
				m := s.mutate(&sites[i][0])
				sites[i] = sites[i][1:]
				if s.check(m) != nil {
					continue
				}
				if v := verdicts[m.Name+"\n"+m.Change]; v != nil {
					m.Equivalent, m.Survives = v.equivalent, v.survives
				}
				list, found = append(list, m), true
				break
			}
		}
	}
	return list, nil
}

// rank orders the sites of a seed.
func rank(seed uint64, name string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", seed, name))
	return string(sum[:])
}

// folderOf returns the folder of a pattern: a package, or a file.
func folderOf(pattern string) string {
	if strings.HasSuffix(pattern, ".go") {
		return filepath.ToSlash(filepath.Dir(pattern))
	}
	return strings.TrimSuffix(pattern, "/")
}

// load reads the packages of the patterns.
func load(root string, patterns []string) ([]*source, error) {
	var folders []string
	for _, p := range patterns {
		if f := folderOf(p); !slices.Contains(folders, f) {
			folders = append(folders, f)
		}
	}
	args := []string{"list", "-deps", "-export", "-json=ImportPath,Export,Dir,GoFiles"}
	for _, f := range folders {
		args = append(args, "./"+f)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports := map[string]string{}
	found := map[string]*source{}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		file, ok := exports[path]
		if !ok {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(file)
	})
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p struct {
			ImportPath, Export, Dir string
			GoFiles                 []string
		}
		if err := dec.Decode(&p); err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		folder, err := filepath.Rel(root, p.Dir)
		if folder = filepath.ToSlash(folder); err != nil || !slices.Contains(folders, folder) {
			continue
		}
		s := &source{folder: folder, fset: fset, imports: imports}
		for _, name := range p.GoFiles {
			data, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				return nil, err
			}
			s.paths, s.data = append(s.paths, folder+"/"+name), append(s.data, data)
		}
		found[folder] = s
	}
	var list []*source
	for _, folder := range folders {
		s := found[folder]
		if s == nil {
			return nil, fmt.Errorf("there is no package in %s", folder)
		}
		s.info = types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
		if s.files, err = s.parse(nil); err != nil {
			return nil, err
		}
		if err := s.compile(s.files, &s.info); err != nil {
			return nil, fmt.Errorf("%s: %w", folder, err)
		}
		list = append(list, s)
	}
	return list, nil
}

// parse parses the files, one of them as the mutation has it.
func (s *source) parse(m *mutation) (files []*ast.File, err error) {
	for i, path := range s.paths {
		data := s.data[i]
		if m != nil {
			if path != m.File {
				files = append(files, s.files[i])
				continue
			}
			data = m.content
		}
		f, err := parser.ParseFile(s.fset, path, data, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// compile checks the types of the package.
func (s *source) compile(files []*ast.File, info *types.Info) error {
	conf := types.Config{Importer: s.imports}
	_, err := conf.Check("github.com/georld/rld/"+s.folder, s.fset, files, info)
	return err
}

// check returns an error for a mutation that does not compile.
func (s *source) check(m *mutation) error {
	files, err := s.parse(m)
	if err != nil {
		return err
	}
	return s.compile(files, nil)
}

// mutate makes the mutation of a site.
func (s *source) mutate(at *site) *mutation {
	data := s.data[at.file]
	from := 1 + bytes.LastIndexByte(data[:at.from], '\n')
	m := &mutation{
		Name: at.name, File: s.paths[at.file], Line: 1 + bytes.Count(data[:at.from], []byte("\n")),
		from: at.from, to: at.to, text: at.text, content: replaced(data, at.from, at.to, at.text),
	}
	rest := data[at.to:]
	if end := bytes.IndexByte(rest, '\n'); end >= 0 {
		rest = rest[:end+1]
	}
	m.Change = string(data[from:at.to]) + string(rest) + string(data[from:at.from]) + at.text + string(rest)
	return m
}

// sites returns the places that operators can change in the files of the
// patterns.
func (s *source) sites(patterns []string) (list []site) {
	for i, f := range s.files {
		if !slices.Contains(patterns, s.folder) && !slices.Contains(patterns, s.paths[i]) {
			continue
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil || textual.MatchString(fn.Name.Name) {
				continue
			}
			o := operators{source: s, file: i, function: functionName(fn), index: map[string]int{}}
			ast.Inspect(fn.Body, o.visit)
			list = append(list, o.sites...)
		}
	}
	return list
}

// textual matches the functions whose result is a text for readers.
var textual = regexp.MustCompile("^(String|Error|log[A-Z].*)$")

// functionName returns the name of a function with that of its receiver.
func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	if x, ok := t.(*ast.IndexExpr); ok {
		t = x.X
	}
	return types.ExprString(t) + "." + fn.Name.Name
}

// operators collects the sites of one function.
type operators struct {
	*source
	file     int
	function string
	index    map[string]int // of operators
	sites    []site
}

// add adds a change of a node's text.
func (o *operators) add(operator string, from, to token.Pos, text string) {
	name := fmt.Sprintf("%s:%s:%s:%d", o.paths[o.file], o.function, operator, o.index[operator])
	o.index[operator]++
	o.sites = append(o.sites, site{
		file: o.file, from: o.fset.Position(from).Offset, to: o.fset.Position(to).Offset, text: text, name: name,
	})
}

// text returns the source of a node.
func (o *operators) text(n ast.Node) string {
	return string(o.data[o.file][o.fset.Position(n.Pos()).Offset:o.fset.Position(n.End()).Offset])
}

// exchanged maps an operator to its replacement.
var exchanged = map[token.Token]struct {
	operator string
	by       token.Token
}{
	token.LSS: {"bound", token.LEQ}, token.LEQ: {"bound", token.LSS},
	token.GTR: {"bound", token.GEQ}, token.GEQ: {"bound", token.GTR},
	token.LAND: {"junction", token.LOR}, token.LOR: {"junction", token.LAND},
	token.ADD: {"sign", token.SUB}, token.SUB: {"sign", token.ADD},
}

// visit adds the sites of a node. It is a callback of ast.Inspect.
func (o *operators) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		o.add("negate", n.Cond.Pos(), n.Cond.End(), "!("+o.text(n.Cond)+")")
		if b, ok := n.Cond.(*ast.BinaryExpr); ok && b.Op == token.NEQ && o.isError(b.X) {
			o.add("ignore", n.Cond.Pos(), n.Cond.End(), "false && "+o.text(n.Cond))
		}
	case *ast.ReturnStmt:
		if k := len(n.Results); k > 0 && o.isError(n.Results[k-1]) && o.text(n.Results[k-1]) != "nil" {
			o.add("ignore", n.Results[k-1].Pos(), n.Results[k-1].End(), "nil")
		}
	case *ast.BinaryExpr:
		if by, ok := exchanged[n.Op]; ok {
			o.add(by.operator, n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), by.by.String())
		}
	case *ast.BasicLit:
		if v, err := strconv.ParseInt(n.Value, 0, 64); n.Kind == token.INT && err == nil {
			o.add("constant", n.Pos(), n.End(), strconv.FormatInt(v+1, 10))
		}
	case *ast.ExprStmt, *ast.IncDecStmt:
		o.add("drop", n.Pos(), n.End(), "")
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			o.add("drop", n.Pos(), n.End(), "")
		}
	case *ast.CallExpr:
		o.swap(n)
	}
	return true
}

// isError reports whether an expression is an error.
func (o *operators) isError(x ast.Expr) bool {
	t := o.info.Types[x].Type
	return t != nil && types.Identical(t, types.Universe.Lookup("error").Type())
}

// commutative are functions whose arguments have no order.
var commutative = []string{"min", "max", "Add", "AddSat", "Join", "Equal", "append"}

// swap adds the exchange of two neighboring arguments of one type.
func (o *operators) swap(call *ast.CallExpr) {
	name := call.Fun
	if sel, ok := name.(*ast.SelectorExpr); ok {
		name = sel.Sel
	}
	if slices.Contains(commutative, o.text(name)) {
		return
	}
	for i := range len(call.Args) - 1 {
		a, b := call.Args[i], call.Args[i+1]
		ta, tb := o.info.Types[a].Type, o.info.Types[b].Type
		if ta != nil && tb != nil && types.Identical(ta, tb) && o.text(a) != o.text(b) {
			o.add("swap", a.Pos(), b.End(), o.text(b)+", "+o.text(a))
		}
	}
}

// checkNamed returns the errors of named mutations that do not compile.
func checkNamed(root string, list []*mutation) error {
	var folders []string
	for _, m := range list {
		folders = append(folders, m.pkg())
	}
	sources, err := load(root, folders)
	if err != nil {
		return err
	}
	var all []error
	for _, m := range list {
		i := slices.IndexFunc(sources, func(s *source) bool { return s.folder == m.pkg() })
		if err := sources[i].check(m); err != nil {
			all = append(all, fmt.Errorf("%s: %w", m.Name, err))
		}
	}
	return errors.Join(all...)
}
