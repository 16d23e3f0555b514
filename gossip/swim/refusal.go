package swim

import (
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/georld/rld/internal/loglimit"
)

// reason is the reason of a refusal.
type reason int

const (
	// wrongKey is that of packets and streams that no key of this daemon
	// decrypts, and of seeds that answered so.
	wrongKey reason = iota
	// wrongRegion is that of messages of daemons of another region.
	wrongRegion
	// nameTaken is that of messages of a daemon under the name of another live
	// one, this daemon included.
	nameTaken
	// badMetadata is that of messages with metadata that is out of bounds or
	// that this release cannot decode.
	badMetadata
	// full is that of daemons for which the list has no room.
	full
)

// reasonNames are the names of the reasons in Stats and in the log.
var reasonNames = [...]string{"wrong_key", "wrong_region", "name_taken", "bad_metadata", "full"}

// refusals counts and logs refusals: one line for each reason and source in ten
// minutes. It is safe for concurrent use and does not block.
type refusals struct {
	log    *slog.Logger
	logged loglimit.Limiter
	counts [len(reasonNames)]atomic.Uint64
}

// add counts one refusal and logs it if the source was not logged for this
// reason lately.
func (r *refusals) add(why reason, culprit string, attrs ...any) {
	r.counts[why].Add(1)
	text := "membership refused: " + strings.ReplaceAll(reasonNames[why], "_", " ")
	if r.logged.Due(text+culprit, time.Now(), 10*time.Minute) {
		r.log.Warn(text, attrs...)
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

// snapshot returns the counts of all reasons.
func (r *refusals) snapshot() map[string]uint64 {
	out := make(map[string]uint64, len(reasonNames))
	for why, name := range reasonNames {
		out[name] = r.counts[why].Load()
	}
	return out
}
