package secrets_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/daemon/secrets"
)

// secretOf returns a secret that is hard to guess, by a letter.
func secretOf(letter string) string {
	return strings.Repeat(letter, 3) + "+xhFzvBG0u3yFzt7XoGl5nXcYk2dqKpVbR8wJmTs="
}

// rotation is a follower of files in a folder, with a clock and peers that a
// test sets.
type rotation struct {
	*secrets.Follower
	t       *testing.T
	file    string
	now     time.Time
	lacking []string
	shared  bool
	refuse  error // of Put
	have    secrets.Secrets
	log     bytes.Buffer
}

// counting is for how long hits count.
const counting = time.Minute

// follow starts to follow a file with secret a, and the one of the next secret
// if there is any.
func follow(t *testing.T, next string) *rotation {
	r := &rotation{t: t, file: filepath.Join(t.TempDir(), "secret"), now: time.Unix(1_800_000_000, 0)}
	r.write("", "a")
	if next != "" {
		r.write(secrets.NextSuffix, next)
	}
	have, _, err := secrets.Read(r.file)
	if err != nil {
		t.Fatal(err)
	}
	r.have = have
	r.Follower = secrets.Follow(secrets.Config{
		Path: r.file, Log: slog.New(slog.NewTextHandler(&r.log, nil)),
		Put: func(s secrets.Secrets) error {
			if r.refuse == nil {
				r.have = s
			}
			return r.refuse
		},
		Lacking: func() []string { return r.lacking },
		Shared:  func(all bool) { r.shared = all },
		Until:   func(from time.Time) time.Time { return from.Add(counting) },
		Now:     func() time.Time { return r.now },
	}, have)
	return r
}

// write writes one of the files, and removes it for no letter.
func (r *rotation) write(suffix, letter string) {
	r.t.Helper()
	err := os.Remove(r.file + suffix)
	if letter != "" {
		err = os.WriteFile(r.file+suffix, []byte(secretOf(letter)+"\n"), 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// look lets time pass and looks, and fails unless the secrets with these
// letters are in force, and the log has a text that is not empty.
func (r *rotation) look(pass time.Duration, want, text string) {
	r.t.Helper()
	r.now = r.now.Add(pass)
	r.log.Reset()
	r.Look()
	got := ""
	for _, secret := range r.have.All() {
		got += string(secret[:1])
	}
	if got != want || !strings.Contains(r.log.String(), text) || (text == "") != (r.log.Len() == 0) {
		r.t.Errorf("%q in force, want %q with the text %q in the log:\n%s", got, want, text, r.log.String())
	}
}

// TestNextSecret replaces a secret: the next one is alone once no peer lacks it
// and former hits count no longer, whatever the files say before.
func TestNextSecret(t *testing.T) {
	r := follow(t, "")
	r.look(0, "a", "")
	if s := r.State(); s.Two {
		t.Errorf("%+v with one secret", s)
	}
	r.lacking = []string{"eu/eu-0", "eu/eu-1", "us/us-1", "us/us-2"}
	r.write(".next", "b")
	r.look(time.Second, "ab", "two cluster secrets are in force")
	r.look(2*counting, "ab", "")
	if s := r.State(); !s.Two || !s.Until.IsZero() || len(s.Lacking) != 4 {
		t.Errorf("%+v while peers lack it", s)
	}
	if err := os.Rename(r.file+".next", r.file); err != nil {
		t.Fatal(err)
	}
	r.look(time.Second, "ab", `peers="eu/eu-0, eu/eu-1, us/us-1 and 1 more"`)
	r.look(time.Second, "ab", "") // it is said once
	r.lacking = nil
	r.look(time.Second, "ab", "until the hits under it count no longer")
	if s := r.State(); !s.Until.Equal(r.now.Add(counting)) || len(s.Lacking) > 0 || !r.shared {
		t.Errorf("%+v at %v, shared by all: %v", s, r.now, r.shared)
	}
	r.lacking = []string{"eu/eu-2"} // it has just come, with hits under the former one alone
	r.look(counting-2*time.Second, "ab", "connected peers lack the next one")
	if r.shared {
		t.Error("the next one is shared, and a peer lacks it")
	}
	r.lacking = nil
	r.look(time.Second, "ab", "until")
	r.look(counting-time.Second, "ab", "")
	r.refuse = errors.New("a full disk")
	r.look(time.Second, "ab", "a full disk")
	r.refuse = nil
	r.look(time.Second, "b", "one cluster secret is in force")
	if s := r.State(); !reflect.DeepEqual(s, secrets.State{}) {
		t.Errorf("%+v in the end", s)
	}
}

// TestStartWithTwoSecrets: a daemon that starts with two does not know since
// when it has both.
func TestStartWithTwoSecrets(t *testing.T) {
	r := follow(t, "b")
	if s := r.State(); !s.Two || !s.Until.IsZero() {
		t.Errorf("%+v before the first look", s)
	}
	r.look(0, "ab", "")
	r.write("", "b")
	r.look(counting-time.Second, "ab", "until")
	r.look(time.Second, "b", "one cluster secret")
}

// TestOtherSecrets: no other change of the files has an effect.
func TestOtherSecrets(t *testing.T) {
	r := follow(t, "")
	r.write("", "c")
	r.look(time.Hour, "a", "would forget all hits")
	r.write(".next", "b")
	r.look(time.Hour, "a", "")
	r.write("", "a")
	r.look(time.Second, "ab", "two cluster secrets")
	r.write("", "c")
	r.look(time.Hour, "ab", "would forget all hits")
	r.write("", "b")
	r.write(".next", "c")
	r.look(time.Hour, "ab", "a third cluster secret is ignored")
	r.write("", "")
	r.look(time.Second, "ab", "the former one stays in force")
	r.write("", "a")
	r.write(".next", "")
	r.look(time.Second, "ab", "given up soon") // it may be on its way to the other file
	r.write(".next", "b")
	r.look(time.Hour, "ab", "")
	r.write(".next", "")
	r.look(time.Second, "ab", "given up soon")
	r.look(29*time.Second, "ab", "")
	r.look(time.Second, "a", "one cluster secret")
}
