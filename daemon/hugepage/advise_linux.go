package hugepage

import "syscall"

// advise asks the system for huge pages in a block. A system that has none
// uses small ones.
func advise(block []byte) {
	if pages := whole(block); len(pages) > 0 {
		_ = syscall.Madvise(pages, syscall.MADV_HUGEPAGE)
	}
}

// madvPopulateWrite is missing in package syscall.
const madvPopulateWrite = 23

// populate makes the system provide the memory of a block now, without a write
// to it. One that cannot (before Linux 5.14) does when the memory is used.
func populate(block []byte) { _ = syscall.Madvise(block, madvPopulateWrite) }
