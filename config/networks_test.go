package config

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

// TestNetworks: networks of regions are valid, or refused with a correct form.
func TestNetworks(t *testing.T) {
	c := Default()
	c.Regions = []Region{{Name: "eu", CIDRs: []string{"10.2.0.0/16", "fd00:2::/32"}}, {Name: "us"}}
	want := map[string][]netip.Prefix{"eu": {netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("fd00:2::/32")}}
	if got := c.Networks(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := c.openRegions(); got != nil {
		t.Errorf("without TLS: %v", got)
	}
	c.Peer.TLS.Cert = "cert.pem"
	if got := c.openRegions(); len(got) != 1 || !strings.Contains(got[0], "regions us: no cidrs") {
		t.Errorf("%v", got)
	}
	for text, want := range map[string]string{
		"10.2.0.0":            "is no network such as",
		"10.2.0.1/16":         "give 10.2.0.0/16",
		"::ffff:10.2.0.0/112": "IPv4 in IPv6",
		"eu":                  "is no network such as",
		"10.2.0.0/33":         "is no network such as",
		"":                    "is no network such as",
	} {
		c := Default()
		c.Region, c.Name = "us", "us-0"
		c.Regions = []Region{{Name: "eu", CIDRs: []string{text}}}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "regions.eu.cidrs[0]") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	c = Default()
	c.Region, c.Name = "us", "us-0"
	c.Regions = []Region{{Name: "eu", CIDRs: make([]string, maxNetworks+1)}}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "65 networks: at most 64") {
		t.Errorf("%v", err)
	}
}
