// Package docs holds the documentation to the code. It has no code of its own:
// its tests read README.md and docs/ and compare them with the settings, the
// limits language, the metrics and the interfaces of the program.
//
// Parts of the pages are generated: the lines between
// "<!-- generated: NAME -->" and "<!-- end -->", and the first paragraph below
// the heading of a setting or of a field. After a change of the code generate
// them again with
//
//	go test ./internal/docs -rewrite
//
// and read the diff. The shell blocks of the pages, marked sh, are run
// line by line; testdata/shell.txt lists the exceptions with their reasons.
package docs
