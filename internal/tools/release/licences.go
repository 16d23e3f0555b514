package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are the licences under which rld may link a module, by their SPDX
// names. Another one is a decision, made here.
var allowed = map[string]bool{
	"Apache-2.0": true, "BSD-2-Clause": true, "BSD-3-Clause": true, "CC0-1.0": true,
	"ISC": true, "MIT": true, "MPL-2.0": true, "Unlicense": true,
}

// module is one that the binary links.
type module struct {
	path, version, dir string
}

// licences writes a list of the linked modules with the names of their
// licences, and the texts of these below it. A module without a licence, or
// with one that is not allowed, is an error.
func licences(file string) error {
	modules, err := linked()
	if err != nil {
		return err
	}
	var list, texts bytes.Buffer
	for _, m := range modules {
		found, text, err := licence(m.dir)
		if err != nil {
			return fmt.Errorf("%s %s: %w", m.path, m.version, err)
		}
		fmt.Fprintf(&list, "%-50s %-40s %s\n", m.path, m.version, strings.Join(found, ", "))
		fmt.Fprintf(&texts, "\n%s\n%s %s\n\n%s", strings.Repeat("=", 80), m.path, m.version, text)
	}
	list.Write(texts.Bytes())
	return os.WriteFile(file, list.Bytes(), 0o644)
}

// linked returns the modules of the packages that the binary of the first
// platform imports, sorted by path, without rld itself, and the Go release.
func linked() ([]module, error) {
	const line = "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}"
	cmd := exec.Command("go", "list", "-deps", "-f", line, "./cmd/rld")
	goos, goarch, _ := strings.Cut(platforms[0], "/")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	goroot, err := exec.Command("go", "env", "GOVERSION", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	std := strings.Fields(string(goroot))
	modules := []module{{path: "std", version: std[0], dir: std[1]}}
	seen := map[string]bool{}
	for l := range strings.Lines(string(out)) {
		if f := strings.Split(strings.TrimSpace(l), "\t"); len(f) == 3 && !seen[f[0]] {
			seen[f[0]] = true
			modules = append(modules, module{f[0], f[1], f[2]})
		}
	}
	slices.SortFunc(modules, func(a, b module) int { return strings.Compare(a.path, b.path) })
	return modules, nil
}

// licence returns the names of the licences of a module, and their texts with
// the notices that belong to them.
func licence(dir string) (names []string, text []byte, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range files {
		name := strings.ToUpper(f.Name())
		isLicence := strings.HasPrefix(name, "LICENSE") || strings.HasPrefix(name, "LICENCE") || strings.HasPrefix(name, "COPYING")
		if f.IsDir() || !isLicence && !strings.HasPrefix(name, "NOTICE") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, nil, err
		}
		text = append(append(text, data...), '\n')
		if !isLicence {
			continue
		}
		for _, match := range licensecheck.Scan(data).Match {
			if !allowed[match.ID] {
				return nil, nil, fmt.Errorf("%s is the licence %s, which internal/tools/release/licences.go does not allow", f.Name(), match.ID)
			}
			names = append(names, match.ID)
		}
	}
	if len(names) == 0 {
		return nil, nil, fmt.Errorf("no licence found in %s", dir)
	}
	slices.Sort(names)
	return slices.Compact(names), text, nil
}
