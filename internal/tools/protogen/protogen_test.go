package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const greeting = `syntax = "proto3";
package greet.v1;
import "google/protobuf/duration.proto";
option go_package = "example.org/greet/v1;greetv1";
message Greeting { string text = 1; google.protobuf.Duration delay = 2; }
service Greeter { rpc Greet(Greeting) returns (Greeting); }
`

func put(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// wantCheck runs the check and compares the faults it names, in order.
func wantCheck(t *testing.T, root string, want ...string) {
	t.Helper()
	var got []string
	if err := run(t.Context(), t.Output(), root, true); err != nil {
		got = strings.Split(err.Error(), "\n")
	}
	if len(got) != len(want) {
		t.Fatalf("check found %q, want %q", got, want)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]+";") {
			t.Errorf("fault %d is %q, want %q", i, got[i], want[i])
		}
	}
}

func TestGenerateAndCheck(t *testing.T) {
	root := t.TempDir()
	put(t, root, "greet/v1/greet.proto", greeting)
	wantCheck(t, root, "greet/v1/greet.pb.go is missing", "greet/v1/greet_grpc.pb.go is missing")

	if err := run(t.Context(), t.Output(), root, false); err != nil {
		t.Fatal(err)
	}
	wantCheck(t, root)
	code, err := os.ReadFile(filepath.Join(root, "greet/v1/greet.pb.go"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(code), root) {
		t.Error("the generated code names the folder it was generated in")
	}

	put(t, root, "greet/v1/greet.proto", strings.Replace(greeting, "text = 1", "words = 1", 1))
	put(t, root, "greet/v1/gone.pb.go", "package greetv1\n")
	wantCheck(t, root, "greet/v1/gone.pb.go is generated from no .proto file", "greet/v1/greet.pb.go is stale")

	if err := run(t.Context(), t.Output(), root, false); err != nil {
		t.Fatal(err)
	}
	wantCheck(t, root)
}

func TestFaultySource(t *testing.T) {
	root := t.TempDir()
	if err := run(t.Context(), t.Output(), root, true); err == nil {
		t.Error("a folder without .proto files was accepted")
	}
	put(t, root, "broken.proto", "syntax = \"proto3\";\nmessage {}\n")
	err := run(t.Context(), t.Output(), root, false)
	if err == nil || !strings.Contains(err.Error(), "broken.proto:2:9") {
		t.Errorf("error is %v, want one that names broken.proto:2:9", err)
	}
}
