// Package rldv1 is the native gRPC API of rld, and what its daemons tell each
// other. All but this file is generated, from rld.proto, peer.proto, rights.proto
// and strict.proto: edit those and run make generate.
package rldv1

//go:generate go run -C ../../../internal/tools ./protogen
