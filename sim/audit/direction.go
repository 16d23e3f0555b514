package audit

// direction is a shard's stream of messages from one process to another, by
// their indexes.
type direction struct{ to, from, shard int }

// perDirection keeps a record of each direction. Processes and shards are few,
// and every message needs several records: places are faster than a map.
type perDirection[T any] struct{ all [][][]*T }

// find returns the record of a direction, nil for none.
func (p *perDirection[T]) find(k direction) *T {
	if k.to < len(p.all) && k.from < len(p.all[k.to]) && k.shard < len(p.all[k.to][k.from]) {
		return p.all[k.to][k.from][k.shard]
	}
	return nil
}

// of returns the record of a direction, a new one at first.
func (p *perDirection[T]) of(k direction) *T {
	if r := p.find(k); r != nil {
		return r
	}
	p.all = upTo(p.all, k.to)
	p.all[k.to] = upTo(p.all[k.to], k.from)
	p.all[k.to][k.from] = upTo(p.all[k.to][k.from], k.shard)
	r := new(T)
	p.all[k.to][k.from][k.shard] = r
	return r
}

// upTo returns a slice that has the place i.
func upTo[T any](s []T, i int) []T {
	if more := i + 1 - len(s); more > 0 {
		return append(s, make([]T, more)...)
	}
	return s
}
