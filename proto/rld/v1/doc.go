// Package rldv1 is the native gRPC API of rld, and the messages between its
// daemons. All files but this one are generated from the .proto files of this
// folder: edit those and run make generate.
package rldv1

//go:generate go run -C ../../../internal/tools ./protogen
