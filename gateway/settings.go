package gateway

import "encoding/json"

// Settings is one mapping from the requests at a gateway to a domain and
// descriptors, as the settings file has it. Compile makes a Mapping of it.
type Settings struct {
	// Domain of every call.
	Domain string `json:"domain"`
	// Target is where path, query, method and host of a request come from. ""
	// is TargetHeaders.
	Target Target `json:"target,omitempty"`
	// Descriptors of every call, each its entries in order.
	Descriptors [][]Entry `json:"descriptors"`
	// Exempt are the clients whose requests are admitted and not counted: those
	// in one of its Networks. Nil is none.
	Exempt *Client `json:"exempt,omitempty"`
	// Cost is where the hits of a call come from. Nil is 1 hit a call.
	Cost *Cost `json:"cost,omitempty"`
	Answers
}

// Answers is how the requests of a mapping are answered.
type Answers struct {
	// OnNoMatch is for requests that no rule matches. "" is NoMatchAllow.
	OnNoMatch NoMatch `json:"on_no_match,omitempty"`
	// Action is what a denial does. "" is ActionDeny.
	Action Action `json:"action,omitempty"`
	// ChallengeURL is where ActionChallenge redirects to, with status 302.
	// Without it the status is 401.
	ChallengeURL string `json:"challenge_url,omitempty"`
	// DenyStatus is the status of a denial by ActionDeny, 400 to 599. 0 is 429.
	DenyStatus int `json:"deny_status,omitempty"`
	// FailureStatus is the status of a request that rld cannot decide, 400 to
	// 599. 0 is 503.
	FailureStatus int `json:"failure_status,omitempty"`
}

// Target is where path, query, method and host of a request come from.
type Target string

// The values of Target.
const (
	// TargetHeaders: the headers by which gateways describe a request.
	TargetHeaders Target = "headers"
	// TargetPath: the question itself. It has the method, the host and the
	// query of the request, and its path behind the name of the mapping.
	TargetPath Target = "path"
)

// NoMatch is what happens to requests that no rule matches.
type NoMatch string

// The values of NoMatch.
const (
	NoMatchAllow NoMatch = "allow"
	NoMatchDeny  NoMatch = "deny"
)

// Action is what a denial does.
type Action string

// The actions.
const (
	// ActionDeny answers DenyStatus.
	ActionDeny Action = "deny"
	// ActionChallenge asks the client for more: it answers 302 or 401.
	ActionChallenge Action = "challenge"
	// ActionLog answers 200 to everything, also to faulty requests.
	ActionLog Action = "log"
)

// Cost is the header that holds the hits of a call, a whole number from 1 to
// Max. A call without it costs 1.
type Cost struct {
	Header string `json:"header"`
	// Max is 1 to 1,000,000. 0 is 1,000.
	Max uint64 `json:"max,omitempty"`
}

// Entry is one entry of a descriptor and where its value comes from.
type Entry struct {
	Key string `json:"key"`
	Source
	// WhenMissing is what happens without a value. An empty value is missing.
	WhenMissing WhenMissing `json:"when_missing,omitzero"`
}

// Source is where a value comes from: exactly one field but Hash is set.
type Source struct {
	// Header is the header that holds the value.
	Header string `json:"header,omitempty"`
	// Client is the address of the client.
	Client *Client `json:"client,omitempty"`
	// Method is the method of the request.
	Method bool `json:"method,omitempty"`
	// Template are path templates such as /v1/* and /users/{id}: the value is
	// the first one that matches the path.
	Template []string `json:"template,omitempty"`
	// Host is the host of the request in lower case, without its port.
	Host bool `json:"host,omitempty"`
	// Cookie is the name of a cookie.
	Cookie string `json:"cookie,omitempty"`
	// Claim is a claim of a JWT that the gateway has verified.
	Claim *Claim `json:"claim,omitempty"`
	// Query is the name of a query parameter of the request.
	Query string `json:"query,omitempty"`
	// Constant is the value itself.
	Constant string `json:"constant,omitempty"`
	// Join makes one value of several. It is missing if one of them is.
	Join []Source `json:"join,omitempty"`

	// Hash replaces the value by the first 128 bits of its SHA-256, in hex.
	Hash bool `json:"hash,omitempty"`
}

// Client is how to find the address of the client in the list that gateways
// append to. Exactly one of Hops and Trusted counts.
type Client struct {
	// Hops is the number of gateways in front, 1 to 16: the address is the
	// Hops-th from the end of the list. 0 is 1 where Trusted is empty.
	Hops int `json:"hops,omitempty"`
	// Trusted are the networks of the gateways: the address is the last one of
	// the list outside them.
	Trusted []string `json:"trusted,omitempty"`
	// Header holds the list. "" is X-Forwarded-For. Forwarded is read as RFC
	// 7239 defines it.
	Header string `json:"header,omitempty"`
	// V4 and V6 are the bits of an address that count, 1 to 32 and 1 to 128.
	// 0 is 32 and 64.
	V4 int `json:"v4,omitempty"`
	V6 int `json:"v6,omitempty"`
	// Networks are named lists of prefixes such as 10.0.0.0/8. With them the
	// value is the name of the most specific one that the address is in; it is
	// missing for an address in none.
	Networks map[string][]string `json:"networks,omitempty"`
}

// Claim is a claim of a JWT. Nothing verifies the token here.
type Claim struct {
	Name string `json:"name"`
	// Header holds the token, alone or after "Bearer". "" is Authorization.
	Header string `json:"header,omitempty"`
}

// WhenMissing is what happens to an entry without a value. The zero value
// leaves it out, and a descriptor without entries likewise.
type WhenMissing struct {
	// Deny denies the request.
	Deny bool
	// Constant is the value instead, "" for none.
	Constant string
}

// MarshalJSON returns the form of the settings file.
func (w WhenMissing) MarshalJSON() ([]byte, error) {
	switch {
	case w.Constant != "":
		return json.Marshal(map[string]string{"constant": w.Constant})
	case w.Deny:
		return json.Marshal("deny")
	}
	return json.Marshal("skip")
}
