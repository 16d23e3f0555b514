package node

import "github.com/georld/rld/quota"

// extra is what few entries have, and would not fit into all: the stamps of a
// sliding_log key, and what is known of the rights to a key near its limit.
type extra struct {
	log     quota.Log
	account *account // nil for none
}

// extras holds the extras of entries.
type extras struct {
	all  []extra
	idle []int32
}

// log returns the log of extra i, nil for -1. The pointer is good until the next
// take.
func (x *extras) log(i int32) *quota.Log {
	if i < 0 {
		return nil
	}
	return &x.all[i].log
}

// account returns the rights account of extra i, nil for none.
func (x *extras) account(i int32) *account {
	if i < 0 {
		return nil
	}
	return x.all[i].account
}

// take returns the index of an empty extra.
func (x *extras) take() int32 {
	if n := len(x.idle); n > 0 {
		i := x.idle[n-1]
		x.idle = x.idle[:n-1]
		return i
	}
	x.all = append(x.all, extra{})
	return int32(len(x.all) - 1)
}

// put takes an extra back.
func (x *extras) put(i int32) {
	if i < 0 {
		return
	}
	x.all[i].log.Release()
	x.all[i].account = nil
	x.idle = append(x.idle, i)
}
