package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/georld/rld/gateway"
)

const wholeGateway = `gateways:
  edge:
    domain: web
    descriptors:
      - - {key: api_key, header: X-Api-Key, hash: true, when_missing: deny}
        - {key: path, template: "/v1/*", when_missing: {constant: other}}
      - - {key: ip, client: {hops: 2, v4: 24, v6: 48, header: Forwarded}}
      - - key: client
          join:
            - client: {trusted: [10.0.0.0/8]}
            - {header: User-Agent, hash: true}
      - [{key: m, method: true}, {key: h, host: true}, {key: c, cookie: sid}, {key: q, query: user, when_missing: skip}]
      - [{key: sub, claim: {name: sub, header: X-Token}}, {key: all, constant: x}, {key: p, template: [/a, "/u/{id}"]}]
    cost: {header: X-Cost, max: 50}
    on_no_match: deny
    deny_status: 403
    failure_status: 500
  login:
    domain: web
    target: path
    descriptors: [[{key: ip, client: {}}]]
    action: challenge
    challenge_url: https://example.com/challenge
`

func loadText(t *testing.T, text string) (*Loaded, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rld.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(Sources{File: path})
}

// TestGateways holds that a mapping is read as it is written, and that what
// rld config print writes is the same mapping.
func TestGateways(t *testing.T) {
	loaded, err := loadText(t, wholeGateway)
	if err != nil {
		t.Fatal(err)
	}
	key := func(k string, s gateway.Source) gateway.Entry { return gateway.Entry{Key: k, Source: s} }
	deny := key("api_key", gateway.Source{Header: "X-Api-Key", Hash: true})
	deny.WhenMissing.Deny = true
	other := key("path", gateway.Source{Template: []string{"/v1/*"}})
	other.WhenMissing.Constant = "other"
	want := map[string]gateway.Settings{
		"edge": {
			Domain: "web", Cost: &gateway.Cost{Header: "X-Cost", Max: 50},
			Answers: gateway.Answers{OnNoMatch: "deny", DenyStatus: 403, FailureStatus: 500},
			Descriptors: [][]gateway.Entry{
				{deny, other},
				{key("ip", gateway.Source{Client: &gateway.Client{Hops: 2, V4: 24, V6: 48, Header: "Forwarded"}})},
				{key("client", gateway.Source{Join: []gateway.Source{
					{Client: &gateway.Client{Trusted: []string{"10.0.0.0/8"}}},
					{Header: "User-Agent", Hash: true},
				}})},
				{
					key("m", gateway.Source{Method: true}), key("h", gateway.Source{Host: true}),
					key("c", gateway.Source{Cookie: "sid"}), key("q", gateway.Source{Query: "user"}),
				},
				{
					key("sub", gateway.Source{Claim: &gateway.Claim{Name: "sub", Header: "X-Token"}}),
					key("all", gateway.Source{Constant: "x"}), key("p", gateway.Source{Template: []string{"/a", "/u/{id}"}}),
				},
			},
		},
		"login": {
			Domain:      "web",
			Target:      "path",
			Descriptors: [][]gateway.Entry{{key("ip", gateway.Source{Client: &gateway.Client{}})}},
			Answers:     gateway.Answers{Action: "challenge", ChallengeURL: "https://example.com/challenge"},
		},
	}
	if diff := cmp.Diff(want, loaded.Config.Gateways); diff != "" {
		t.Error(diff)
	}
	for _, o := range []PrintOptions{{}, {Effective: true}, {JSON: true}} {
		text, err := loaded.Print(o)
		if err != nil {
			t.Fatal(err)
		}
		again, err := loadText(t, text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if diff := cmp.Diff(loaded.Config.Gateways, again.Config.Gateways); diff != "" {
			t.Errorf("printed: %s\n%s", diff, text)
		}
	}
}

// TestGatewayFaults holds that each fault has line, column and place.
func TestGatewayFaults(t *testing.T) {
	for _, tt := range []struct{ old, with, want string }{
		{"hash: true,", "hsh: true,", `:5:45: gateways: unknown field "hsh"`},
		{"hash: true,", "hash: 7,", ":5:51: gateways: "},
		{"hops: 2", "hops: 17", `:7:36: gateways.edge.descriptors[1][0].client.hops: 17 is out of range`},
		{"hops: 2", "hops: two", `:7:36: gateways: hops is the text "two"; write a whole number from 1 to 16`},
		{"header: X-Api-Key", `header: "a b"`, `:5:34: gateways.edge.descriptors[0][0].header: "a b" is not the name of a header`},
		{"header: X-Api-Key,", "", `gateways.edge.descriptors[0][0]: has no source: give one of header, client`},
		{"trusted: [10.0.0.0/8]", "trusted: [10/8]", `:10:34: gateways.edge.descriptors[2][0].join[0].client.trusted[0]: "10/8" is no network`},
		{"deny_status: 403", "deny_status: 200", ":16:18: gateways: deny_status is the number 200; write a whole number from 400 to 599"},
		{"deny_status: 403", "deny_status: 600", ":16:18: gateways.edge.deny_status: 600 is out of range: 400 to 599"},
		{"deny_status: 403", "deny_status: 0", ":16:18: gateways: deny_status is the number 0; write a whole number from 400 to 599"},
		{"on_no_match: deny", "on_no_match: refuse", `:15:18: gateways.edge.on_no_match: "refuse" is neither`},
		{"when_missing: skip", "when_missing: allow", `"allow" is none of skip, deny and {constant: TEXT}`},
		{"{constant: other}", `{constant: ""}`, "the constant is empty"},
		{"  login:", "  lo.gin:", `:18:3: gateways: "lo.gin" is no name of a mapping`},
		{"target: path", "target: query", `:20:13: gateways.login.target: "query" is neither headers nor path`},
		{"action: challenge", "action: allow", `gateways.login.action: "allow" is none of deny, challenge, log`},
		{"    domain: web\n    target", "    target", "gateways.login.domain: is missing"},
	} {
		_, err := loadText(t, strings.Replace(wholeGateway, tt.old, tt.with, 1))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v\nwant %s", tt.with, err, tt.want)
		}
	}
	c := Default()
	c.Gateways = map[string]gateway.Settings{"a/b": {}}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), `gateways: "a/b" is no name of a mapping`) {
		t.Error(err)
	}
}
