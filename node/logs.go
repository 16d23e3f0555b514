package node

import "github.com/georld/rld/quota"

// logs holds the logs of sliding_log keys, which are too large to lie in
// every entry.
type logs struct {
	all  []quota.Log
	idle []int32
}

// get returns log i, nil for -1. The pointer is good until the next take.
func (l *logs) get(i int32) *quota.Log {
	if i < 0 {
		return nil
	}
	return &l.all[i]
}

// take returns the index of an empty log.
func (l *logs) take() int32 {
	if n := len(l.idle); n > 0 {
		i := l.idle[n-1]
		l.idle = l.idle[:n-1]
		return i
	}
	l.all = append(l.all, quota.Log{})
	return int32(len(l.all) - 1)
}

// put takes a log back.
func (l *logs) put(i int32) {
	if i < 0 {
		return
	}
	l.all[i].Release()
	l.idle = append(l.idle, i)
}
