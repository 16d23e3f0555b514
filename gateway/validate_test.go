package gateway

import (
	"strings"
	"testing"
)

// TestValidate holds that each fault has its place and a correct form.
func TestValidate(t *testing.T) {
	one := func(s Source) Settings { return Settings{Domain: "d", Descriptors: [][]Entry{{{Key: "k", Source: s}}}} }
	answers := func(a Answers) Settings {
		s := one(Source{Constant: "x"})
		s.Answers = a
		return s
	}
	cost := one(Source{Constant: "x"})
	cost.Cost = &Cost{Header: "", Max: 1_000_001}
	exempt := one(Source{Constant: "x"})
	exempt.Exempt = &Client{Hops: 1}
	for _, tt := range []struct {
		s    Settings
		want []string
	}{
		{Settings{}, []string{"domain: is missing", "descriptors: 0 descriptors"}},
		{Settings{Domain: "d", Descriptors: [][]Entry{{}}}, []string{"descriptors[0]: 0 entries"}},
		{
			Settings{Domain: "d", Descriptors: [][]Entry{{{Key: "k", Source: Source{Constant: "x"}}, {}}}},
			[]string{"descriptors[0][1].key: is missing", "descriptors[0][1]: has no source: give one of header, client"},
		},
		{one(Source{Header: "A", Method: true}), []string{"descriptors[0][0]: has several sources (header, method)"}},
		{one(Source{Header: "a b"}), []string{`descriptors[0][0].header: "a b" is not the name`}},
		{one(Source{Header: "host"}), []string{"use host: true"}},
		{one(Source{Header: "cookie"}), []string{"use cookie: NAME"}},
		{one(Source{Cookie: "a;b"}), []string{"descriptors[0][0].cookie: "}},
		{one(Source{Claim: &Claim{Header: ":"}}), []string{".claim.name: is missing", ".claim.header: "}},
		{one(Source{Query: "\xff"}), []string{".query: has a NUL or is not UTF-8"}},
		{one(Source{Constant: strings.Repeat("x", 4097)}), []string{".constant: is 4097 bytes long"}},
		{
			one(Source{Template: []string{"v1", "/a*", "/a", "/a", "/*/b", "/{}", "/{a}x", "/../a"}}),
			[]string{".template[0]: ", ".template[1]: ", `.template[3]: "/a" is given twice`, ".template[4]: ", ".template[5]: ", ".template[6]: ", ".template[7]: "},
		},
		{one(Source{Join: []Source{{Header: "A"}}}), []string{".join: 1 sources: give 2 to 8"}},
		{one(Source{Join: []Source{{Header: "A"}, {Join: []Source{{}}}, {}}}), []string{".join[1]: is a join", ".join[2]: has no source"}},
		{
			one(Source{Client: &Client{Hops: 17, V4: 33, V6: -1, Trusted: []string{"10/8", "::ffff:1.2.3.4/100"}, Header: ":"}}),
			[]string{".client.hops: 17", ".client.v4: 33", ".client.v6: -1", ".client: has hops and trusted", ".trusted[0]: ", ".trusted[1]: ", ".client.header: "},
		},
		{
			one(Source{Client: &Client{V4: 24, Networks: map[string][]string{"": {"10.0.0.0/8"}, "a": nil, "b": {"10.0.0.0/8", "10"}}}}),
			[]string{".client.networks.: is missing", ".client.networks.a: is empty", ".client.networks.b[1]: ", ".client: has networks, and bits"},
		},
		{exempt, []string{"exempt: has no networks"}},
		{cost, []string{"cost.header: ", "cost.max: 1000001"}},
		{Settings{Domain: "d", Target: "uri", Descriptors: [][]Entry{{{Key: "k", Source: Source{Constant: "x"}}}}}, []string{`target: "uri" is neither headers nor path`}},
		{answers(Answers{OnNoMatch: "x", Action: "y"}), []string{"on_no_match: ", "action: "}},
		{answers(Answers{DenyStatus: 200, FailureStatus: 600}), []string{"deny_status: 200", "failure_status: 600"}},
		{answers(Answers{DenyStatus: 403, Action: ActionLog}), []string{"deny_status: has no effect with action: log"}},
		{answers(Answers{ChallengeURL: "/x"}), []string{"challenge_url: has no effect"}},
		{answers(Answers{Action: ActionChallenge, ChallengeURL: "javascript:x"}), []string{"challenge_url: "}},
		{answers(Answers{Action: ActionChallenge, ChallengeURL: "//evil"}), []string{"challenge_url: "}},
		{answers(Answers{Action: ActionChallenge, ChallengeURL: "/a\r\nb"}), []string{"challenge_url: "}},
		{answers(Answers{Action: ActionChallenge, ChallengeURL: "https://a.example/x?y"}), nil},
	} {
		err := tt.s.Validate()
		_, compiled := Compile(tt.s)
		if (err == nil) != (len(tt.want) == 0) || (compiled == nil) != (err == nil) {
			t.Errorf("%+v: %v, want %q", tt.s, err, tt.want)
			continue
		}
		if err == nil {
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != len(tt.want) {
			t.Errorf("%q, want %q", lines, tt.want)
			continue
		}
		for i, want := range tt.want {
			if !strings.Contains(lines[i], want) {
				t.Errorf("%q, want %q", lines[i], want)
			}
		}
	}
	for name, want := range map[string]bool{"": false, "edge-1_A": true, "a.b": false, "a/b": false, strings.Repeat("x", 64): false} {
		if ValidName(name) != want {
			t.Errorf("name %q", name)
		}
	}
}
