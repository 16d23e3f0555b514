// Package rldv1 is the native gRPC API of rld. All but this file is generated
// from rld.proto: edit that and run make generate.
package rldv1

//go:generate go run -C ../../../internal/tools ./protogen
