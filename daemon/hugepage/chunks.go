// Package hugepage allocates the entries of keys where the system can map them
// with huge pages. With pages of 4 KiB a million entries are on 16,384 of them,
// for which no processor keeps translations, so that a decision waits for a
// walk of the page table besides the entry.
package hugepage

import (
	"sync"
	"unsafe"

	"github.com/georld/rld/quota/keytable"
)

const (
	// pageSize is that of a huge page.
	pageSize = 2 << 20
	// blockChunks are allocated at once: four huge pages. Their memory is used
	// page by page, so the rest of a block takes none.
	blockChunks = 4 * pageSize / int(unsafe.Sizeof(keytable.Chunk{}))
)

// Chunks allocates chunks for the tables of a daemon. It is safe for concurrent
// use. The zero value is ready.
type Chunks struct {
	mu   sync.Mutex
	rest []keytable.Chunk
}

// Take returns an empty chunk.
func (c *Chunks) Take() *keytable.Chunk {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.rest) == 0 {
		c.rest = make([]keytable.Chunk, blockChunks)
		advise(unsafe.Slice((*byte)(unsafe.Pointer(&c.rest[0])), blockChunks*int(unsafe.Sizeof(keytable.Chunk{}))))
	}
	out := &c.rest[0]
	c.rest = c.rest[1:]
	return out
}

// whole returns the huge pages that lie in a block.
func whole(block []byte) []byte {
	skip := int(-uintptr(unsafe.Pointer(&block[0])) % pageSize)
	if skip >= len(block) {
		return nil
	}
	block = block[skip:]
	return block[:len(block)/pageSize*pageSize]
}
