//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/georld/rld/internal/admitted"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/server/admin/api"
)

// daemon is one rld and the ways to ask it.
type daemon struct {
	process
	cluster      *cluster
	name, region string
	at           addresses
	client       *client
	web          *http.Client

	idMu sync.Mutex
	ids  map[int]string // incarnation by run
}

// newDaemon makes a daemon of region i that listens at five addresses.
func newDaemon(c *cluster, i int, name string, at []string) *daemon {
	d := &daemon{cluster: c, name: name, region: c.regions[i], ids: make(map[int]string)}
	d.at = addresses{grpc: at[0], http: at[1], admin: at[2], peer: at[3], swim: at[4]}
	d.argv = c.net.command(i, []string{binary, "serve", "--config", c.file(name + ".yaml")})
	d.log = c.file(name + ".log")
	d.client = newClient(c.t, c.net, d.at.grpc)
	d.web = &http.Client{
		Timeout: 2 * time.Second,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return c.net.dial(ctx, addr) },
		},
	}
	return d
}

// replica returns the present incarnation of the daemon.
func (d *daemon) replica() admitted.Daemon {
	_, run, _ := d.now()
	return admitted.Daemon{Region: d.region, Name: d.name, Run: run}
}

// get asks the admin listener.
func (d *daemon) get(path string, answer any) error {
	r, err := d.web.Get("http://" + d.at.admin + path)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(io.LimitReader(r.Body, 4<<20))
	switch {
	case err != nil:
		return err
	case r.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s: %s", path, r.Status, strings.TrimSpace(string(body)))
	case answer == nil:
		return nil
	}
	return json.Unmarshal(body, answer)
}

// incarnation returns the incarnation under which the daemon counts in this
// run, "" until it reports one.
func (d *daemon) incarnation() string {
	_, run, _ := d.now()
	d.idMu.Lock()
	defer d.idMu.Unlock()
	if d.ids[run] != "" {
		return d.ids[run]
	}
	var a api.MembersAnswer
	if d.get("/members", &a) != nil {
		return ""
	}
	if i := slices.IndexFunc(a.Members, func(m api.Member) bool { return m.Self }); i >= 0 {
		d.ids[run] = a.Members[i].Incarnation
	}
	return d.ids[run]
}

// ready returns why the daemon is not ready, "" when it is.
func (d *daemon) ready() string {
	if err := d.get("/readyz", nil); err != nil {
		return fmt.Sprintf("%s: %v", d.name, err)
	}
	return ""
}

// lists returns how the members that the daemon lists differ from the given
// incarnations, all of them ready; "" when they do not.
func (d *daemon) lists(want []string) string {
	if wrong := d.ready(); wrong != "" {
		return wrong
	}
	var a api.MembersAnswer
	if err := d.get("/members", &a); err != nil {
		return fmt.Sprintf("%s: %v", d.name, err)
	}
	var got, names []string
	for _, m := range a.Members {
		got, names = append(got, m.Incarnation), append(names, m.Name)
		if !m.Ready {
			return fmt.Sprintf("%s takes %s for not ready", d.name, m.Name)
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		return fmt.Sprintf("%s lists %d members (%s), want %d as they live now", d.name, len(got),
			strings.Join(names, " "), len(want))
	}
	return ""
}

// netcheck returns the way to each peer by its incarnation.
func (d *daemon) netcheck() (map[string]api.PeerCheck, error) {
	var a api.NetcheckAnswer
	if err := d.get("/netcheck", &a); err != nil {
		return nil, err
	}
	out := make(map[string]api.PeerCheck)
	for _, p := range a.Peers {
		if p.Incarnation != "" {
			out[p.Incarnation] = p
		}
	}
	return out, nil
}

// viewOf returns how old all is that the daemon may not know of a peer's
// counts; false when it does not know that, or not the peer.
func viewOf(peers map[string]api.PeerCheck, incarnation string) (time.Duration, bool) {
	age := peers[incarnation].UnsentSeconds
	if age == nil {
		return 0, false
	}
	return time.Duration(*age * float64(time.Second)), true
}

// expectedAge returns the same for a peer that would have sent what it counted,
// unless it is silent: an idle one sends heartbeats alone.
func expectedAge(peers map[string]api.PeerCheck, incarnation string) (time.Duration, bool) {
	age, ok := viewOf(peers, incarnation)
	if p := peers[incarnation]; ok && p.State == api.Connected && p.LagSeconds != nil {
		age = min(age, time.Duration(*p.LagSeconds*float64(time.Second)))
	}
	return age, ok
}

// stale returns which view of a living peer is older than that, "" for none.
func (d *daemon) stale(than time.Duration) string {
	if s, _, _ := d.now(); s != up {
		return ""
	}
	peers, err := d.netcheck()
	if err != nil {
		return fmt.Sprintf("%s: %v", d.name, err)
	}
	for _, peer := range d.cluster.except(d) {
		if s, _, _ := peer.now(); s != up {
			continue
		}
		age, ok := viewOf(peers, peer.incarnation())
		if !ok || age > than {
			return fmt.Sprintf("the view of %s at %s is too old: %s", peer.name, d.name, seconds(age))
		}
	}
	return ""
}

// heardUntil returns the time up to which another daemon of its region knows
// the daemon's counts.
func (d *daemon) heardUntil() time.Time {
	var latest time.Time
	for _, mate := range d.cluster.in(d.region) {
		if mate == d {
			continue
		}
		asked := time.Now()
		peers, err := mate.netcheck()
		if err != nil {
			continue
		}
		if age, ok := viewOf(peers, d.incarnation()); ok && asked.Add(-age).After(latest) {
			latest = asked.Add(-age)
		}
	}
	return latest
}

// die kills the daemon and notes up to when the others know its counts. It
// returns the gap that it leaves: the daemon summed up a part of the keys
// between its region and the others, and until these have noticed, nobody does.
func (d *daemon) die(t testing.TB) *Gap {
	t.Helper()
	d.cluster.note(&Gap{Of: d.replica(), Since: d.heardUntil()})
	g := d.cluster.apart(admitted.Daemon{Region: d.region})
	d.kill(t)
	return g
}

// spend has the daemon admit so many hits of a key at once.
func (d *daemon) spend(t testing.TB, rule, value string, hits int) {
	t.Helper()
	s, err := d.client.check(patience, question{rule: rule, value: value, hits: hits})
	if err != nil || s.Code != rldv1.Code_ALLOWED {
		t.Fatalf("%s: %d hits of %s=%s: %v, %v; want them admitted", d.name, hits, rule, value, s.GetCode(), err)
	}
}

// remaining returns the remaining hits of a key as the daemon reports them.
func (d *daemon) remaining(rule, value string) (int, error) {
	s, err := d.client.check(2*time.Second, question{rule: rule, value: value})
	return int(s.GetRemaining()), err
}
