// Package lint holds the rules of this repository that no compiler and no
// linter knows: which package may import which, what a pure package must not
// do, and a few habits of style. The policy is one text, policy.txt; a test
// checks the repository against it, and another plants a violation of every
// rule to show that it is caught.
package lint
