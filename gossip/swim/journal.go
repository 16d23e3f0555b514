package swim

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
)

// journal takes the lines of memberlist's logger into ours. Most of them are
// of interest to its authors only; what a member needs to know, this package
// says itself.
type journal struct {
	log     *slog.Logger
	refused *refusals
	said    limiter
	closed  atomic.Bool // what is said of a closing transport is noise
}

// logger returns what memberlist writes to.
func (j *journal) logger() *log.Logger { return log.New(j, "", 0) }

// Write takes one line, as a log.Logger without flags writes it.
func (j *journal) Write(line []byte) (int, error) {
	if j.closed.Load() {
		return len(line), nil
	}
	tag, text, _ := strings.Cut(strings.TrimSpace(string(line)), "]")
	text = strings.TrimPrefix(strings.TrimSpace(text), "memberlist: ")
	if who, ok := stranger(text); ok {
		j.refused.stranger(who)
		return len(line), nil
	}
	level := slog.LevelDebug
	if !ownWords(text) {
		switch tag {
		case "[ERR", "[ERROR":
			level = slog.LevelWarn
			if weather(text) {
				level = slog.LevelInfo
			}
		case "[WARN":
			level = slog.LevelInfo
		}
	}
	if level == slog.LevelDebug || j.said.allow(kindOf(text), time.Minute) {
		j.log.Log(context.Background(), level, "memberlist: "+text)
	}
	return len(line), nil
}

// wrongKeys are the ways in which memberlist says that both sides do not hold
// the same key.
var wrongKeys = []string{
	"no installed keys could decrypt the message",
	"encryption is configured but remote state is not encrypted",
	"remote state is encrypted and encryption is not configured",
}

// isWrongKey reports whether a failure to talk to a seed is one of keys.
func isWrongKey(err error) bool {
	for _, w := range wrongKeys {
		if strings.Contains(err.Error(), w) {
			return true
		}
	}
	return false
}

// stranger returns from where a packet or stream came that no key opens. One
// that is no ciphertext at all counts too: it comes from a daemon without
// keys, or from no daemon.
func stranger(text string) (addr string, ok bool) {
	packet := strings.HasPrefix(text, "Decrypt packet failed: ")
	stream := strings.HasPrefix(text, "failed to receive: ") && isWrongKey(errors.New(text)) ||
		strings.Contains(text, errNoMember.Error()+" from=")
	_, addr, _ = strings.Cut(text, "from=")
	return addr, packet || stream
}

// ownWords reports whether text repeats what this package refused, and has
// said better, or asked for.
func ownWords(text string) bool {
	return strings.HasPrefix(text, "ignoring alive message for ") ||
		strings.HasPrefix(text, "Conflicting address for ") ||
		strings.HasPrefix(text, "Refuting an alive message for ") ||
		strings.HasSuffix(text, errAsking.Error()) || strings.Contains(text, errAsking.Error()+" from=")
}

// weather reports whether text is what one side sees when the other dies or
// the network between them fails, which the membership list says too.
func weather(text string) bool {
	for _, p := range []string{
		"Failed to send ", "Failed fallback TCP ping", "Push/Pull with ", "failed to receive: ",
		"Failed to forward ack", "Failed to push local state", "Failed to read remote state", "failed to receive and remove",
	} {
		if strings.HasPrefix(text, p) {
			return true
		}
	}
	return false
}

// kindOf is what lines of one kind have in common: their first words, up to
// the first that is about one member or number.
func kindOf(text string) string {
	if i := strings.IndexAny(text, ":'\"0123456789("); i >= 0 {
		text = text[:i]
	}
	return text[:min(len(text), 60)]
}
