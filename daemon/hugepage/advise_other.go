//go:build !linux

package hugepage

// advise does nothing: only Linux takes advice.
func advise([]byte) {}

func populate([]byte) {}
