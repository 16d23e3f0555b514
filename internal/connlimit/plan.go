package connlimit

import "fmt"

// most is the greatest number of open files that Plan divides. A process with a
// higher limit has room for everything.
const most = 1 << 30

// maxUnfinished bounds the unfinished connections of a listener.
const maxUnfinished = 256

// Need is how many open files a listener, or another user of them, gets: at
// least Least, and at best Most.
type Need struct{ Least, Most int }

// Plan divides the open files of a process: Reserve are for everything without
// a Need. It returns the number for each need; their sum with the reserve never
// exceeds the limit. The files beyond the least numbers are divided in
// proportion to the missing ones.
func Plan(limit uint64, reserve int, needs ...Need) ([]int, error) {
	least, missing := reserve, 0
	for _, n := range needs {
		least += n.Least
		missing += max(0, n.Most-n.Least)
	}
	total := int(min(limit, most))
	if total < least {
		return nil, fmt.Errorf("the limit of open files is %d, want at least %d: raise it with ulimit -n or LimitNOFILE=",
			total, least)
	}
	rest := min(total-least, missing)
	out := make([]int, len(needs))
	for i, n := range needs {
		out[i] = n.Least
		if missing > 0 {
			out[i] += int(int64(rest) * int64(max(0, n.Most-n.Least)) / int64(missing))
		}
	}
	return out, nil
}

// NeedOf returns the need of a listener with a bound of established
// connections.
func NeedOf(least, established int) Need {
	return Need{Least: least, Most: max(least, established+maxUnfinished)}
}

// BoundsOf divides the open files of a listener: a quarter, but at most 256,
// for unfinished connections, and the rest for established ones, up to a bound.
func BoundsOf(files, established int) Bounds {
	u := max(1, min(maxUnfinished, files/4))
	return Bounds{Unfinished: u, Established: max(1, min(established, files-u))}
}
