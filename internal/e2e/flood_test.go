//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	rldv1 "github.com/georld/rld/proto/rld/v1"
)

const (
	floodRate = 50_000 // new keys a second
	floodTime = 20 * time.Second
	// floodRoom is by how much a daemon and a mate may grow that track 20,000
	// keys each: those with their cells need about 10 MB, the rest is garbage
	// of the load itself until it is collected. The flood's keys would need
	// some 300 MB.
	floodRoom = 120 << 20
)

// TestFloodOfKeysIsBounded sends calls for a million new keys over one stream:
// memory stays bounded, and limits of tracked keys are still enforced.
func TestFloodOfKeysIsBounded(t *testing.T) {
	c := newCluster(t, loopback{}, 2, "us")
	victim, mate := c.daemon("us-0"), c.daemon("us-1")
	victim.spend(t, kept, "tracked", ampleLimit)
	victim.spend(t, day, "half", dayLimit/2)
	c.agree(5*time.Second, c.daemons, kept, "tracked", 0)
	before := map[*daemon]int{victim: victim.resident(t), mate: mate.resident(t)}

	asked, most := victim.flood(t, mate)
	for d, was := range before {
		t.Logf("%s: %d MB before, %d MB at most while %d keys came", d.name, was>>20, most[d]>>20, asked)
		if most[d] > was+floodRoom {
			t.Errorf("%s grew by %d MB, want at most %d", d.name, (most[d]-was)>>20, floodRoom>>20)
		}
	}
	if asked < floodRate*int(floodTime/time.Second)*8/10 {
		t.Errorf("only %d keys were asked for, want about %d a second: this machine is too slow to tell", asked, floodRate)
	}
	c.agree(5*time.Second, c.daemons, kept, "tracked", 0)
	c.agree(5*time.Second, c.daemons, day, "half", dayLimit-dayLimit/2)
	victim.spend(t, day, "half", 1)
	c.agree(5*time.Second, c.daemons, day, "half", dayLimit-dayLimit/2-1)
}

// flood asks the daemon for new keys over a stream, and returns how many were
// answered and the most memory that it and another daemon had meanwhile.
func (d *daemon) flood(t *testing.T, other *daemon) (answered int, most map[*daemon]int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*floodTime)
	defer cancel()
	stream, err := d.client.stub.CheckStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	received := make(chan int)
	go func() {
		n := 0
		for {
			f, err := stream.Recv()
			if err != nil {
				if err != io.EOF {
					t.Errorf("after %d answers: %v", n, err)
				}
				received <- n
				return
			}
			n += len(f.Answers)
		}
	}()
	most = map[*daemon]int{}
	begin := time.Now()
	const frame = 50
	for sent := 0; time.Since(begin) < floodTime; {
		for due := int(time.Since(begin).Seconds() * floodRate); sent < due; sent += frame {
			if err := stream.Send(newKeys(sent, frame)); err != nil {
				t.Fatalf("after %d keys: %v", sent, err)
			}
		}
		for _, d := range []*daemon{d, other} {
			most[d] = max(most[d], d.resident(t))
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	return <-received, most
}

// newKeys returns a frame of checks of keys that nobody has asked for.
func newKeys(from, n int) *rldv1.CheckFrame {
	f := &rldv1.CheckFrame{}
	for i := from; i < from+n; i++ {
		f.Checks = append(f.Checks, &rldv1.CheckRequest{
			Id: uint64(i), Domain: domain,
			Descriptors: []*rldv1.Descriptor{{Entries: []*rldv1.Entry{{Key: kept, Value: fmt.Sprintf("flood-%d", i)}}}},
		})
	}
	return f
}

// resident returns the bytes of memory that the process has.
func (d *daemon) resident(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		t.Fatalf("%s has no VmRSS", d.name)
	}
	kb, err := strconv.Atoi(fields[0])
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}
