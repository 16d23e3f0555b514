package gateway

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
)

// readOne returns what a mapping with one entry makes of headers: "key=value",
// "" for no entry, or "fault: REASON".
func readOne(t *testing.T, e Entry, host string, headers ...string) string {
	t.Helper()
	e.Key = "k"
	m, err := Compile(Settings{Domain: "d", Descriptors: [][]Entry{{e}}})
	if err != nil {
		t.Fatal(err)
	}
	return reading(m.Read(&Request{Header: header(headers...), Host: host}))
}

// header returns headers of lines "Name: value".
func header(lines ...string) map[string][]string {
	h := make(map[string][]string)
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h[canonical(name)] = append(h[canonical(name)], value)
	}
	return h
}

// reading returns a call, or the fault of a request, as text.
func reading(c Call, err error) string {
	var fault *Fault
	if errors.As(err, &fault) {
		return "fault: " + fault.Reason.String()
	}
	var out []string
	for _, d := range c.Descriptors {
		var entries []string
		for _, e := range d.Entries {
			entries = append(entries, fmt.Sprintf("%s=%s", e.Key, e.Value))
		}
		out = append(out, strings.Join(entries, ","))
	}
	return strings.Join(out, " ")
}

// jwt returns a token with these claims and no valid signature.
func jwt(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".sig"
}

