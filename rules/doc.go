// Package rules holds limits and the descriptor tree they hang on, and finds
// the rule that a request ends at. It knows no YAML: package limits turns
// files into a Set.
package rules
