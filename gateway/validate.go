package gateway

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/georld/rld/node"
)

// Defaults and bounds of settings.
const (
	defaultDeny        = 429
	defaultFailure     = 503
	defaultCost        = 1_000
	maxCost            = 1_000_000
	maxTemplates       = 256
	maxJoined          = 8
	maxName            = 63
	statusOK           = 200
	statusFound        = 302
	statusUnauthorized = 401
)

// ValidName reports whether a mapping may have this name, which is part of a
// path: 1 to 63 letters, digits, underscores and dashes.
func ValidName(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return name != "" && len(name) <= maxName
}

// validator gathers the faults of one mapping.
type validator struct{ faults []error }

func (v *validator) fault(place, format string, args ...any) {
	v.faults = append(v.faults, &SettingFault{place, fmt.Sprintf(format, args...)})
}

// Validate returns all faults, joined, each a *SettingFault; nil for none.
func (s *Settings) Validate() error {
	var v validator
	v.text("domain", s.Domain, "edge")
	switch s.Target {
	case "", TargetHeaders, TargetPath:
	default:
		v.fault("target", "%q is neither headers nor path", s.Target)
	}
	if n := len(s.Descriptors); n == 0 || n > node.MaxDescriptors {
		v.fault("descriptors", "%d descriptors: give 1 to %d, as in [[{key: ip, client: {hops: 1}}]]", n, node.MaxDescriptors)
	}
	for i, list := range s.Descriptors {
		place := fmt.Sprintf("descriptors[%d]", i)
		if n := len(list); n == 0 || n > node.MaxEntries {
			v.fault(place, "%d entries: give 1 to %d, as in [{key: ip, client: {hops: 1}}]", n, node.MaxEntries)
		}
		for j := range list {
			v.entry(fmt.Sprintf("%s[%d]", place, j), &list[j])
		}
	}
	if s.Exempt != nil {
		v.client("exempt", s.Exempt)
		if len(s.Exempt.Networks) == 0 {
			v.fault("exempt", "has no networks: name those whose clients are admitted, as in {hops: 1, networks: {staff: [192.0.2.0/24]}}")
		}
	}
	if s.Cost != nil {
		v.header("cost.header", s.Cost.Header)
		if s.Cost.Max > maxCost {
			v.fault("cost.max", "%d is out of range: 1 to %d", s.Cost.Max, maxCost)
		}
	}
	v.answers(&s.Answers)
	return errors.Join(v.faults...)
}

func (v *validator) answers(a *Answers) {
	switch a.OnNoMatch {
	case "", NoMatchAllow, NoMatchDeny:
	default:
		v.fault("on_no_match", "%q is neither allow nor deny", a.OnNoMatch)
	}
	switch a.Action {
	case "", ActionDeny, ActionChallenge, ActionLog:
	default:
		v.fault("action", "%q is none of deny, challenge, log", a.Action)
	}
	v.status("deny_status", a.DenyStatus)
	v.status("failure_status", a.FailureStatus)
	if a.DenyStatus != 0 && (a.Action == ActionChallenge || a.Action == ActionLog) {
		v.fault("deny_status", "has no effect with action: %s; leave it out", a.Action)
	}
	if a.ChallengeURL == "" {
		return
	}
	if a.Action != ActionChallenge {
		v.fault("challenge_url", "has no effect without action: challenge")
	}
	host, _, ok := splitURI(a.ChallengeURL)
	path := strings.HasPrefix(a.ChallengeURL, "/") && !strings.HasPrefix(a.ChallengeURL, "//")
	web := host != "" && (strings.HasPrefix(a.ChallengeURL, "https://") || strings.HasPrefix(a.ChallengeURL, "http://"))
	if !ok || !path && !web || strings.ContainsFunc(a.ChallengeURL, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		v.fault("challenge_url", "%q is neither a URL such as https://example.com/challenge nor a path such as /challenge",
			a.ChallengeURL)
	}
}

func (v *validator) status(place string, status int) {
	if status != 0 && (status < 400 || status > 599) {
		v.fault(place, "%d is out of range: 400 to 599", status)
	}
}

// text checks a text that becomes part of a call.
func (v *validator) text(place, text, example string) {
	switch {
	case text == "":
		v.fault(place, "is missing: give a text such as %s", example)
	case len(text) > node.MaxTextBytes:
		v.fault(place, "is %d bytes long, at most %d", len(text), node.MaxTextBytes)
	case !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0:
		v.fault(place, "has a NUL or is not UTF-8")
	}
}

func (v *validator) header(place, name string) {
	switch {
	case !token(name):
		v.fault(place, "%q is not the name of a header: letters, digits and dashes, such as X-Api-Key", name)
	case strings.EqualFold(name, "Host"):
		v.fault(place, "Host is a source of its own: use host: true")
	case strings.EqualFold(name, "Cookie"):
		v.fault(place, "Cookie holds several values: use cookie: NAME")
	}
}

