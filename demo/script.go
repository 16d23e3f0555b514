package demo

import (
	"fmt"
	"strings"
)

// maxCommands bounds a script.
const maxCommands = 10_000

// ReadScript reads commands separated by semicolons or newlines; # begins a
// comment that ends with the line. name is the script's name in errors, which
// give the line and the correct form.
func ReadScript(name, text string, n Names) ([]Command, error) {
	var out []Command
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		for part := range strings.SplitSeq(line, ";") {
			c, err := Parse(part, n)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
			}
			if c.Verb == "" {
				continue
			}
			if out = append(out, c); len(out) > maxCommands {
				return nil, fmt.Errorf("%s:%d: more than %d commands", name, i+1, maxCommands)
			}
		}
	}
	return out, nil
}
