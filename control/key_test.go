package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
)

func drawSeed(t *rapid.T) Seed {
	return InsecureSeed(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)))
}

// TestSignatureLaws checks that a signature is valid for its key, purpose and
// message, and for nothing else.
func TestSignatureLaws(t *testing.T) {
	purposes := []Purpose{ForStream, ForNonce, ForAcknowledgement, ForVote, ForResignation}
	rapid.Check(t, func(t *rapid.T) {
		k, other := drawSeed(t).Key(0), drawSeed(t).Key(1)
		p := rapid.SampledFrom(purposes).Draw(t, "purpose")
		message := rapid.SliceOf(rapid.Byte()).Draw(t, "message")
		s := k.Sign(p, message)
		if err := Verify(k.ID(), p, message, s); err != nil {
			t.Fatal(err)
		}
		flipped := func(b []byte) []byte {
			b = slices.Clone(b)
			b[rapid.IntRange(0, len(b)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			return b
		}
		for name, err := range map[string]error{
			"another id":            Verify(other.ID(), p, message, s),
			"another purpose":       Verify(k.ID(), purposes[(slices.Index(purposes, p)+1)%len(purposes)], message, s),
			"a longer message":      Verify(k.ID(), p, append([]byte{0}, message...), s),
			"another signature":     Verify(k.ID(), p, message, Signature{s.Public, flipped(s.Value)}),
			"another key":           Verify(k.ID(), p, message, Signature{flipped(s.Public), s.Value}),
			"the key of another id": Verify(k.ID(), p, message, other.Sign(p, message)),
			"no signature":          Verify(k.ID(), p, message, Signature{}),
			"a short key":           Verify(k.ID(), p, message, Signature{s.Public[:8], s.Value}),
			"a short signature":     Verify(k.ID(), p, message, Signature{s.Public, s.Value[:8]}),
		} {
			if err == nil {
				t.Errorf("%s is valid", name)
			}
		}
	})
}

// A purpose followed by a message is not another purpose with a longer one.
func TestPurposesAreApart(t *testing.T) {
	for _, p := range []Purpose{ForStream, ForNonce, ForAcknowledgement, ForVote, ForResignation} {
		if p == "" || strings.ContainsRune(string(p), 0) {
			t.Errorf("purpose %q: want text without a zero byte", p)
		}
	}
}

// The keys and the run of a seed are its own, and each key is another one.
func TestSeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSeed(t)
		if a, b := s.Key(1), s.Key(2); a.ID() == b.ID() || a.ID() != s.Key(1).ID() || a.ID() != IDOf(a.Public()) {
			t.Error("two keys are one, or one key is two")
		}
		if other := drawSeed(t); *other.secret != *s.secret && (other.Key(1).ID() == s.Key(1).ID() || other.Run() == s.Run()) {
			t.Error("two seeds have one key, or one run")
		}
	})
}

// Seeds come from secure randomness or not at all.
func TestNewSeed(t *testing.T) {
	whole := bytes.Repeat([]byte{7}, 32)
	if s, err := NewSeed(bytes.NewReader(whole)); err != nil || s == (Seed{}) {
		t.Errorf("seed %v, error %v", s, err)
	}
	for name, r := range map[string]*bytes.Reader{
		"short": bytes.NewReader(whole[1:]), "empty": bytes.NewReader(nil), "zeros": bytes.NewReader(make([]byte, 32)),
	} {
		if s, err := NewSeed(r); err == nil || s != (Seed{}) {
			t.Errorf("%s: seed %v, error %v", name, s, err)
		}
	}
	fault := errors.New("no randomness")
	if _, err := NewSeed(iotest.ErrReader(fault)); !errors.Is(err, fault) {
		t.Errorf("error %v", err)
	}
	if _, err := New(Config{Name: "a", Region: "a"}, nil, Seed{}, rand.New(rand.NewPCG(1, 1))); err == nil {
		t.Error("a node without a seed")
	}
}

// Keys and seeds do not reach logs, and neither do the errors about them.
func TestSecretsAreNotPrinted(t *testing.T) {
	s := InsecureSeed(rand.New(rand.NewPCG(1, 1)))
	stored, err := storedKey{s.Key(1)}.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{fmt.Sprintf("%x", *s.secret), string(stored)}
	var again storedKey
	if err := again.UnmarshalText(stored); err != nil || again.ID() != s.Key(1).ID() {
		t.Errorf("key %v, error %v", again, err)
	}
	var decoded storedSelf
	err = json.Unmarshal([]byte(`{"key":"`+string(stored)+`0"}`), &decoded)
	texts := []string{
		fmt.Sprintf("%v %+v %s", s, s, s), fmt.Sprintf("%v %+v %s", s.Key(1), s.Key(1), s.Key(1)),
		fmt.Sprintf("%v %+v", Identity{s.Key(1), s.Run()}, keys{seed: s}), fmt.Sprint(err),
	}
	for _, text := range texts {
		for _, secret := range secrets {
			if strings.Contains(text, secret) || strings.Contains(text, fmt.Sprint(s.secret[:])) {
				t.Errorf("%q has a secret", text)
			}
		}
	}
}

