package sim

// pool holds what events refer to by number, and uses the numbers again. The
// zero value is empty.
type pool[T any] struct {
	items []T
	free  []int32
}

// put keeps an item and returns its number.
func (p *pool[T]) put(item T) int32 {
	if n := len(p.free); n > 0 {
		i := p.free[n-1]
		p.free = p.free[:n-1]
		p.items[i] = item
		return i
	}
	p.items = append(p.items, item)
	return int32(len(p.items) - 1)
}

// take returns an item and forgets it.
func (p *pool[T]) take(i int32) T {
	var zero T
	item := p.items[i]
	p.items[i] = zero
	p.free = append(p.free, i)
	return item
}

// len returns how many items are kept.
func (p *pool[T]) len() int { return len(p.items) - len(p.free) }
