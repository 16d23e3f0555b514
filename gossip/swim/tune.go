package swim

import (
	"time"

	"github.com/hashicorp/memberlist"
)

// Failure detection. A dead daemon of a region of n is removed after at most
//
//	2(n-1) - 1 probes of one other daemon until it is its turn: 3 at n = 3,
//	and fewer with more daemons that probe it, about 1 from n = 10 on
//	+ 1 probe that fails, at twice the interval if the prober is unwell
//	+ suspicionMult x max(1, log10 n) intervals
//
// This is 4.5 s at n = 3 and below 5 s up to n = 30. Between suspicion and
// removal a slow daemon can contradict.
const (
	probeInterval = 500 * time.Millisecond
	probeTimeout  = 200 * time.Millisecond
	suspicionMult = 4
	// maxUnwell is the factor by which a daemon that doubts its own health
	// probes slower. It bounds how long a probe outlives its daemon.
	maxUnwell = 2
)

const (
	// reclaimAfter is the time after the death of a daemon until its name may
	// be used at another address. It may be short because a daemon asks before
	// it claims a name.
	reclaimAfter = 10 * time.Millisecond
	// forgetAfter is how long dead daemons are remembered and informed, so that
	// they can contradict.
	forgetAfter = 30 * time.Second
	// streamTimeout bounds opening a stream and each exchange of lists.
	streamTimeout = 3 * time.Second
)

// tuned returns memberlist's settings for one region.
func tuned(c Config, r *roster, t Transport, ring *memberlist.Keyring, j *logAdapter) *memberlist.Config {
	m := memberlist.DefaultLANConfig()
	m.Name = c.Self.Name
	m.Transport = t
	m.Keyring = ring
	m.Logger = j.logger()
	m.Delegate, m.Events, m.Alive, m.Merge, m.Conflict, m.Ping = r, r, r, r, r, r

	m.GossipInterval = c.Interval
	m.EnableCompression = false
	m.ProbeInterval, m.ProbeTimeout = probeInterval, probeTimeout
	m.SuspicionMult, m.SuspicionMaxTimeoutMult = suspicionMult, 1
	m.AwarenessMaxMultiplier = maxUnwell
	m.PushPullInterval = c.Rejoin
	m.GossipToTheDeadTime = forgetAfter
	m.DeadNodeReclaimTime = reclaimAfter
	m.TCPTimeout = streamTimeout
	return m
}