// The id, with its key, survives a restart; the run does not.
func TestIdentitySurvives(t *testing.T) {
	w := newWorld(t, 1)
	m := w.add("a", "a-0", true)
	w.run(time.Second)
	before := m.node.Identity()
	w.crash(m)
	w.start(m)
	if after := m.node.Identity(); after.Key.ID() != before.Key.ID() || after.Run == before.Run || m.node.ID() != before.Key.ID() {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if err := Verify(before.Key.ID(), ForVote, []byte("x"), m.node.Identity().Key.Sign(ForVote, []byte("x"))); err != nil {
		t.Error(err)
	}
}

// A name means the id that its daemon has now, and no former one while that was
// heard a short time ago.
func TestDaemonIDOfAName(t *testing.T) {
	w := newWitness(t)
	heard := func(from crdt.Incarnation, id ID) {
		t.Helper()
		if err := w.node.Receive(w.at, 1, &Message{From: from, To: 1, Statement: Statement{Sender: Sender{ID: id, Run: Run{byte(from)}}}}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(name string, id ID, texts ...string) {
		t.Helper()
		got, err := RightsOf(w.node).DaemonID(name)
		if (err == nil) != (len(texts) == 0) || err == nil && got != id {
			t.Fatalf("%s: id %v, %v: want %v, %q", name, got, err, id, texts)
		}
		for _, text := range texts {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v: want %q", name, err, text)
			}
		}
	}
	former, now := ID{1, 15: 1}, ID{2, 15: 1}
	name := w.node.peer(2).Name
	heard(2, former)
	want(name, former)
	w.at += 2 * time.Hour
	w.node.Peers(w.at, 1, []Peer{{Address: 9, Name: name, Region: "b"}})
	want(name, ID{}, "does not know its id yet", former.String()+", last heard 2h0m0s ago")
	heard(9, now)
	w.at += 10 * time.Second
	w.node.clock(w.at)
	want(name, ID{}, "was heard in the last 1m0s: stop it first", "current id is "+now.String()+", last heard 10s ago", "formerly "+former.String()+", last heard 2h0m10s ago")
	want(former.String(), former)
	w.at += time.Minute
	w.node.clock(w.at)
	want(name, now)
	want("b-7", ID{}, "not known here")
}

// A half of an id means the id that the record or a message names. A half that
// no daemon here has more of ends the id, too.
func TestDaemonIDOfAHalf(t *testing.T) {
	w := newWitness(t)
	x := RightsOf(w.node)
	founder, voter, unknown, known := ID{1, 15: 1}, ID{2, 15: 1}, ID{3, 15: 1}, ID{4, 15: 1}
	w.node.record = &Record{Regions: []Region{{Name: "a", Founders: []ID{founder}}}, Voters: []Voter{{Daemon: voter}}}
	if err := w.node.Receive(w.at, 1, &Message{From: 2, To: 1, Statement: Statement{Sender: Sender{ID: known}}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []ID{founder, voter, known, unknown.half()} {
		if got, err := x.DaemonID(want.half().text()); err != nil || got != want {
			t.Errorf("%v, %v: want %v", got, err, want)
		}
	}
	if d, err := x.stampDead(DeadID{ID: founder.half()}); err != nil || d.ID != founder {
		t.Errorf("%+v, %v: want the id of the founder", d, err)
	}
	if _, err := x.stampDead(DeadID{ID: known.half(), Stopped: true}); err == nil || !strings.Contains(err.Error(), "was heard in the last") {
		t.Errorf("%v: want that the daemon was heard", err)
	}
	d, err := x.stampDead(DeadID{ID: unknown.half()})
	if err == nil {
		err = w.node.record.end(d)
	}
	if err != nil || !w.node.Dead(unknown) || w.node.Dead(founder) || !strings.Contains(d.describe(), "the id 0300000000000000 is dead") {
		t.Fatalf("%+v, %v: want that the id is dead, and no other one", d, err)
	}
	if again, err := x.stampDead(DeadID{ID: unknown}); err != nil || w.node.record.end(again) == nil {
		t.Errorf("%+v, %v: want that it is dead already", again, err)
	}
}
