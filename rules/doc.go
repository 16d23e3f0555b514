// Package rules defines limits and the tree of descriptors that they belong to.
// A Set finds the rule of a request: the entry of the tree at which its
// descriptor ends. A Hasher turns a descriptor into the key of its counter. The
// package reads no files; package limits turns YAML into a Set. All values are
// immutable once they are part of a Set.
package rules
