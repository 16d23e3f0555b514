package certs

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/internal/certs/certstest"
)

// issue writes the files of a daemon into dir, valid for an hour.
func issue(t *testing.T, a *certstest.Authority, dir string, change func(*x509.Certificate)) Files {
	t.Helper()
	f := a.Write(t, dir, func(c *x509.Certificate) {
		c.NotAfter = time.Now().Add(time.Hour)
		change(c)
	})
	return Files{Cert: f.Cert, Key: f.Key, CA: f.CA, Own: certstest.Both(), What: "certificates of peers"}
}

// until makes an authority end at a time.
func until(t time.Time) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.NotAfter = t }
}

func uri(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestNamesOf(t *testing.T) {
	for _, c := range []struct {
		uris, dns []string
		want      string
	}{
		{nil, nil, "[]"},
		{[]string{"spiffe://rld/us/us-0"}, nil, "[us/us-0]"},
		{nil, []string{"us-0.us.rld"}, "[us/us-0]"},
		{[]string{"spiffe://rld/us/us-0"}, []string{"us-0.us.rld", "node.host.eu.rld"}, "[eu/node.host us/us-0]"},
		{[]string{"SPIFFE://RLD/us/us-0"}, []string{"US-0.us.RLD"}, "[us/US-0 us/us-0]"},
		{[]string{"spiffe://example.org/us/us-0", "https://rld/us/us-0"}, []string{"us-0.us.example.org", "rld"}, "[]"},
		{[]string{"spiffe://rld/us"}, nil, "want spiffe://rld/REGION/NAME"},
		{[]string{"spiffe://rld/us/us-0/x"}, nil, "want spiffe://rld/REGION/NAME"},
		{[]string{"spiffe://rld/us/us%2F0"}, nil, "want spiffe://rld/REGION/NAME"},
		{[]string{"spiffe://rld/us/us-0?x"}, nil, "want spiffe://rld/REGION/NAME"},
		{[]string{"spiffe://rld//us-0"}, nil, "want spiffe://rld/REGION/NAME"},
		{[]string{"spiffe://rld/../us-0"}, nil, "want spiffe://rld/REGION/NAME"},
		{[]string{"spiffe://rld/us/" + strings.Repeat("x", 64)}, nil, "want 1 to 63"},
		{nil, []string{"*.us.rld"}, "want NAME.REGION.rld"},
		{nil, []string{"us.rld"}, "want NAME.REGION.rld"},
		{nil, []string{".us.rld"}, "want NAME.REGION.rld"},
	} {
		cert := &x509.Certificate{DNSNames: c.dns}
		for _, s := range c.uris {
			cert.URIs = append(cert.URIs, uri(t, s))
		}
		names, err := NamesOf(cert)
		got := fmt.Sprint(names)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasSuffix(got, c.want) && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%q %q: %s, want %s", c.uris, c.dns, got, c.want)
		}
	}
}

func TestNameRoundTrip(t *testing.T) {
	name := Name{"eu-west-1", "rld_0.example"}
	names, err := NamesOf(&x509.Certificate{URIs: []*url.URL{uri(t, name.URI())}})
	if err != nil || len(names) != 1 || names[0] != name {
		t.Errorf("%v, %v", names, err)
	}
}

func TestRequire(t *testing.T) {
	us0 := Name{"us", "us-0"}
	for want, names := range map[string][]Name{
		"":                             {{"eu", "x"}, us0},
		"names no daemon: want spiffe": {},
		"the certificate is of eu/eu-0, want one of us/us-0": {{"eu", "eu-0"}},
		"of us/a, us/b, us/c, 1 more, want one of us/us-0":   {{"us", "a"}, {"us", "b"}, {"us", "c"}, {"us", "d"}},
	} {
		if err := Require(names, us0); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", names, err, want)
		}
	}
}

