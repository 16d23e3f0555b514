package gateway

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// claim reads a claim of a JWT. It verifies neither signature nor times, which
// is the part of the gateway.
type claim struct{ name, header string }

func newClaim(c *Claim) claim {
	header := c.Header
	if header == "" {
		header = "Authorization"
	}
	return claim{c.Name, canonical(header)}
}

// read returns the claim as text. It is missing without a token, and where
// the header has another scheme than Bearer.
func (c claim) read(r *Request) (string, Reason) {
	token, fault := r.one(c.header)
	switch {
	case fault != noFault:
		return "", fault
	case len(token) > maxToken:
		return "", TooLong
	}
	if scheme, rest, ok := strings.Cut(token, " "); ok {
		if !strings.EqualFold(scheme, "Bearer") {
			return "", noFault
		}
		token = strings.TrimLeft(rest, " ")
	}
	if token == "" {
		return "", noFault
	}
	_, rest, _ := strings.Cut(token, ".")
	payload, signature, ok := strings.Cut(rest, ".")
	if !ok || strings.IndexByte(signature, '.') >= 0 {
		return "", BadToken
	}
	data, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return "", BadToken
	}
	var claims map[string]json.RawMessage
	if err := json.Unmarshal(data, &claims); err != nil {
		return "", BadToken
	}
	return claimText(claims[c.name])
}

// claimText returns a text, a number or a boolean. A claim that is absent or
// null is missing.
func claimText(raw json.RawMessage) (string, Reason) {
	if len(raw) == 0 {
		return "", noFault
	}
	switch raw[0] {
	case 'n':
		return "", noFault
	case '{', '[':
		return "", BadToken
	case '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", BadToken
		}
		return text, noFault
	}
	return string(raw), noFault
}
