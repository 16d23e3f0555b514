package main

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/pluginpb"
)

// compile reads every .proto file below root and returns the request to a
// plugin: the files to generate, sorted, and all descriptors they need, each
// after its imports.
func compile(ctx context.Context, root string) (*pluginpb.CodeGeneratorRequest, error) {
	names, err := find(root, ".proto")
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no .proto file below %s", root)
	}
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		// The comments become doc comments of the generated code.
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	// No compiler version: the headers then name no protoc, for there is none.
	req := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: names,
		Parameter:      new("paths=source_relative"),
	}
	seen := make(map[string]bool)
	for _, f := range files {
		addFile(req, f, seen)
	}
	return req, nil
}

// addFile appends f to req after the files it imports, each once.
func addFile(req *pluginpb.CodeGeneratorRequest, f protoreflect.FileDescriptor, seen map[string]bool) {
	if seen[f.Path()] {
		return
	}
	seen[f.Path()] = true
	for i := range f.Imports().Len() {
		addFile(req, f.Imports().Get(i).FileDescriptor, seen)
	}
	req.ProtoFile = append(req.ProtoFile, protoutil.ProtoFromFileDescriptor(f))
}

// find returns the files below root whose names end in suffix, sorted, as
// slash-separated paths relative to root.
func find(root, suffix string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, suffix) {
			return err
		}
		rel, err := filepath.Rel(root, path)
		names = append(names, filepath.ToSlash(rel))
		return err
	})
	slices.Sort(names)
	return names, err
}
