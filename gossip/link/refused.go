package link

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Why a stream is refused.
const (
	ReasonVersion     = "version"     // another version of the protocol
	ReasonSecret      = "secret"      // another cluster secret
	ReasonRegion      = "region"      // another region than was dialed
	ReasonShards      = "shards"      // another number of shards
	ReasonSelf        = "self"        // this daemon itself
	ReasonHello       = "hello"       // a hello that is malformed, or none
	ReasonPenalty     = "penalty"     // it sent rubbish and has to wait
	ReasonFull        = "full"        // no room for another stream
	ReasonTLS         = "tls"         // no TLS, or a certificate that is not trusted
	ReasonConnections = "connections" // no room for another connection
)

// Why a stream is dropped. A Handler has reasons of its own, too.
const (
	ReasonSize    = "size"    // a message beyond the bound
	ReasonRate    = "rate"    // more than a peer may send
	ReasonItem    = "item"    // not what belongs on a stream at this point
	ReasonPacked  = "packed"  // a packed frame that cannot be unpacked
	ReasonMembers = "members" // a list of members that is not valid
	ReasonPanic   = "panic"   // the handler panicked over it
)

// reasonReplaced ends a stream whose address has another incarnation now.
const reasonReplaced = "replaced"

// reasonOther is a reason of a peer that is unknown here.
const reasonOther = "other"

// fingerprintSize is the size of Config.Fingerprint, in bytes.
const fingerprintSize = 16

// maxText bounds what is kept of the words of a peer, in bytes.
const maxText = 512

// reasonTrailer is the trailer of a status that holds the reason.
const reasonTrailer = "rld-reason"

// Refused is the refusal of a stream.
type Refused struct {
	Reason string // one of those above
	Text   string // who refuses whom, why, and what would be right
	There  bool   // the peer has refused this daemon
	who    string // says who is refused, "" when nobody knows
}

// Error returns the text.
func (r *Refused) Error() string { return r.Text }

// ProtocolError is what no peer may send. A Handler that returns it has the stream
// dropped, and the peer counted, named and kept out for a while.
type ProtocolError struct {
	Reason string // a short word, for a metric
	Err    error  // what is wrong
}

// Error names the reason and what is wrong.
func (r *ProtocolError) Error() string { return fmt.Sprintf("rubbish (%s): %v", r.Reason, r.Err) }

// Unwrap returns what is wrong.
func (r *ProtocolError) Unwrap() error { return r.Err }

func protocolErrors(reason, format string, args ...any) error {
	return &ProtocolError{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// refuse returns nil when own accepts the greeting of a peer, or why not. An
// error is what decodeGreeting said. Who is the peer's address; want is the
// region it should be in, "" for any.
func refuse(own Hello, fingerprint [fingerprintSize]byte, g *greeting, malformed error, who, want string) *Refused {
	known := ""
	if malformed == nil && g.protocol == Version {
		known = g.hello.String()
		who = known
	}
	no := func(reason, format string, args ...any) *Refused {
		text := fmt.Sprintf("%s refuses %s: ", own, who) + fmt.Sprintf(format, args...)
		return &Refused{Reason: reason, Text: text, who: known}
	}
	theirs := &g.hello.Member
	switch {
	case malformed != nil:
		return no(ReasonHello, "%v", malformed)
	case g.protocol < Version:
		return no(ReasonVersion, "it speaks version %d of the protocol, want %d: run a newer rld there", g.protocol, Version)
	case g.protocol > Version:
		return no(ReasonVersion, "it speaks version %d of the protocol, want %d: run the same rld on both", g.protocol, Version)
	case subtle.ConstantTimeCompare(g.fingerprint, fingerprint[:]) != 1:
		return no(ReasonSecret, "its cluster secret is another: give all daemons the same cluster.secret_file")
	case theirs.ID == own.Member.ID:
		return no(ReasonSelf, "it is the daemon itself: its own address is not needed among its peers")
	case g.hello.Shards != own.Shards:
		return no(ReasonShards, "it splits keys into %d shards, want %d: give all daemons the same max_keys and shards",
			g.hello.Shards, own.Shards)
	case want != "" && theirs.Region != want:
		return no(ReasonRegion, "it is in region %q, and its address is one of region %q: correct the peers of %q",
			theirs.Region, want, want)
	}
	return nil
}

// statusOf returns how the end of an accepted stream is told to its dialer:
// a status, and the trailer that goes with it.
func statusOf(err error) (metadata.MD, error) {
	reason, code := "", codes.Unavailable
	var refused *Refused
	var bad *ProtocolError
	switch {
	case errors.As(err, &refused):
		reason = refused.Reason
		if reason != ReasonPenalty && reason != ReasonFull {
			code = codes.FailedPrecondition
		}
	case errors.As(err, &bad):
		reason, code = bad.Reason, codes.FailedPrecondition
	case errors.Is(err, errReplaced):
		reason = reasonReplaced
	default:
		return nil, status.Error(code, err.Error())
	}
	return metadata.Pairs(reasonTrailer, reason), status.Error(code, err.Error())
}

// noReason is the trailer of a stream from its beginning, for when gRPC ends
// the stream by itself.
func noReason() metadata.MD { return metadata.Pairs(reasonTrailer, "") }

// turnedAway returns what a peer's status means: a *Refused when it gives a
// reason, else its words. Both are bounded, as they come from a peer.
func turnedAway(err error, trailer metadata.MD) error {
	text := printable(status.Convert(err).Message())
	reason := ""
	if all := trailer.Get(reasonTrailer); len(all) > 0 {
		reason = all[len(all)-1]
	}
	switch reason {
	case "":
		if len(trailer.Get(reasonTrailer)) == 0 || status.Code(err) != codes.ResourceExhausted {
			return errors.New(text)
		}
		reason = ReasonSize
	case ReasonVersion, ReasonSecret, ReasonRegion, ReasonShards, ReasonSelf, ReasonHello, ReasonPenalty,
		ReasonFull, ReasonSize, ReasonRate, ReasonItem, ReasonPacked, ReasonPanic, reasonReplaced:
	default:
		reason = reasonOther
	}
	return &Refused{Reason: reason, Text: text, There: true}
}

// printable returns the first bytes of text, fit to be shown.
func printable(text string) string {
	if len(text) > maxText {
		text = text[:maxText] + "..."
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "?")
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}