// TestReload changes the files of a store.
func TestReload(t *testing.T) {
	ca := certstest.New(t, until(time.Now().Add(time.Hour)))
	dir := t.TempDir()
	named := func(name string) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.URIs = []*url.URL{uri(t, "spiffe://rld/us/"+name)} }
	}
	f := issue(t, ca, dir, named("a"))
	var log bytes.Buffer
	s, err := Load(f, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	issue(t, ca, dir, named("b"))
	if got := List(s.Current().Names); got != "us/a" {
		t.Errorf("before a reload: %s", got)
	}
	if got := List(s.Reload().Names); got != "us/b" || List(s.Current().Names) != "us/b" ||
		!strings.Contains(log.String(), "certificates of peers changed") {
		t.Errorf("after a reload: %s, log %s", got, &log)
	}
	log.Reset()
	if err := os.WriteFile(f.Cert, []byte("invalid"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := List(s.Reload().Names); got != "us/b" {
			t.Errorf("with a broken file: %s", got)
		}
	}
	if n := strings.Count(log.String(), "broken: the former ones stay in force"); n != 1 || s.Fault() == nil {
		t.Errorf("%d lines, fault %v", n, s.Fault())
	}
	issue(t, ca, dir, named("c"))
	if got := List(s.Reload().Names); got != "us/c" || s.Fault() != nil {
		t.Errorf("after a mend: %s, fault %v", got, s.Fault())
	}
}

// A certificate with names must have that of its daemon, and later ones too.
func TestSelf(t *testing.T) {
	ca, dir := certstest.New(t, until(time.Now().Add(time.Hour))), t.TempDir()
	named := func(uris ...string) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			for _, s := range uris {
				c.URIs = append(c.URIs, uri(t, s))
			}
		}
	}
	f := issue(t, ca, dir, named("spiffe://rld/eu/eu-0"))
	f.Self = Name{"us", "us-0"}
	want := f.Cert + ": the certificate is of eu/eu-0, want one of us/us-0 (spiffe://rld/us/us-0): use that"
	if _, err := Load(f, slog.Default()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	issue(t, ca, dir, named("spiffe://rld/eu/eu-0", "spiffe://rld/us/us-0"))
	s, err := Load(f, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, later := range []func(*x509.Certificate){named(), named("spiffe://rld/eu/eu-0")} {
		issue(t, ca, dir, later)
		if got := List(s.Reload().Names); got != "eu/eu-0, us/us-0" || s.Fault() == nil {
			t.Errorf("names %s, fault %v", got, s.Fault())
		}
	}
}

// The set ends with the first certificate of its chain that expires.
func TestNotAfter(t *testing.T) {
	early, late := time.Now().Add(time.Minute).Truncate(time.Second), time.Now().Add(time.Hour).Truncate(time.Second)
	for name, c := range map[string]struct{ ca, own time.Time }{"authority": {early, late}, "certificate": {late, early}} {
		f := issue(t, certstest.New(t, until(c.ca)), t.TempDir(), func(x *x509.Certificate) { x.NotAfter = c.own })
		if s, err := Read(f); err != nil || !s.NotAfter.Equal(early) {
			t.Errorf("%s: %v, %v, want %v", name, s, err, early)
		}
	}
}

// A set without authorities, or with those of others, needs no signature.
func TestServerOnly(t *testing.T) {
	f := issue(t, certstest.New(t, nil), t.TempDir(), func(*x509.Certificate) {})
	others := issue(t, certstest.New(t, nil), t.TempDir(), func(*x509.Certificate) {})
	foreign := f
	foreign.CA = others.CA
	if _, err := Read(foreign); err == nil || !strings.Contains(err.Error(), "does not fit") {
		t.Errorf("other authorities: error %v", err)
	}
	foreign.Own = nil
	if _, err := Read(foreign); err != nil {
		t.Errorf("authorities of callers: %v", err)
	}
	foreign.CA = ""
	s, err := Read(foreign)
	if err != nil || s.CA != nil {
		t.Fatalf("no authorities: %v, %v", s, err)
	}
	if _, err := s.Verify([]*x509.Certificate{s.Cert.Leaf}, x509.ExtKeyUsageAny, time.Now()); err == nil {
		t.Error("a set without authorities vouches for a certificate")
	}
}
