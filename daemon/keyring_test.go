package daemon

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/config"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/swim"
	"github.com/georld/rld/internal/await"
	"github.com/georld/rld/server/admin/api"
)

// keyringRegion is three real daemons with a file of membership keys each.
type keyringRegion struct {
	*testing.T
	all   []*running
	files []string
}

func startKeyringRegion(t *testing.T, keys ...[]byte) *keyringRegion {
	k := &keyringRegion{T: t}
	k.all = startRegionWith(t, oneRule, func(c *config.Config) {
		c.Swim.KeysFile = filepath.Join(t.TempDir(), "keys")
		k.files = append(k.files, c.Swim.KeysFile)
		k.put(len(k.files)-1, keys...)
	}, "us-0", "us-1", "us-2")
	return k
}

// put replaces the file of a daemon.
func (k *keyringRegion) put(i int, keys ...[]byte) {
	k.Helper()
	var text strings.Builder
	for _, key := range keys {
		text.WriteString(base64.StdEncoding.EncodeToString(key) + "\n")
	}
	k.putText(i, text.String())
}

func (k *keyringRegion) putText(i int, text string) {
	k.Helper()
	next := k.files[i] + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		k.Fatal(err)
	}
	if err := os.Rename(next, k.files[i]); err != nil {
		k.Fatal(err)
	}
}

// state returns what a daemon shows of its keys.
func (k *keyringRegion) state(i int) api.KeyringState {
	k.Helper()
	var s api.StatusAnswer
	if k.all[i].page(k.T, "/v1/status", http.StatusOK, &s); s.Daemon.Keyring == nil {
		k.Fatal("the status has no membership keys")
	}
	return *s.Daemon.Keyring
}

// whole fails the test unless each daemon has all as members.
func (k *keyringRegion) whole() {
	k.Helper()
	for _, r := range k.all {
		if m := r.cluster.swim.Members(); len(m) != len(k.all) {
			k.Fatalf("%s has the members %v", r.Config.Name, m)
		}
	}
}

// intruder starts a member with a key, and ends it with the test.
func (k *keyringRegion) intruder(key []byte) *swim.Swim {
	k.Helper()
	s, err := swim.Start(swim.Config{
		Self: gossip.Member{
			Peer: gossip.Peer{ID: gossip.DaemonIncarnation("us", "us-9", 1), Name: "us-9", Region: "us"}, Addr: "127.0.0.1:1", Build: "test",
		},
		Bind: "127.0.0.1:0", Keys: [][]byte{key}, Seeds: []string{k.all[0].cluster.swim.Addr()}, Rejoin: 100 * time.Millisecond,
	})
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() {
		if err := s.Close(); err != nil {
			k.Error(err)
		}
	})
	return s
}

// TestKeyringRotates replaces the key of three real daemons that run, by files
// alone: one daemon after the other gets the new key, encrypts with it, and
// loses the former one. No daemon ever misses another one, and at the end the
// former key is refused.
func TestKeyringRotates(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; the complete run has it")
	}
	former, next := []byte("0123456789abcdef"), []byte("fedcba9876543210fedcba9876543210")
	k := startKeyringRegion(t, former)
	for _, keys := range [][][]byte{{former, next}, {next, former}, {next}} {
		var want []string
		for _, key := range keys {
			want = append(want, swim.Fingerprint(key))
		}
		for i, r := range k.all {
			k.put(i, keys...)
			await.True(t, r.Config.Name+" has the keys", func() bool {
				k.whole()
				return slices.Equal(k.state(i).Keys, want)
			})
			for range 10 { // the others have the former keys for ten rounds of gossip
				time.Sleep(r.Config.Gossip.Interval)
				k.whole()
			}
		}
	}
	for _, r := range k.all {
		if n := r.cluster.swim.Stats().Refused["wrong_key"]; n != 0 {
			t.Errorf("%s could not read %d messages of the others", r.Config.Name, n)
		}
		if strings.Contains(r.log.String(), "member gone") {
			t.Errorf("%s missed another daemon:\n%s", r.Config.Name, r.log)
		}
	}

	old := k.intruder(former)
	await.True(t, "the former key is refused", func() bool { return k.all[0].cluster.swim.Stats().Refused["wrong_key"] >= 3 })
	k.whole()
	if old.Joined() {
		t.Error("a daemon with the former key joined")
	}
	if err := old.Close(); err != nil {
		t.Error(err)
	}
	k.intruder(next)
	await.True(t, "the next key is accepted", func() bool { return len(k.all[2].cluster.swim.Members()) == 4 })
}

// TestKeyringFault gives a daemon an invalid file: it keeps its keys, shows the
// fault and logs it once.
func TestKeyringFault(t *testing.T) {
	former := []byte("0123456789abcdef")
	k := startKeyringRegion(t, former)
	r := k.all[1]
	metrics := func() string { return get(t, r.edges.adminAddr(), "/metrics") }
	if !strings.Contains(metrics(), `rld_credentials_stale{file="membership_keys"} 0`) {
		t.Error("no metric of the file")
	}
	good, err := os.ReadFile(k.files[1])
	if err != nil {
		t.Fatal(err)
	}
	k.putText(1, string(good)+"secret-secret!\n")
	await.True(t, "the fault is shown", func() bool { return strings.Contains(k.state(1).Fault, "keys:2: is no base64") })
	time.Sleep(5 * r.Config.Limits.Poll)
	k.whole()
	if !strings.Contains(metrics(), `rld_credentials_stale{file="membership_keys"} 1`) {
		t.Error("the metric does not show the invalid file")
	}
	if got := k.state(1).Keys; !slices.Equal(got, []string{swim.Fingerprint(former)}) {
		t.Errorf("the keys are %v", got)
	}
	log := r.log.String()
	if strings.Count(log, "the former keys stay in force") != 1 || strings.Contains(log, "secret-secret") {
		t.Errorf("want one line about the fault, without the key:\n%s", log)
	}
	k.put(1, former, []byte("fedcba9876543210"))
	await.True(t, "the fault is over", func() bool { return k.state(1).Fault == "" && len(k.state(1).Keys) == 2 })
}
