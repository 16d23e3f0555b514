// Command protogen generates the Go code of every .proto file below a folder,
// or checks that the committed code is current. It compiles the files itself,
// so that no protoc is needed, and runs the plugins at the versions that this
// module names.
//
// Usage, from anywhere in the repository:
//
//	go run -C internal/tools ./protogen [-root ../../proto] [-check]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
)

func main() {
	root := flag.String("root", "../../proto", "folder of the .proto files; imports and output start there")
	check := flag.Bool("check", false, "write nothing; fail and name each file that is stale")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

// run generates below root, or compares with the files there when check is set.
func run(ctx context.Context, log io.Writer, root string, check bool) error {
	req, err := compile(ctx, root)
	if err != nil {
		return err
	}
	want := make(map[string]string)
	for _, p := range plugins {
		if err := p.generate(ctx, req, want); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	faults, err := compare(root, want)
	if err != nil {
		return err
	}
	if !check {
		return write(log, root, want, faults)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		errs = append(errs, fmt.Errorf("%s %s; run: make generate", name, faults[name]))
	}
	return errors.Join(errs...)
}
