package lint

import (
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The rules about style.
const (
	ruleDoc    = "doc"    // every package has one package comment
	ruleName   = "name"   // a package is named after its content
	ruleLength = "length" // a file is one noun
	ruleInit   = "init"   // nothing happens before main
	ruleNolint = "nolint" // a silenced check has a reason
)

// maxLines is the length of the longest file that is not generated.
const maxLines = 500

// vague lists package names without a meaning.
var vague = []string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "types"}

// A comment that silences a check, and the form that it must have.
var (
	silence  = regexp.MustCompile(`^//\s*(nolint|lint:(file-)?ignore)\b`)
	reasoned = regexp.MustCompile(`^//(nolint:[a-z0-9,]+ // \S|lint:(file-)?ignore \S+ \S)`)
)

// checkStyle holds one file to the rules that need no other file.
func (c *checker) checkStyle(f *file) {
	if f.generated {
		return
	}
	if f.lines > maxLines {
		c.report(f, f.syntax.FileEnd, ruleLength, "%d lines; split it by noun before it passes %d", f.lines, maxLines)
	}
	for _, decl := range f.syntax.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			c.report(f, fn.Pos(), ruleInit, "init function: let main call what must be called")
		}
	}
	for _, group := range f.syntax.Comments {
		for _, comment := range group.List {
			if silence.MatchString(comment.Text) && !reasoned.MatchString(comment.Text) {
				c.report(f, comment.Pos(), ruleNolint,
					"name the check and say why: //nolint:NAME // reason, or //lint:ignore NAME reason")
			}
		}
	}
}

// checkPackages holds each package to the rules about its name and comment.
func (c *checker) checkPackages() {
	folders := make(map[string][]*file)
	for _, f := range c.files {
		folders[f.pkg] = append(folders[f.pkg], f)
	}
	for _, files := range folders {
		c.checkPackage(files)
	}
}

// checkPackage takes the files of one folder. Comments are looked for in its
// tests only if it holds nothing else.
func (c *checker) checkPackage(files []*file) {
	code := slices.DeleteFunc(slices.Clone(files), func(f *file) bool { return f.test })
	if len(code) == 0 {
		code = files
	}
	first := code[0]
	name := first.syntax.Name.Name
	if slices.Contains(vague, name) || slices.Contains(vague, path.Base(first.pkg)) {
		c.report(first, first.syntax.Name.Pos(), ruleName, "package %s: name it after its content", name)
	}
	var documented *file
	for _, f := range code {
		switch {
		case f.generated || f.syntax.Doc == nil:
		case documented != nil:
			c.report(f, f.syntax.Doc.Pos(), ruleDoc, "a second package comment; the first is in %s", documented.name)
		default:
			documented = f
			want := "Package " + name + " "
			if name == "main" {
				want = "Command "
			}
			if !strings.HasPrefix(f.syntax.Doc.Text(), want) {
				c.report(f, f.syntax.Doc.Pos(), ruleDoc, "the package comment does not begin with %q", want)
			}
		}
	}
	if documented == nil {
		c.report(first, first.syntax.Name.Pos(), ruleDoc, "package %s has no package comment", name)
	}
}
