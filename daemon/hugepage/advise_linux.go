package hugepage

import "syscall"

// advise asks the system for huge pages in a block. A system that has none
// uses small ones.
func advise(block []byte) {
	if pages := whole(block); len(pages) > 0 {
		_ = syscall.Madvise(pages, syscall.MADV_HUGEPAGE)
	}
}
