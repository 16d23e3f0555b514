// Command release builds the files of a release of rld into one folder: static
// binaries for Linux, the modules in them as CycloneDX, the licences of those
// modules with their texts, and the checksums of all of these files. The same
// commit and the same Go release give the same bytes.
//
//	make release
//	cd dist && sha256sum --check SHA256SUMS
package main

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// platforms are those that a release has a binary for: GOOS/GOARCH.
var platforms = []string{"linux/amd64", "linux/arm64"}

func main() {
	out := flag.String("out", "dist", "the `folder` that receives the release; what is in it is removed")
	flag.Parse()
	if err := release(*out); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

// release fills the folder out. It runs in the root of the repository.
func release(out string) error {
	if err := emptied(out); err != nil {
		return err
	}
	for _, platform := range platforms {
		binary := filepath.Join(out, "rld-"+strings.ReplaceAll(platform, "/", "-"))
		fmt.Println("release:", binary)
		if err := build(platform, binary); err != nil {
			return err
		}
		if err := bom(binary); err != nil {
			return err
		}
	}
	if err := licences(filepath.Join(out, "LICENCES.txt")); err != nil {
		return err
	}
	return sums(out)
}

// emptied makes the folder, or removes the files of a former release from it.
// It refuses a folder with anything else.
func emptied(out string) error {
	files, err := os.ReadDir(out)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, f := range files {
		if name := f.Name(); !strings.HasPrefix(name, "rld-") && name != "LICENCES.txt" && name != "SHA256SUMS" {
			return fmt.Errorf("%s is no file of a release: name an empty folder by -out", filepath.Join(out, name))
		}
	}
	for _, f := range files {
		if err := os.Remove(filepath.Join(out, f.Name())); err != nil {
			return err
		}
	}
	return os.MkdirAll(out, 0o755)
}

// build links a static binary without symbols: the one of the image. It has the
// commit in it, for any GOFLAGS.
func build(platform, binary string) error {
	goos, goarch, _ := strings.Cut(platform, "/")
	return command([]string{"CGO_ENABLED=0", "GOOS=" + goos, "GOARCH=" + goarch},
		"go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", binary, "./cmd/rld")
}

// bom writes the modules that are linked into a binary, with their versions
// and hashes, and the release of Go. No time and no random number is in it.
func bom(binary string) error {
	return command(nil, "go", "tool", "-modfile=internal/tools/release/go.mod", "cyclonedx-gomod", "bin",
		"-json", "-std", "-noserial", "-notimestamp", "-output", binary+".cdx.json", binary)
}

// sums writes the checksums of all files of a folder, for sha256sum --check.
func sums(out string) error {
	files, err := os.ReadDir(out)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(out, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), f.Name())
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), b.Bytes(), 0o644)
}

// command runs a command with further environment variables.
func command(environ []string, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Env = slices.Concat(os.Environ(), environ)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, text)
	}
	return nil
}