func TestSources(t *testing.T) {
	api := Entry{Source: Source{Header: "x-api-key"}}
	hashed := Entry{Source: Source{Header: "X-Api-Key", Hash: true}}
	client := func(c Client) Entry { return Entry{Source: Source{Client: &c}} }
	template := Entry{Source: Source{Template: []string{"/users/{id}", "/v1/*", "/"}}}
	networks := Client{Networks: map[string][]string{"staff": {"192.0.2.0/24", "2001:db8::/32"}, "lab": {"192.0.2.8/30"}}}
	method, host := Entry{Source: Source{Method: true}}, Entry{Source: Source{Host: true}}
	cookie, query := Entry{Source: Source{Cookie: "sid"}}, Entry{Source: Source{Query: "user"}}
	claim := Entry{Source: Source{Claim: &Claim{Name: "sub"}}}
	joined := Entry{Source: Source{Join: []Source{{Header: "A"}, {Header: "B"}}}}
	deny := Entry{Source: Source{Header: "A"}, WhenMissing: WhenMissing{Deny: true}}
	none := Entry{Source: Source{Header: "A"}, WhenMissing: WhenMissing{Constant: "none"}}
	for _, tt := range []struct {
		name    string
		entry   Entry
		headers []string
		want    string
	}{
		{"header", api, []string{"X-Api-Key: k1"}, "k=k1"},
		{"missing", api, nil, ""},
		{"empty is missing", api, []string{"X-Api-Key: "}, ""},
		{"all bytes are the value", api, []string{"X-Api-Key: k1&hits=0,x:y é%2C"}, "k=k1&hits=0,x:y é%2C"},
		{"twice", api, []string{"X-Api-Key: a", "X-Api-Key: a"}, "fault: repeated"},
		{"NUL", api, []string{"X-Api-Key: a\x00b"}, "fault: bad_text"},
		{"not UTF-8", api, []string{"X-Api-Key: caf\xe9"}, "fault: bad_text"},
		{"longest", api, []string{"X-Api-Key: " + strings.Repeat("x", 4096)}, "k=" + strings.Repeat("x", 4096)},
		{"too long", api, []string{"X-Api-Key: " + strings.Repeat("x", 4097)}, "fault: too_long"},
		{"hashed", hashed, []string{"X-Api-Key: abc"}, "k=ba7816bf8f01cfea414140de5dae2223"},
		{"any bytes can be hashed", hashed, []string{"X-Api-Key: \xff\x00"}, "k=ea5dbf9596d187e9500f23e9a6801094"},
		{"hashed twice", hashed, []string{"X-Api-Key: a", "X-Api-Key: b"}, "fault: repeated"},
		{"deny", deny, nil, "fault: missing"},
		{"constant instead", none, nil, "k=none"},
		{"constant not needed", none, []string{"A: x"}, "k=x"},

		{"one hop", client(Client{}), []string{"X-Forwarded-For: 6.6.6.6, 1.2.3.4"}, "k=1.2.3.4"},
		{"two hops", client(Client{Hops: 2}), []string{"X-Forwarded-For: 6.6.6.6, 1.2.3.4, 10.0.0.1"}, "k=1.2.3.4"},
		{"lines are one list", client(Client{}), []string{"X-Forwarded-For: 6.6.6.6", "X-Forwarded-For: 1.2.3.4"}, "k=1.2.3.4"},
		{"list too short", client(Client{Hops: 2}), []string{"X-Forwarded-For: 1.2.3.4"}, ""},
		{"no list", client(Client{}), nil, ""},
		{"port", client(Client{}), []string{"X-Forwarded-For: 1.2.3.4:55"}, "k=1.2.3.4"},
		{"IPv6 counts by /64", client(Client{}), []string{"X-Forwarded-For: [2001:db8:1:2:3::4]:55"}, "k=2001:db8:1:2::/64"},
		{"IPv4 in IPv6", client(Client{}), []string{"X-Forwarded-For: ::ffff:1.2.3.4"}, "k=1.2.3.4"},
		{"zone", client(Client{V6: 128}), []string{"X-Forwarded-For: fe80::1%eth0"}, "k=fe80::1"},
		{"IPv4 by /24", client(Client{V4: 24}), []string{"X-Forwarded-For: 1.2.3.4"}, "k=1.2.3.0/24"},
		{"network", client(networks), []string{"X-Forwarded-For: 192.0.2.77"}, "k=staff"},
		{"the most specific network", client(networks), []string{"X-Forwarded-For: 192.0.2.9"}, "k=lab"},
		{"network of IPv6", client(networks), []string{"X-Forwarded-For: 2001:db8::1"}, "k=staff"},
		{"in no network", client(networks), []string{"X-Forwarded-For: 192.0.2.9, 198.51.100.1"}, ""},
		{"no address", client(Client{}), []string{"X-Forwarded-For: 1.2.3.4, me"}, "fault: bad_address"},
		{"forged before it", client(Client{}), []string{"X-Forwarded-For: \xff,,, 1.2.3.4"}, "k=1.2.3.4"},
		{"trusted", client(Client{Trusted: []string{"10.0.0.0/8"}}), []string{"X-Forwarded-For: 10.6.6.6, 1.2.3.4, 10.0.0.2, 10.0.0.1"}, "k=1.2.3.4"},
		{"all trusted", client(Client{Trusted: []string{"10.0.0.0/8"}}), []string{"X-Forwarded-For: 10.0.0.2, 10.0.0.1"}, "k=10.0.0.2"},
		{"too many", client(Client{Trusted: []string{"10.0.0.1"}}), []string{"X-Forwarded-For: " + strings.Repeat("10.0.0.1,", 65)}, "fault: too_long"},
		{"one address", client(Client{Header: "X-Real-Ip"}), []string{"X-Real-IP: 1.2.3.4"}, "k=1.2.3.4"},
		{"two addresses", client(Client{Header: "X-Real-Ip"}), []string{"X-Real-IP: 1.2.3.4", "X-Real-IP: 1.2.3.5"}, "fault: repeated"},
		{"Forwarded is not asked", client(Client{}), []string{"Forwarded: for=6.6.6.6", "X-Forwarded-For: 1.2.3.4"}, "k=1.2.3.4"},
		{"Forwarded", client(Client{Header: "forwarded"}), []string{`Forwarded: for=6.6.6.6;proto=http, For="[2001:db8::1]:99";by=x`}, "k=2001:db8::/64"},
		{"Forwarded, open quote", client(Client{Header: "forwarded"}), []string{`Forwarded: for="x, for=1.2.3.4`}, "fault: bad_address"},
		{"Forwarded, hidden", client(Client{Header: "forwarded"}), []string{`Forwarded: for=1.2.3.4, for=_secret`}, "fault: bad_address"},
		{"Forwarded without for", client(Client{Header: "forwarded"}), []string{`Forwarded: for=1.2.3.4, proto=http`}, "fault: bad_address"},

		{"method", method, []string{"X-Original-Method: post"}, "k=POST"},
		{"made up", method, []string{"X-Forwarded-Method: ABC"}, "k=OTHER"},
		{"methods differ", method, []string{"X-Forwarded-Method: GET", "X-Original-Method: POST"}, "fault: conflict"},

		{"host header", host, nil, "k=own.example"},
		{"forwarded host", host, []string{"X-Forwarded-Host: A.example.:443"}, "k=a.example"},
		{"host of URL", host, []string{"X-Original-URL: https://u@a.example:1/x"}, "k=a.example"},
		{"IPv6 host", host, []string{"X-Forwarded-Host: [::1]:80"}, "k=::1"},
		{"hosts differ", host, []string{"X-Forwarded-Host: b", "X-Original-URL: https://a/x"}, "fault: conflict"},
		{"two hosts", host, []string{"X-Forwarded-Host: a, b"}, "fault: bad_host"},

		{"path", template, []string{"X-Original-URI: /v1/a/b?x=/users/1"}, "k=/v1/*"},
		{"prefix alone", template, []string{"X-Original-URI: /v1"}, "k=/v1/*"},
		{"one segment", template, []string{"X-Forwarded-Uri: /users/7/"}, "k=/users/{id}"},
		{"two segments", template, []string{"X-Forwarded-Uri: /users/7/8"}, ""},
		{"root", template, []string{"X-Forwarded-Uri: https://a?x"}, "k=/"},
		{"other path", template, []string{"X-Forwarded-Uri: /v10"}, ""},
		{"spelled otherwise", template, []string{"X-Original-URI: //x/..;a/%2E/%761;q/./b"}, "k=/v1/*"},
		{"escaped slash", template, []string{"X-Original-URI: /v1%2fb"}, "k=/v1/*"},
		{"escaped slash in a segment", template, []string{"X-Original-URI: /users/a%2Fb"}, "k=/users/{id}"},
		{"backslash", template, []string{`X-Original-URI: /v1\b`}, "k=/v1/*"},
		{"bad escape", template, []string{"X-Original-URI: /v1/%zz"}, "fault: bad_uri"},
		{"no URI", template, []string{"X-Original-URI: v1"}, "fault: bad_uri"},
		{"long URI", template, []string{"X-Original-URI: /" + strings.Repeat("x", 8<<10)}, "fault: too_long"},
		{"forged URI", template, []string{"X-Original-URI: /free", "X-Forwarded-Uri: /v1/a"}, "fault: conflict"},
		{"two URIs agree", template, []string{"X-Original-URL: http://a/v1/a", "X-Forwarded-Uri: /v1/a"}, "k=/v1/*"},
		{"redirect is not asked", template, []string{"X-Auth-Request-Redirect: /free", "X-Forwarded-Uri: /v1/a"}, "k=/v1/*"},
		{"redirect", template, []string{"X-Auth-Request-Redirect: /v1/a"}, "k=/v1/*"},
		{"URI twice", template, []string{"X-Original-URI: /v1", "X-Original-URI: /v1"}, "fault: repeated"},

		{"cookie", cookie, []string{"Cookie: a=b; sid=x=y,&: ; c=d"}, "k=x=y,&:"},
		{"cookie in a second line", cookie, []string{"Cookie: a=b", "Cookie: sid=1"}, "k=1"},
		{"quoted cookie", cookie, []string{`Cookie: sid="1"`}, "k=1"},
		{"cookie twice", cookie, []string{"Cookie: sid=1; sid=2"}, "fault: repeated"},
		{"long cookie", cookie, []string{"Cookie: " + strings.Repeat("x", 17<<10)}, "fault: too_long"},

		{"query", query, []string{"X-Forwarded-Uri: /?a=1&user=a%26hits%3D0+b&c"}, "k=a&hits=0 b"},
		{"escaped name", query, []string{"X-Forwarded-Uri: /?u%73er=a"}, "k=a"},
		{"query twice", query, []string{"X-Forwarded-Uri: /?user=a&user="}, "fault: repeated"},
		{"bad query", query, []string{"X-Forwarded-Uri: /?user=%f"}, "fault: bad_uri"},
		{"query with NUL", query, []string{"X-Forwarded-Uri: /?user=%00"}, "fault: bad_text"},
		{"no query", query, []string{"X-Forwarded-Uri: /"}, ""},

		{"claim", claim, []string{"Authorization: bearer " + jwt(`{"sub":"é\u0061"}`)}, "k=éa"},
		{"number", claim, []string{"Authorization: " + jwt(`{"sub":12}`)}, "k=12"},
		{"no such claim", claim, []string{"Authorization: Bearer " + jwt(`{"sub":null}`)}, ""},
		{"claim of another type", claim, []string{"Authorization: Bearer " + jwt(`{"sub":["a"]}`)}, "fault: bad_token"},
		{"claim with NUL", claim, []string{"Authorization: Bearer " + jwt(`{"sub":"\u0000"}`)}, "fault: bad_text"},
		{"no JWT", claim, []string{"Authorization: Bearer abc"}, "fault: bad_token"},
		{"encrypted", claim, []string{"Authorization: Bearer e30." + strings.Repeat("e30.", 3) + "e30"}, "fault: bad_token"},
		{"no JSON", claim, []string{"Authorization: Bearer a.e3.c"}, "fault: bad_token"},
		{"Basic", claim, []string{"Authorization: Basic abc"}, ""},

		{"join", joined, []string{"A: 1", "B: 2"}, "k=1|2"},
		{"join is unambiguous", joined, []string{`A: 1|2\`, "B: 3"}, `k=1\|2\\|3`},
		{"part missing", joined, []string{"A: 1"}, ""},
		{"part twice", joined, []string{"A: 1", "A: 1", "B: 2"}, "fault: repeated"},
		{"constant", Entry{Source: Source{Constant: "all"}}, nil, "k=all"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := readOne(t, tt.entry, "own.example:80", tt.headers...); got != tt.want {
				t.Errorf("%.100q, want %.100q", got, tt.want)
			}
		})
	}
}

// TestCost holds that no header makes a call free.
func TestCost(t *testing.T) {
	m, err := Compile(Settings{
		Domain: "d", Descriptors: [][]Entry{{{Key: "k", Source: Source{Constant: "x"}}}}, Cost: &Cost{Header: "x-cost", Max: 50},
	})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]uint64{"": 1, "1": 1, "50": 50, "51": 0, "0": 0, "-1": 0, "+1": 0, "1 ": 0, "1e1": 0, "18446744073709551616": 0} {
		c, err := m.Read(&Request{Header: header("X-Cost: " + text)})
		if err != nil != (want == 0) || err == nil && c.Descriptors[0].Hits != want {
			t.Errorf("%q: %v, %v; want %d", text, c, err, want)
		}
	}
	if got := reading(m.Read(&Request{Header: header("X-Cost: 1", "X-Cost: 1")})); got != "fault: repeated" {
		t.Errorf("twice: %s", got)
	}
}

// TestDescriptors holds that entries and descriptors without values are left
// out, and that none runs into another.
func TestDescriptors(t *testing.T) {
	e := func(key string) Entry { return Entry{Key: key, Source: Source{Header: key}} }
	m, err := Compile(Settings{Domain: "d", Descriptors: [][]Entry{{e("A"), e("B")}, {e("C")}, {e("A"), e("C")}}})
	if err != nil {
		t.Fatal(err)
	}
	for lines, want := range map[string]string{
		"A: 1/B: 2/C: 3": "A=1,B=2 C=3 A=1,C=3", "B: 2": "B=2", "": "", "C: 3": "C=3 C=3",
	} {
		c, err := m.Read(&Request{Header: header(strings.Split(lines, "/")...)})
		if got := reading(c, err); got != want {
			t.Errorf("%q: %q, want %q", lines, got, want)
		}
		for _, d := range c.Descriptors {
			if len(d.Entries) != cap(d.Entries) {
				t.Error("an entry could be appended to the next descriptor")
			}
		}
	}
	if m.Domain() != "d" || m.Status() != 429 || m.FailureStatus != 503 || m.OnNoMatch != NoMatchAllow {
		t.Errorf("defaults: %+v", m)
	}
}

// TestStatus holds the status of a denial by each action.
func TestStatus(t *testing.T) {
	for _, tt := range []struct {
		a    Answers
		want int
	}{
		{Answers{DenyStatus: 403}, 403},
		{Answers{Action: ActionChallenge}, 401},
		{Answers{Action: ActionChallenge, ChallengeURL: "/captcha"}, 302},
		{Answers{Action: ActionLog}, 200},
	} {
		m, err := Compile(Settings{Domain: "d", Descriptors: [][]Entry{{{Key: "k", Source: Source{Constant: "x"}}}}, Answers: tt.a})
		if err != nil || m.Status() != tt.want {
			t.Errorf("%+v: %v, want %d", tt.a, err, tt.want)
		}
	}
}

// TestReasons holds that each reason has a name and a text.
func TestReasons(t *testing.T) {
	names := make(map[string]bool)
	for _, r := range Reasons() {
		names[r.String()] = true
	}
	if len(names) != len(reasonNames)-1 || len(reasonTexts) != len(reasonNames) || names["unknown"] {
		t.Errorf("%v", names)
	}
	if got := (&Fault{Repeated, "api_key"}).Error(); got != "api_key is given twice" {
		t.Error(got)
	}
}

// TestRead holds that Read changes nothing and how much a call allocates.
func TestRead(t *testing.T) {
	m, err := Compile(Settings{Domain: "d", Descriptors: [][]Entry{
		{{Key: "k", Source: Source{Header: "X-Api-Key"}}, {Key: "p", Source: Source{Template: []string{"/v1/*"}}}},
		{{Key: "ip", Source: Source{Client: &Client{}}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	h := header("X-Api-Key: k1", "X-Original-URI: /v1/a/b?c", "X-Forwarded-For: 1.2.3.4")
	before := maps.Clone(h)
	r := &Request{Header: h}
	// The entries, the descriptors and the text of the address.
	if n := testing.AllocsPerRun(100, func() { _, _ = m.Read(r) }); n > 3 {
		t.Errorf("%v allocations", n)
	}
	if fmt.Sprint(h) != fmt.Sprint(before) {
		t.Errorf("changed: %v", h)
	}
}

// TestLine holds that a mapping reads the request line or the headers that
// describe a request, and never one in place of the other.
func TestLine(t *testing.T) {
	for target, want := range map[Target]string{
		"": "own=fault: bad_uri, none=k=/h", TargetHeaders: "own=fault: bad_uri, none=k=/h",
		TargetPath: "own=k=/p, none=fault: bad_uri",
	} {
		m, err := Compile(Settings{Domain: "d", Target: target, Descriptors: [][]Entry{{{Key: "k", Source: Source{Template: []string{"/h", "/p"}}}}}})
		if err != nil {
			t.Fatal(err)
		}
		r := &Request{Header: header("X-Original-URI: /h")}
		none := reading(m.Read(r))
		r.Line = &Line{Method: "GET", Target: "/p?x"}
		if got := "own=" + reading(m.Read(r)) + ", none=" + none; got != want {
			t.Errorf("target %q: %s, want %s", target, got, want)
		}
	}
}
