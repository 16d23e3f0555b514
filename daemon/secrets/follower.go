package secrets

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Config configures a Follower. Its functions may wait for a disk, and for
// nothing else.
type Config struct {
	// Path is the file of the secret.
	Path string
	// Put puts other secrets in force. After an error the former ones are.
	Put func(Secrets) error
	// Shared is called when no connected peer lacks the next secret any more,
	// and when one does again.
	Shared func(bool)
	// Lacking returns the connected peers without the next secret.
	Lacking func() []string
	// Until returns the time from which hits count no longer that came before
	// another time.
	Until func(from time.Time) time.Time
	Log   *slog.Logger
	Now   func() time.Time
}

// Follower puts the secrets of files in force as they change: the next one
// beside the current one, and then in its place. It refuses any other change,
// which would forget hits. It is safe for concurrent use.
//
// The next one takes the place of the current one once all hits that count are
// under both: those that came before all connected peers had both count no
// longer.
type Follower struct {
	cfg Config

	mu      sync.Mutex
	have    Secrets
	lacking []string  // the connected peers that lack Next
	since   time.Time // no connected peer lacks it, zero while one does
	gone    time.Time // the file of Next, zero while it is there
	said    string    // the latest line about the files, which is not repeated
}

// Follow returns a follower of files that were read.
func Follow(cfg Config, have Secrets) *Follower {
	return &Follower{cfg: cfg, have: have}
}

// giveUpAfter is for how long the file of the next secret must be gone until
// that is given up: it may be on its way to the other file.
const giveUpAfter = 30 * time.Second

// State describes a replacement of the secret.
type State struct {
	// Two is set while two secrets are in force. The other fields are zero
	// otherwise.
	Two bool
	// Lacking are the connected peers that lack the next secret.
	Lacking []string
	// Until is when the next secret can be alone, zero for not known yet.
	Until time.Time
}

// State returns the state at the latest look.
func (f *Follower) State() State {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := State{Two: f.have.Next != nil}
	if s.Two {
		s.Lacking = f.lacking
		if !f.since.IsZero() {
			s.Until = f.cfg.Until(f.since)
		}
	}
	return s
}

// Look reads the files now, and puts them in force if they changed.
func (f *Follower) Look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, have := f.cfg.Now(), f.have
	if have.Next != nil {
		f.track(now)
	}
	read, warnings, err := Read(f.cfg.Path)
	given := err == nil && bytes.Equal(read.Current, have.Current)
	if !given || read.Next != nil || have.Next == nil {
		f.gone = time.Time{}
	} else if f.gone.IsZero() {
		f.gone = now
	}
	switch {
	case err != nil:
		f.say(slog.LevelError, "the cluster secret cannot be read, the former one stays in force", "error", err)
	case read.equal(have):
		f.said = ""
	case !f.gone.IsZero() && now.Sub(f.gone) < giveUpAfter:
		f.say(slog.LevelWarn, "the file of the next cluster secret is gone, and is given up soon", "next", f.cfg.Path+NextSuffix)
	case given:
		for _, w := range warnings {
			f.cfg.Log.Warn(w)
		}
		f.put(read, now)
	case have.Next == nil || !bytes.Equal(read.Current, have.Next):
		f.say(slog.LevelError, "another cluster secret is ignored, as it would forget all hits: restore the former one, and give all daemons "+
			"the other one as the next one first", "next", f.cfg.Path+NextSuffix)
	case read.Next != nil:
		f.say(slog.LevelError, "a third cluster secret is ignored until the second one is alone in force", "next", f.cfg.Path+NextSuffix)
	case f.since.IsZero():
		f.say(slog.LevelWarn, "the former cluster secret stays in force, too: connected peers lack the next one", "peers", names(f.lacking))
	case now.Before(f.cfg.Until(f.since)):
		f.say(slog.LevelInfo, "the former cluster secret stays in force, too, until the hits under it count no longer",
			"until", f.cfg.Until(f.since))
	default:
		f.put(read, now)
	}
}

// track notes since when no connected peer lacks the next secret.
func (f *Follower) track(now time.Time) {
	f.lacking = f.cfg.Lacking()
	switch all := len(f.lacking) == 0; {
	case all == !f.since.IsZero():
		return
	case all:
		f.since = now
	default:
		f.since = time.Time{}
	}
	f.cfg.Shared(!f.since.IsZero())
}

// put puts secrets in force.
func (f *Follower) put(s Secrets, now time.Time) {
	if err := f.cfg.Put(s); err != nil {
		f.say(slog.LevelError, "other cluster secrets cannot be put in force, the former ones stay", "error", err)
		return
	}
	f.have, f.since, f.lacking, f.gone, f.said = s, time.Time{}, nil, time.Time{}, ""
	if s.Next == nil {
		f.cfg.Log.Warn("one cluster secret is in force", "event", "secret")
		return
	}
	f.track(now)
	f.cfg.Log.Warn("two cluster secrets are in force: rld status shows when the next one can replace the current one",
		"event", "secret", "next", f.cfg.Path+NextSuffix)
}

// say logs a line about the files, once.
func (f *Follower) say(level slog.Level, text string, args ...any) {
	if f.said != text {
		f.said = text
		f.cfg.Log.Log(context.Background(), level, text, append(args, "event", "secret")...)
	}
}

// names lists a few peers.
func names(all []string) string {
	const most = 3
	if len(all) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
	}
	return strings.Join(all, ", ")
}
