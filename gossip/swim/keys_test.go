package swim

import (
	"bytes"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestKeysRotate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		all := r.region(4)
		for _, keys := range [][][]byte{{keyA, keyB}, {keyB, keyA}, {keyB}} {
			for _, s := range all {
				if err := s.SetKeys(keys); err != nil {
					t.Fatal(err)
				}
				for range 50 { // the others still have the former keys
					time.Sleep(100 * time.Millisecond)
					if !agree(4, all...) {
						t.Fatal("lost a member")
					}
				}
			}
		}
		for _, s := range all {
			if n := s.Stats().Refused["wrong_key"]; n != 0 {
				t.Errorf("%d packets could not be read", n)
			}
		}
		late := r.config("d5", 5, hosts(4)...)
		late.Keys = [][]byte{keyB}
		all = append(all, r.start(late))
		r.within(5*time.Second, "join with the new key", func() bool { return agree(5, all...) })
		old := r.start(r.config("d6", 6, hosts(4)...))
		time.Sleep(time.Minute)
		if old.Joined() || !agree(5, all...) {
			t.Error("the old key still opens")
		}
	})
}

func TestKeysRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		s := r.start(r.config("d1", 1))
		for _, keys := range [][][]byte{nil, {}, {nil}, {keyA, keyA[:15]}, make([][]byte, maxKeys+1)} {
			if err := s.SetKeys(keys); err == nil {
				t.Errorf("took %q", keys)
			}
		}
		if got := s.ring.GetKeys(); len(got) != 1 || !bytes.Equal(got[0], keyA) {
			t.Errorf("keys %q", got)
		}
		if got := s.Keys(); !slices.Equal(got, []string{"9b977850"}) || Fingerprint(keyA) != got[0] {
			t.Errorf("fingerprints %q", got)
		}
		c := r.config("d2", 2)
		c.Keys = nil
		plain := r.start(c)
		if err := plain.SetKeys([][]byte{keyA}); err == nil || plain.Keys() != nil {
			t.Error("began to encrypt in the middle")
		}
	})
}

// The ring holds the requested keys in their order, whatever it held before.
// Slices that were returned before keep their contents.
func TestReplaceKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.Custom(func(t *rapid.T) []byte {
			return bytes.Repeat([]byte{byte(rapid.IntRange(0, 5).Draw(t, "key"))}, 16)
		})
		keys := rapid.SliceOfNDistinct(key, 1, 5, func(k []byte) byte { return k[0] })
		ring, err := newKeyring(keys.Draw(t, "first"))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			before := ring.GetKeys()
			copied := cloneKeys(before)
			want := keys.Draw(t, "next")
			if err := replaceKeys(ring, want); err != nil {
				t.Fatal(err)
			}
			if got := ring.GetKeys(); !bytes.Equal(bytes.Join(got, nil), bytes.Join(want, nil)) {
				t.Fatalf("%v, want %v", got, want)
			}
			if !bytes.Equal(bytes.Join(before, nil), bytes.Join(copied, nil)) {
				t.Fatal("a slice that was handed out was changed")
			}
		}
	})
}
