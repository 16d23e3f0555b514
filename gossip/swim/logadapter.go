package swim

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/georld/rld/internal/loglimit"
)

// logAdapter forwards the log lines of memberlist. Most of them only matter to
// its developers; this package logs the events that matter to operators itself.
type logAdapter struct {
	log     *slog.Logger
	refused *refusals
	logged  loglimit.Limiter
	closed  atomic.Bool // the lines of a closing transport are dropped
}

// logger returns the logger for memberlist.
func (j *logAdapter) logger() *log.Logger { return log.New(j, "", 0) }

// Write implements io.Writer for one line of a log.Logger without flags.
func (j *logAdapter) Write(line []byte) (int, error) {
	if j.closed.Load() {
		return len(line), nil
	}
	tag, text, _ := strings.Cut(strings.TrimSpace(string(line)), "]")
	text = strings.TrimPrefix(strings.TrimSpace(text), "memberlist: ")
	if who, ok := wrongKeySource(text); ok {
		j.refused.wrongKeyFrom(who)
		return len(line), nil
	}
	level := slog.LevelDebug
	if !ownRefusal(text) {
		switch tag {
		case "[ERR", "[ERROR":
			level = slog.LevelWarn
			if slices.ContainsFunc(peerFailures, func(p string) bool { return strings.HasPrefix(text, p) }) {
				level = slog.LevelInfo
			}
		case "[WARN":
			level = slog.LevelInfo
		}
	}
	if level == slog.LevelDebug || j.logged.Due(kindOf(text), time.Now(), time.Minute) {
		j.log.Log(context.Background(), level, "memberlist: "+text)
	}
	return len(line), nil
}

// wrongKeys are memberlist's messages about a key that both sides do not share.
var wrongKeys = []string{
	"no installed keys could decrypt the message",
	"encryption is configured but remote state is not encrypted",
	"remote state is encrypted and encryption is not configured",
}

// isWrongKey reports whether an exchange with a seed failed because of keys.
func isWrongKey(err error) bool {
	return slices.ContainsFunc(wrongKeys, func(w string) bool { return strings.Contains(err.Error(), w) })
}

// wrongKeySource returns the source of a packet or stream that no key decrypts.
// One that is no ciphertext counts too: it comes from a daemon without keys, or
// from no daemon.
func wrongKeySource(text string) (addr string, ok bool) {
	packet := strings.HasPrefix(text, "Decrypt packet failed: ")
	stream := strings.HasPrefix(text, "failed to receive: ") && isWrongKey(errors.New(text)) ||
		strings.Contains(text, errNotMember.Error()+" from=")
	_, addr, _ = strings.Cut(text, "from=")
	return addr, packet || stream
}

// ownRefusal reports whether text repeats a refusal of this package, which is
// logged already, or a stream that it closed.
func ownRefusal(text string) bool {
	return strings.HasPrefix(text, "ignoring alive message for ") ||
		strings.HasPrefix(text, "Conflicting address for ") ||
		strings.HasPrefix(text, "Refuting an alive message for ") ||
		strings.HasSuffix(text, errAsking.Error()) || strings.Contains(text, errAsking.Error()+" from=")
}

// peerFailures are the beginnings of messages about the death of a peer or a
// network failure, which the membership list shows too.
var peerFailures = []string{
	"Failed to send ", "Failed fallback TCP ping", "Push/Pull with ", "failed to receive: ",
	"Failed to forward ack", "Failed to push local state", "Failed to read remote state", "failed to receive and remove",
}

// kindOf returns the common part of similar lines: their first words, up to the
// first one that names a member or a number.
func kindOf(text string) string {
	if i := strings.IndexAny(text, ":'\"0123456789("); i >= 0 {
		text = text[:i]
	}
	return text[:min(len(text), 60)]
}
