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

// sideTable holds the sides of entries, by number.
type sideTable struct {
	all  []side
	idle []int32
}

// log returns the log of a side, nil for -1. It is valid until the next take.
func (t *sideTable) log(i int32) *quota.Log {
	if i < 0 {
		return nil
	}
	return &t.all[i].log
}

// account returns the rights account of a side, nil for none and for -1.
func (t *sideTable) account(i int32) *account {
	if i < 0 {
		return nil
	}
	return t.all[i].account
}

// of returns the side of an entry and makes it if there is none. It is valid
// until the next take.
func (t *sideTable) of(e *keytable.Entry) *side {
	if e.Extra < 0 {
		e.Extra = t.take()
	}
	return &t.all[e.Extra]
}

// take returns the number of an empty side.
func (t *sideTable) take() int32 {
	if n := len(t.idle); n > 0 {
		i := t.idle[n-1]
		t.idle = t.idle[:n-1]
		return i
	}
	t.all = append(t.all, side{})
	return int32(len(t.all) - 1)
}

// put returns a side; -1 is ignored.
func (t *sideTable) put(i int32) {
	if i < 0 {
		return
	}
	t.all[i].log.Release()
	t.all[i].account = nil
	t.idle = append(t.idle, i)
}
