package swim

import (
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/georld/rld/internal/loglimit"
)

// Refusals counts the refusals of members, by reason. Repeated ones count
// again. The log has one line for each reason and source in ten minutes.
type Refusals struct {
	// WrongKey counts packets and streams that no key of this daemon decrypts,
	// and seeds that answered so.
	WrongKey uint64
	// WrongRegion counts messages of daemons of another region.
	WrongRegion uint64
	// NameTaken counts messages of a daemon under the name of another live one,
	// this daemon included.
	NameTaken uint64
	// BadMetadata counts messages with metadata that is out of bounds or that
	// this release cannot decode.
	BadMetadata uint64
	// Full counts daemons refused because the list is full.
	Full uint64
}

// reason is the reason of a refusal.
type reason struct {
	text  string // of the log line
	count func(*Refusals) *uint64
}

var (
	wrongKey    = reason{"membership refused: wrong key", func(r *Refusals) *uint64 { return &r.WrongKey }}
	wrongRegion = reason{"membership refused: wrong region", func(r *Refusals) *uint64 { return &r.WrongRegion }}
	nameTaken   = reason{"membership refused: name taken", func(r *Refusals) *uint64 { return &r.NameTaken }}
	badMetadata = reason{"membership refused: bad metadata", func(r *Refusals) *uint64 { return &r.BadMetadata }}
	full        = reason{"membership refused: the list is full", func(r *Refusals) *uint64 { return &r.Full }}
)

// refusals counts and logs refusals. It is safe for concurrent use and does not
// block.
type refusals struct {
	log    *slog.Logger
	logged loglimit.Limiter
	mu     sync.Mutex
	counts Refusals
}

// add counts one refusal and logs it if the source was not logged for this
// reason lately.
func (r *refusals) add(why reason, culprit string, attrs ...any) {
	r.mu.Lock()
	*why.count(&r.counts)++
	r.mu.Unlock()
	if r.logged.Due(why.text+culprit, time.Now(), 10*time.Minute) {
		r.log.Warn(why.text, attrs...)
	}
}

// wrongKeyFrom refuses a packet or stream from addr that no key decrypts. The
// host is the source, since ports differ for each stream.
func (r *refusals) wrongKeyFrom(addr string) {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		addr = host
	}
	r.add(wrongKey, addr, "from", addr, "would be right", "the key that this daemon encrypts with")
}

func (r *refusals) snapshot() Refusals {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}
