package daemon

import (
	"crypto/rand"
	"crypto/sha256"
	"slices"
	"strconv"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/daemon/secrets"
	"github.com/georld/rld/disk"
	"github.com/georld/rld/disk/osdir"
	"github.com/georld/rld/gossip/link"
	"github.com/georld/rld/journal"
	"github.com/georld/rld/node"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
)

// What the secret of the cluster is used for. The values derived for different
// purposes reveal nothing about each other.
const (
	forKeys       = "key hash"
	forPeers      = "fingerprint"
	forMembership = "membership key"

	// The files of state name the cluster by a value for one of these.
	forControl = "control log of a cluster"
	forRights  = "rights of a cluster"
	forStrict  = "strict keys of a cluster"
)

// openSecret reads the files of the secret, if one is set and Options.Secret is
// not, and the names that the files of state have for the cluster.
func (d *daemon) openSecret() error {
	c := &d.Config
	s := secrets.Secrets{Current: d.Secret}
	if c.Cluster.SecretFile != "" && d.Secret == nil {
		read, warnings, err := secrets.Read(c.Cluster.SecretFile)
		if err != nil {
			return err
		}
		d.warn(warnings)
		s = read
	}
	d.secret.Store(&s)
	var err error
	d.names, err = secrets.OpenNames(d.stateFolder(), s, forControl, forRights, forStrict)
	return err
}

// keepNames keeps the names for a later start with the next secret alone.
func (d *daemon) keepNames() {
	s := *d.secret.Load()
	if s.Next == nil {
		return
	}
	if err := secrets.StoreNames(d.stateFolder(), s, d.names); err != nil {
		d.Log.Error("a start with the next cluster secret alone will find the state foreign, until it has been alone in force once",
			"event", "secret", "error", err)
	}
}

// stateFolder returns the folder of state, nil for a daemon without one.
func (d *daemon) stateFolder() disk.Folder {
	if c := &d.Config; c.Region != "" && c.State.Dir != "" && !c.State.Diskless {
		return osdir.Dir(c.State.Dir)
	}
	return nil
}

// derive returns the values for one purpose: of the secret, and of the next one
// while there are two.
func (d *daemon) derive(purpose string) [][sha256.Size]byte { return d.secret.Load().Derive(purpose) }

// hashSecrets returns the secrets of the hashes of keys: a random one for a
// daemon that shares no keys.
func hashSecrets(s secrets.Secrets) (all [][rules.SecretBytes]byte) {
	if s.Current == nil {
		all = make([][rules.SecretBytes]byte, 1)
		rand.Read(all[0][:]) // never fails
		return all
	}
	for _, sum := range s.Derive(forKeys) {
		all = append(all, [rules.SecretBytes]byte(sum[:]))
	}
	return all
}

// derivedKeys returns a key of membership for each secret, nil without one.
func (d *daemon) derivedKeys() (keys [][]byte) {
	if d.secret.Load().Current == nil {
		return nil
	}
	for _, key := range d.derive(forMembership) {
		keys = append(keys, key[:])
	}
	return keys
}

// fingerprints returns those that peers must prove: see link.Config.
func (d *daemon) fingerprints() (all link.Fingerprints) {
	for _, sum := range d.derive(forPeers) {
		all = append(all, link.Fingerprint(sum[:len(link.Fingerprint{})]))
	}
	return all
}

// storage returns the folder of state with the name of the cluster for a
// purpose.
func (d *daemon) storage(purpose string) replica.Storage {
	c := &d.Config
	return replica.Storage{
		Folder: osdir.Dir(c.State.Dir), Diskless: c.State.Diskless,
		Owner: journal.Owner{Cluster: d.names[purpose], Name: c.Region + "/" + c.Name},
		Fence: d.now().Add(2 * c.Clock.MaxOffset).UnixMilli(),
	}
}

// secretPoll is the time between two looks at the files of the secret.
const secretPoll = 2 * time.Second

// newRotation returns the follower of the files of the secret, nil without one.
func (d *daemon) newRotation() *secrets.Follower {
	if d.Config.Cluster.SecretFile == "" || d.Secret != nil {
		return nil
	}
	return secrets.Follow(secrets.Config{
		Path: d.Config.Cluster.SecretFile, Put: d.setSecrets, Until: d.countsUntil, Log: d.Log, Now: d.now,
		Shared: d.shareNext,
		Lacking: func() []string {
			next := d.fingerprints()[1:]
			if d.cluster == nil || len(next) == 0 {
				return nil
			}
			return d.cluster.host.Lacking(next[0])
		},
	}, *d.secret.Load())
}

