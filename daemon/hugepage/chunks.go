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
	// blockSize is allocated at once: four huge pages.
	blockSize  = 4 * pageSize
	blockCount = blockSize / int(unsafe.Sizeof(keytable.Entry{}))
)

// Chunks allocates chunks for the tables of a daemon. It is safe for concurrent
// use. The zero value is ready.
//
// The system clears a huge page when it is first used, which may take longer
// than a shard should be locked. So the next block is made in the background
// while the last quarter of the present one is used.
type Chunks struct {
	mu     sync.Mutex
	rest   []keytable.Entry // of the present block
	next   []keytable.Entry // the next block, nil for none
	making bool             // a goroutine makes next
}

// Take returns keytable.ChunkSize entries without a value.
func (c *Chunks) Take() []keytable.Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.rest) == 0 {
		c.rest, c.next = c.next, nil
	}
	if len(c.rest) == 0 { // the first, or more are taken than the system clears
		c.rest = newBlock()
	}
	out := c.rest[:keytable.ChunkSize:keytable.ChunkSize]
	c.rest = c.rest[keytable.ChunkSize:]
	if len(c.rest) <= blockCount/4 && c.next == nil && !c.making {
		c.making = true
		go c.makeNext()
	}
	return out
}

func (c *Chunks) makeNext() {
	b := newBlock()
	populate(bytesOf(b))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next, c.making = b, false
}

func newBlock() []keytable.Entry {
	b := make([]keytable.Entry, blockCount)
	advise(bytesOf(b))
	return b
}

func bytesOf(b []keytable.Entry) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(b))), blockSize)
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
