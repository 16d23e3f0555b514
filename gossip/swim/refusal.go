package swim

import (
	"log/slog"
	"net"
	"sync"
	"time"
)

// Refusals counts what was kept out of the membership list, by reason. Each
// refusal counts, and one that is tried again counts again; the log names each
// reason and culprit at most once in ten minutes.
type Refusals struct {
	// WrongKey counts packets and streams that no key of this daemon opens,
	// and seeds that answered so.
	WrongKey uint64
	// WrongRegion counts words of daemons of another region.
	WrongRegion uint64
	// NameTaken counts words of a daemon under the name of another that
	// lives, this one included.
	NameTaken uint64
	// BadMetadata counts words of daemons that say of themselves what this
	// release does not understand or what is out of bounds.
	BadMetadata uint64
	// Full counts daemons refused because the list holds as many as it may.
	Full uint64
}

// reason is why something was refused.
type reason int

const (
	wrongKey reason = iota
	wrongRegion
	nameTaken
	badMetadata
	full
	reasons // their number
)

var reasonText = [reasons]string{
	wrongKey:    "membership refused: wrong key",
	wrongRegion: "membership refused: wrong region",
	nameTaken:   "membership refused: name taken",
	badMetadata: "membership refused: bad metadata",
	full:        "membership refused: the list is full",
}

// refusals counts and logs refusals. Its methods may be called by any
// goroutine and do not block.
type refusals struct {
	log    *slog.Logger
	said   limiter
	mu     sync.Mutex
	counts [reasons]uint64
}

// add counts one refusal and logs it if the culprit, one of a few words that
// tell it from others, was not logged for this reason lately.
func (r *refusals) add(why reason, culprit string, attrs ...any) {
	r.mu.Lock()
	r.counts[why]++
	r.mu.Unlock()
	if r.said.allow(reasonText[why]+culprit, 10*time.Minute) {
		r.log.Warn(reasonText[why], attrs...)
	}
}

// stranger refuses a packet or stream from addr that no key opens. Ports are
// made up for each stream, so the host is the culprit.
func (r *refusals) stranger(addr string) {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		addr = host
	}
	r.add(wrongKey, addr, "from", addr, "would be right", "the key that this daemon encrypts with")
}

func (r *refusals) snapshot() Refusals {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Refusals{
		WrongKey: r.counts[wrongKey], WrongRegion: r.counts[wrongRegion], NameTaken: r.counts[nameTaken],
		BadMetadata: r.counts[badMetadata], Full: r.counts[full],
	}
}

// maxSaid bounds what a limiter remembers. What does not fit is not logged, so
// that one who makes up names or addresses cannot flood the log.
const maxSaid = 128

// limiter says which log lines were written lately. Zero is ready to use.
type limiter struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// allow reports whether a line may be written, and if so bars it for the time
// given.
func (l *limiter) allow(line string, bar time.Duration) bool {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.until[line]) {
		return false
	}
	if len(l.until) >= maxSaid {
		for k, t := range l.until {
			if !now.Before(t) {
				delete(l.until, k)
			}
		}
		if len(l.until) >= maxSaid {
			return false
		}
	}
	if l.until == nil {
		l.until = map[string]time.Time{}
	}
	l.until[line] = now.Add(bar)
	return true
}
