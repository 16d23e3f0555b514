package config

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/certs"
)

// Cluster holds the settings that all daemons of a cluster share.
type Cluster struct {
	// SecretFile holds the secret that hashes keys; "" generates one at start,
	// for a daemon alone. All daemons of a cluster need the same one. See
	// ReadSecret.
	SecretFile string
	// Founders are the names of the daemons that found the cluster, 1 to 5 with
	// a State.Dir, the same in all settings. Without them no cluster can begin.
	Founders []string
}

// Peer is the listener for the streams of other daemons.
type Peer struct {
	// Addr is host:port; port 0 takes a free one.
	Addr string
	// Advertise is the host:port that other daemons dial, "" for Addr as it
	// is bound.
	Advertise string
	// TLS applies to both ends of a stream.
	TLS TLS
	// Insecure allows streams and membership in plain text on other addresses
	// than loopback.
	Insecure bool
}

// TLS names the files of mutual TLS between daemons, in PEM: all three, or none
// for plain streams. They are read again at each handshake. See Check.
type TLS struct {
	// Cert is the daemon's certificate with its chain, Key its private key, CA
	// the authorities that sign the certificates of all daemons.
	Cert, Key, CA string
}

// On reports whether streams are encrypted.
func (t TLS) On() bool { return t != TLS{} }

// Swim is the membership of the daemons of one region. It is encrypted with the
// keys of KeysFile, or else with one derived from the cluster's secret.
type Swim struct {
	// Addr is host:port, for UDP and TCP; port 0 takes a free one.
	Addr string
	// Advertise is the host:port that other daemons use, "" for Addr as it
	// is bound.
	Advertise string
	// Seeds are addresses of daemons of the region, host:port, at most 256. A
	// DNS name means all its addresses. The daemon's own address is allowed.
	Seeds []string
	// Rejoin is the time between two attempts to reach lost seeds and members,
	// 100 ms to 10 min, varied by a fifth.
	Rejoin time.Duration
	// KeysFile holds the keys, "" for one derived from the cluster's secret.
	// See ReadKeys.
	KeysFile string
}

// Region is one region of the cluster and the addresses of its daemons.
type Region struct {
	// Name is 1 to 63 letters, digits, dots, underscores and dashes.
	Name string
	// Peers are stream addresses of some of its daemons, host:port, at most 64;
	// these report the others. Those of the own region are not dialed, so that
	// all daemons may have the same list.
	Peers []string
	// CIDRs are the networks where daemons of the region may be, at most 64;
	// none for any. Addresses that peers report elsewhere are not dialed.
	CIDRs []string
}

// Networks returns the networks where daemons of regions may be, by region.
// Those that are not valid are left out.
func (c *Config) Networks() map[string][]netip.Prefix {
	all := make(map[string][]netip.Prefix, len(c.Regions))
	for _, r := range c.Regions {
		for _, text := range r.CIDRs {
			if p, err := network(text); err == nil {
				all[r.Name] = append(all[r.Name], p)
			}
		}
	}
	return all
}

// Gossip configures the replication of counts. See gossip.Config.
type Gossip struct {
	// Interval is the time between two messages to a daemon of the region, 10
	// ms to 10 s.
	Interval time.Duration
	// WANInterval is the same for daemons of other regions, 10 ms to 1 min.
	WANInterval time.Duration
	// Quiet is how long counts far from their limits may wait before they are
	// sent, up to 1 min; 0 for no longer than the interval.
	Quiet time.Duration
	// ReadyWithin is how long a new daemon waits for the others of its region
	// before it is ready, 1 ms to 1 min.
	ReadyWithin time.Duration
}

func defaultPeer() Peer { return Peer{Addr: "127.0.0.1:7070"} }

func defaultSwim() Swim { return Swim{Addr: "127.0.0.1:7946", Rejoin: 15 * time.Second} }

func defaultGossip() Gossip {
	return Gossip{
		Interval:    gossip.DefaultInterval,
		WANInterval: gossip.DefaultWANInterval,
		ReadyWithin: gossip.DefaultReadyWithin,
	}
}

// DaemonName returns the name of the daemon: Name or else the host name. It
// returns an error if there is no host name or it is not valid.
func (c *Config) DaemonName() (string, error) {
	if c.Name != "" {
		return c.Name, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name: not given, and the host has none (%w): give --name", err)
	}
	if err := checkName(host); err != nil {
		return "", fmt.Errorf("name: not given, and the host name is not valid: %w: give --name", err)
	}
	return host, nil
}

// certName returns the name that the daemon's certificate must have, zero if it
// is not known.
func (c *Config) certName() certs.Name {
	name, err := c.DaemonName()
	if err != nil || c.Region == "" {
		return certs.Name{}
	}
	return certs.Name{Region: c.Region, Daemon: name}
}

// maxName is the length of the longest name of a region or a daemon.
const maxName = 63

// checkName returns an error for an invalid name of a region or a daemon.
func checkName(s string) error {
	if s == "" {
		return errors.New("a name is empty")
	}
	good := len(s) <= maxName && alphanumeric(s[0])
	for i := range len(s) {
		good = good && (alphanumeric(s[i]) || s[i] == '.' || s[i] == '_' || s[i] == '-')
	}
	if good {
		return nil
	}
	if len(s) > 2*maxName {
		s = s[:maxName] + "..."
	}
	return fmt.Errorf("%q is no name: 1 to %d letters, digits, dots, underscores and dashes, "+
		"the first a letter or a digit", s, maxName)
}

func alphanumeric(b byte) bool {
	return '0' <= b && b <= '9' || 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z'
}
