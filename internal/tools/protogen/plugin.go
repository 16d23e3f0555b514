package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/pluginpb"
)

// plugin is the name of a protoc plugin among the tools of this module.
type plugin string

// plugins are run in this order.
var plugins = [...]plugin{"protoc-gen-go", "protoc-gen-go-grpc"}

// generate asks the plugin and adds the files it answers to files, by their
// slash-separated paths. It runs the plugin through the go command, so the
// working folder must be inside this module.
func (p plugin) generate(
	ctx context.Context, req *pluginpb.CodeGeneratorRequest, files map[string]string,
) error {
	in, err := proto.MarshalOptions{Deterministic: true}.Marshal(req)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "tool", string(p))
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	var resp pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &resp); err != nil {
		return fmt.Errorf("decode response: %w", err)
	}
	if resp.Error != nil {
		return errors.New(resp.GetError())
	}
	for _, f := range resp.File {
		if f.InsertionPoint != nil {
			return fmt.Errorf("%s: insertion points are not supported", f.GetName())
		}
		if _, twice := files[f.GetName()]; twice {
			return fmt.Errorf("%s: generated twice", f.GetName())
		}
		files[f.GetName()] = f.GetContent()
	}
	return nil
}
