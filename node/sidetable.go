package node

import (
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/keytable"
)

// side is the part of an entry that few entries have: the stamps of a log, and
// the rights account of a key near its limit.
type side struct {
	log     quota.Log
	account *account // nil for none
}

// sideTable holds the sides of entries, by number. They lie in chunks that
// never move.
type sideTable struct {
	chunks []*[sidesPerChunk]side
	used   int32 // sides ever in use
	idle   []int32
}

const sidesPerChunk = 128

func (t *sideTable) at(i int32) *side { return &t.chunks[i/sidesPerChunk][i%sidesPerChunk] }

// log returns the log of a side, nil for -1.
func (t *sideTable) log(i int32) *quota.Log {
	if i < 0 {
		return nil
	}
	return &t.at(i).log
}

// account returns the rights account of a side, nil for none and for -1.
func (t *sideTable) account(i int32) *account {
	if i < 0 {
		return nil
	}
	return t.at(i).account
}

// of returns the side of an entry and makes it if there is none.
func (t *sideTable) of(e *keytable.Entry) *side {
	if e.Extra < 0 {
		e.Extra = t.take()
	}
	return t.at(e.Extra)
}

// take returns the number of an empty side.
func (t *sideTable) take() int32 {
	if n := len(t.idle); n > 0 {
		i := t.idle[n-1]
		t.idle = t.idle[:n-1]
		return i
	}
	if int(t.used)/sidesPerChunk == len(t.chunks) {
		t.chunks = append(t.chunks, new([sidesPerChunk]side))
	}
	t.used++
	return t.used - 1
}

// put returns a side; -1 is ignored.
func (t *sideTable) put(i int32) {
	if i < 0 {
		return
	}
	s := t.at(i)
	s.log.Release()
	s.account = nil
	t.idle = append(t.idle, i)
}
