package regions

import (
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

func newTable(record *[]string, networks Networks) *Table {
	return New(Config{
		Own: "us", Addr: "10.1.0.1:7070", Settings: []string{"us", "eu"}, Record: func() []string { return *record },
		Networks: networks, Log: slog.New(slog.DiscardHandler),
	})
}

// TestAdmit: regions of the settings and of the record always get in, of others
// a few at a time.
func TestAdmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var record []string
		table := newTable(&record, nil)
		for i := range 100 {
			err := table.Admit(fmt.Sprint("nowhere-", i))
			if want := i < MaxCandidates; (err == nil) != want {
				t.Errorf("region %d: %v", i, err)
			}
		}
		record = []string{"us", "eu", "ap"}
		for _, region := range []string{"us", "eu", "ap"} {
			if err := table.Admit(region); err != nil || !table.Listed(region) {
				t.Errorf("%s: %v", region, err)
			}
		}
		if table.Listed("nowhere-0") || table.Seen("sa") {
			t.Error("a region is let in beyond the bound")
		}
		if got := table.Refused()[string(TooManyCandidates)]; got != 100-MaxCandidates {
			t.Errorf("%d are counted", got)
		}
		time.Sleep(ForgetAfter)
		if err := table.Admit("sa"); err != nil || len(table.Candidates()) != 1 {
			t.Errorf("%v, candidates %v", err, table.Candidates())
		}
	})
}

// TestAllow: where daemons may be, by the networks of their region.
func TestAllow(t *testing.T) {
	n := Networks{"eu": {netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("fd00:2::/32"), netip.MustParsePrefix("169.254.7.0/24")}}
	far, near := netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("127.0.0.1")
	for _, c := range []struct {
		region, ip string
		self       netip.Addr
		want       bool
	}{
		{"eu", "10.2.3.4", far, true},
		{"eu", "::ffff:10.2.3.4", far, true},
		{"eu", "fd00:2::1", far, true},
		{"eu", "10.3.0.1", far, false},
		{"eu", "127.0.0.1", near, false},
		{"eu", "169.254.7.1", far, true},
		{"ap", "10.3.0.1", far, true},
		{"ap", "203.0.113.9", far, true},
		{"ap", "169.254.169.254", far, false},
		{"ap", "::ffff:169.254.169.254", far, false},
		{"ap", "fd00:ec2::254", far, false},
		{"ap", "100.100.100.200", far, false},
		{"ap", "fe80::1%eth0", far, false},
		{"ap", "127.0.0.1", far, false},
		{"ap", "::1", far, false},
		{"ap", "0.0.0.0", far, false},
		{"ap", "::", far, false},
		{"ap", "224.0.0.1", far, false},
		{"ap", "255.255.255.255", far, false},
		{"ap", "ff02::1", far, false},
		{"ap", "127.0.0.1", netip.Addr{}, false},
		{"ap", "127.0.0.9", near, true},
		{"ap", "169.254.169.254", near, false},
	} {
		if err := n.Allow(c.region, netip.MustParseAddr(c.ip), c.self); (err == nil) != c.want {
			t.Errorf("%s at %s, from %s: %v", c.region, c.ip, c.self, err)
		}
	}
}

// TestDialable: an address is counted once, and a name is checked later.
func TestDialable(t *testing.T) {
	table := newTable(new([]string), nil)
	for range 10 {
		if table.Dialable("eu", "169.254.169.254:80") || table.Dialable("eu", "nothing") || !table.Dialable("eu", "rld.example:7070") {
			t.Error("wrong")
		}
	}
	if table.MayDial("eu", "rld.example:7070", netip.MustParseAddr("127.0.0.1")) == nil {
		t.Error("a name resolves to this machine, and is dialed")
	}
	if got := table.Refused()[string(Address)]; got != 2 {
		t.Errorf("%d are counted, want 2", got)
	}
}