func (v *validator) entry(place string, e *Entry) {
	v.text(place+".key", e.Key, "ip")
	v.source(place, &e.Source)
	if c := e.WhenMissing.Constant; c != "" {
		v.text(place+".when_missing.constant", c, "none")
	}
}

// sources are the names of all sources, for messages.
const sources = "header, client, method, template, host, cookie, claim, query, constant, join"

// given returns the names of the sources that are set.
func (s *Source) given() []string {
	var names []string
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"header", s.Header != ""},
		{"client", s.Client != nil},
		{"method", s.Method},
		{"template", len(s.Template) > 0},
		{"host", s.Host},
		{"cookie", s.Cookie != ""},
		{"claim", s.Claim != nil},
		{"query", s.Query != ""},
		{"constant", s.Constant != ""},
		{"join", len(s.Join) > 0},
	} {
		if f.set {
			names = append(names, f.name)
		}
	}
	return names
}

func (v *validator) source(place string, s *Source) {
	switch given := s.given(); len(given) {
	case 0:
		v.fault(place, "has no source: give one of %s", sources)
		return
	case 1:
	default:
		v.fault(place, "has several sources (%s): give one, or join them: join: [{%s: ...}, ...]",
			strings.Join(given, ", "), given[0])
		return
	}
	switch {
	case s.Header != "":
		v.header(place+".header", s.Header)
	case s.Client != nil:
		v.client(place+".client", s.Client)
	case len(s.Template) > 0:
		v.templates(place+".template", s.Template)
	case s.Cookie != "" && !token(s.Cookie):
		v.fault(place+".cookie", "%q is not the name of a cookie", s.Cookie)
	case s.Claim != nil:
		v.text(place+".claim.name", s.Claim.Name, "sub")
		if s.Claim.Header != "" {
			v.header(place+".claim.header", s.Claim.Header)
		}
	case s.Query != "":
		v.text(place+".query", s.Query, "user")
	case s.Constant != "":
		v.text(place+".constant", s.Constant, "all")
	case len(s.Join) > 0:
		v.join(place+".join", s.Join)
	}
}

func (v *validator) join(place string, parts []Source) {
	if n := len(parts); n < 2 || n > maxJoined {
		v.fault(place, "%d sources: give 2 to %d", n, maxJoined)
	}
	for i := range parts {
		part := fmt.Sprintf("%s[%d]", place, i)
		if len(parts[i].Join) > 0 {
			v.fault(part, "is a join in a join: give its sources here")
			continue
		}
		v.source(part, &parts[i])
	}
}

func (v *validator) templates(place string, texts []string) {
	if len(texts) > maxTemplates {
		v.fault(place, "%d templates, at most %d", len(texts), maxTemplates)
	}
	taken := make(map[string]bool)
	for i, text := range texts {
		at := fmt.Sprintf("%s[%d]", place, i)
		v.text(at, text, "/v1/*")
		if problem := templateProblem(text); problem != "" {
			v.fault(at, "%q %s", text, problem)
		}
		if taken[text] {
			v.fault(at, "%q is given twice", text)
		}
		taken[text] = true
	}
}

func (v *validator) client(place string, c *Client) {
	for _, n := range []struct {
		name        string
		value, most int
	}{{"hops", c.Hops, maxHops}, {"v4", c.V4, 32}, {"v6", c.V6, 128}} {
		if n.value < 0 || n.value > n.most {
			v.fault(place+"."+n.name, "%d is out of range: 1 to %d", n.value, n.most)
		}
	}
	if c.Hops != 0 && len(c.Trusted) > 0 {
		v.fault(place, "has hops and trusted: give the number of your gateways or their networks")
	}
	for i, text := range c.Trusted {
		if _, ok := parsePrefix(text); !ok {
			v.fault(fmt.Sprintf("%s.trusted[%d]", place, i), "%q is no network such as 10.0.0.0/8 or 2001:db8::/32", text)
		}
	}
	if c.Header != "" {
		v.header(place+".header", c.Header)
	}
	v.networks(place, c)
}

func (v *validator) networks(place string, c *Client) {
	for _, name := range slices.Sorted(maps.Keys(c.Networks)) {
		at := place + ".networks." + name
		v.text(at, name, "staff")
		if len(c.Networks[name]) == 0 {
			v.fault(at, "is empty: list networks such as 192.0.2.0/24")
		}
		for i, text := range c.Networks[name] {
			if _, ok := parsePrefix(text); !ok {
				v.fault(fmt.Sprintf("%s[%d]", at, i), "%q is no network such as 10.0.0.0/8 or 2001:db8::/32", text)
			}
		}
	}
	if len(c.Networks) > 0 && (c.V4 != 0 || c.V6 != 0) {
		v.fault(place, "has networks, and bits that count: the value is the name of the network; leave v4 and v6 out")
	}
}
