// Package lint holds the rules of this repository that no compiler and no
// linter knows: the layers of packages, the purity of the core, the words of
// the project and a few habits of style and size. policy.txt is the table of
// layers, words.txt the list of words. One test checks the repository; another
// adds a violation of each rule to a clean tree and expects its finding.
package lint