// nextSecret describes a replacement of the secret, nil for none.
func (d *daemon) nextSecret() *api.NextSecret {
	if d.rotation == nil {
		return nil
	}
	s := d.rotation.State()
	if !s.Two {
		return nil
	}
	out := &api.NextSecret{Lacking: append([]string{}, s.Lacking...)}
	if !s.Until.IsZero() {
		out.From, out.Due = new(s.Until.UTC()), !d.now().Before(s.Until)
	}
	return out
}

// setSecrets puts other secrets in force. A peer that is shown the next one
// finds the hits of later calls under it.
func (d *daemon) setSecrets(s secrets.Secrets) error {
	if err := secrets.StoreNames(d.stateFolder(), s, d.names); err != nil {
		return err
	}
	d.active.hashBy(hashSecrets(s))
	d.secret.Store(&s)
	d.shareNext(false)
	return nil
}

// shareNext puts the keys of membership that are derived from the secret in
// force. That of the next one encrypts once all peers can decrypt it.
func (d *daemon) shareNext(all bool) {
	if d.cluster == nil || d.Config.Swim.KeysFile != "" {
		return
	}
	keys := d.derivedKeys()
	if all {
		slices.Reverse(keys)
	}
	if err := d.cluster.swim.SetKeys(keys); err != nil {
		d.Log.Error("the keys of the membership cannot be replaced, the former ones stay in force", "event", "secret", "error", err)
	}
}

// noteWindow notes the length of the window of a limit that a call brought.
func (d *daemon) noteWindow(length int64) {
	for was := d.longest.Load(); length > was; was = d.longest.Load() {
		if d.longest.CompareAndSwap(was, length) {
			return
		}
	}
}

// countsUntil returns when hits count no longer that came before a time, by any
// clock of the cluster. Calls may have brought limits of longer windows.
func (d *daemon) countsUntil(from time.Time) time.Time {
	at := from.Add(2 * d.Config.Clock.MaxOffset).UnixMilli()
	until := max(at, rules.CeilWindow(at+1, max(1, d.longest.Load())))
	for _, r := range d.engine.Rules().Rules() {
		if r.Limit != nil && !r.Limit.Unlimited {
			until = max(until, node.HashesUntil(r.Limit, at))
		}
	}
	return time.UnixMilli(until)
}

// keyRules are what overrides do to single keys. All maps may be nil, and must
// not be modified.
type keyRules struct {
	blocked map[crdt.Key]bool
	// resets are by secret: daemons agree on the keys that count in place of
	// others if these are of one secret.
	resets []map[crdt.Key]node.KeyReset
}

// keyRulesOf returns the overrides of keys. The hashers name the keys that
// count in place of those that were reset.
func keyRulesOf(all []control.KeyOverride, hashers []rules.Hasher) keyRules {
	out := keyRules{resets: make([]map[crdt.Key]node.KeyReset, len(hashers))}
	for _, k := range all {
		hash, err := strconv.ParseUint(k.Key, 16, 64)
		if err != nil {
			continue
		}
		key := crdt.Key(hash)
		if k.Blocked {
			if out.blocked == nil {
				out.blocked = map[crdt.Key]bool{}
			}
			out.blocked[key] = true
		}
		if k.Reset == (control.Version{}) {
			continue
		}
		for i, h := range hashers {
			if out.resets[i] == nil {
				out.resets[i] = map[crdt.Key]node.KeyReset{}
			}
			out.resets[i][key] = node.KeyReset{To: h.Derived(key, k.Reset.String()), From: k.ResetAt}
		}
	}
	return out
}

// printsOf returns fingerprints of how keys are hashed: the accounts of another
// hash are those of other keys.
func printsOf(hashers []rules.Hasher) []uint64 {
	out := make([]uint64, len(hashers))
	for i, h := range hashers {
		k, _ := h.Key(nil, "accounts", nil, nil, 0)
		out[i] = uint64(k)
	}
	return out
}
