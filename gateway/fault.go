package gateway

import "github.com/georld/rld/internal/enum"

// Reason is why a request is faulty. Metrics carry it.
type Reason uint8

// The reasons.
const (
	noFault Reason = iota
	// Missing: an entry has no value, and when_missing denies.
	Missing
	// Repeated: a header, a cookie or a query parameter comes twice.
	Repeated
	// TooLong: a value, or the header that holds it, is longer than its bound.
	TooLong
	// BadText: a value has a NUL or is not UTF-8, and is not hashed.
	BadText
	// Conflict: two headers state different things about the request.
	Conflict
	// BadURI: the URI of the request is malformed.
	BadURI
	// BadHost: the host of the request is malformed.
	BadHost
	// BadAddress: no address stands where that of the client is expected.
	BadAddress
	// BadToken: the token is no JWT, or the claim is a list or an object.
	BadToken
	// BadCost: the cost is no whole number in its range.
	BadCost
	// NoMatchDenied: no rule matches, and on_no_match denies.
	NoMatchDenied
	// CrossSite: a page made a browser send the request, and no gateway has
	// passed it on.
	CrossSite
	// Unauthorized: the gateway may not make this call.
	Unauthorized

	reasons = iota
)

var reasonNames = []string{
	"", "missing", "repeated", "too_long", "bad_text", "conflict", "bad_uri", "bad_host", "bad_address", "bad_token",
	"bad_cost", "no_match", "cross_site", "unauthorized",
}

var reasonTexts = []string{
	"", "has no value", "is given twice", "is too long", "has a NUL or is not UTF-8",
	"is stated differently by two headers", "has no valid URI to come from", "is no valid host",
	"has no address where that of the client is expected", "has no valid token to come from",
	"is no whole number in its range", "", "", "",
}

// Reasons returns all reasons.
func Reasons() []Reason {
	var out []Reason
	for r := noFault + 1; r < reasons; r++ {
		out = append(out, r)
	}
	return out
}

// String returns the name for metrics, "" for none.
func (r Reason) String() string { return enum.Name(r, reasonNames...) }

// Fault is the error of a request that must not pass. It repeats nothing that
// the client sent.
type Fault struct {
	Reason Reason
	// Of is the key of the entry at fault, or "cost".
	Of string
}

// Error names the key and the fault.
func (f *Fault) Error() string { return f.Of + " " + enum.Name(f.Reason, reasonTexts...) }

// SettingFault is one fault of Settings.
type SettingFault struct {
	// Place is relative to the mapping: "descriptors[0][1].client.hops".
	Place string
	// Problem names the fault and a correct form.
	Problem string
}

// Error returns the place and the problem.
func (f *SettingFault) Error() string { return f.Place + ": " + f.Problem }
