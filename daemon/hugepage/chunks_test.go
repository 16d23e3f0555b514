package hugepage

import (
	"sync"
	"testing"
	"unsafe"

	"github.com/georld/rld/quota/keytable"
)

// TestChunks: tables that grow together get chunks that are empty and no other
// table's.
func TestChunks(t *testing.T) {
	var c Chunks
	const tables, each = 8, blockCount / keytable.ChunkSize / 4
	taken := make([][][]keytable.Entry, tables)
	var all sync.WaitGroup
	for i := range taken {
		all.Go(func() {
			for range each {
				x := c.Take()
				for j := range x {
					if x[j] != (keytable.Entry{}) {
						t.Errorf("entry %d is %+v", j, x[j])
					}
					x[j].Rule = int32(i) + 1
				}
				taken[i] = append(taken[i], x)
			}
		})
	}
	all.Wait()
	seen := map[*keytable.Entry]bool{}
	for i, own := range taken {
		for _, x := range own {
			if len(x) != keytable.ChunkSize || seen[&x[0]] || x[0].Rule != int32(i)+1 || x[len(x)-1].Rule != int32(i)+1 {
				t.Fatalf("a chunk of table %d was given twice", i)
			}
			seen[&x[0]] = true
		}
	}
}

// TestWhole: advice is for pages that lie in the block with all of their bytes.
func TestWhole(t *testing.T) {
	block := make([]byte, 3*pageSize)
	for _, skip := range []int{0, 1, pageSize - 1, pageSize, 3*pageSize - 1} {
		b := block[skip:]
		pages := whole(b)
		if len(pages) == 0 {
			if len(b) >= 2*pageSize {
				t.Errorf("no page in %d bytes", len(b))
			}
			continue
		}
		first, last := uintptr(unsafe.Pointer(&pages[0])), uintptr(unsafe.Pointer(&pages[len(pages)-1]))
		if first%pageSize != 0 || (last+1)%pageSize != 0 || first < uintptr(unsafe.Pointer(&b[0])) ||
			last > uintptr(unsafe.Pointer(&b[len(b)-1])) || len(b)-len(pages) >= 2*pageSize {
			t.Errorf("%d bytes at %x of %d at %p", len(pages), first, len(b), &b[0])
		}
	}
}
