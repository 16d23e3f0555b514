// Package examples carries the example limits that a daemon without limits of
// its own serves.
package examples

import (
	"embed"
	"io/fs"
)

//go:embed limits/*.yaml
var files embed.FS

// Limits returns the example files, in the folder limits. They compile
// without a diagnostic.
func Limits() fs.FS { return files }
