package link

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// The reasons why a stream is refused.
const (
	ReasonVersion     = "version"     // another version of the protocol
	ReasonSecret      = "secret"      // another cluster secret
	ReasonRegion      = "region"      // another region than was dialed, or one that is not known
	ReasonShards      = "shards"      // another number of shards
	ReasonSelf        = "self"        // this daemon itself
	ReasonHello       = "hello"       // a hello that is malformed, or none
	ReasonPenalty     = "penalty"     // it made a protocol error and has to wait
	ReasonFull        = "full"        // no room for another stream
	ReasonTLS         = "tls"         // no TLS, or a certificate that is not trusted
	ReasonConnections = "connections" // no room for another connection
	ReasonRevoked     = "revoked"     // its certificate does not count any more
)

// The reasons of protocol errors. A Handler has reasons of its own, too.
const (
	ReasonSize    = "size"    // a message beyond the bound
	ReasonRate    = "rate"    // more than a peer may send
	ReasonItem    = "item"    // an item that may not be sent on a stream at this point
	ReasonPacked  = "packed"  // a packed frame that cannot be unpacked
	ReasonMembers = "members" // a list of members that is not valid
	ReasonPanic   = "panic"   // the handler panicked
	// ReasonIdentity is a peer that does not prove its id, or that sends under
	// another one. A stream is refused for it too: the peer is not the daemon
	// that its certificate names.
	ReasonIdentity = "identity"
)

// reasonReplaced ends a stream whose address has another incarnation now.
const reasonReplaced = "replaced"

// reasonOther replaces an unknown reason of a peer.
const reasonOther = "other"

// fingerprintSize is the size of Config.Fingerprint and of its proofs in bytes.
const fingerprintSize = 16

// maxText bounds the text of a peer that is kept, in bytes.
const maxText = 512

// reasonTrailer is the trailer of a status with the reason.
const reasonTrailer = "rld-reason"

// Refused is the refusal of a stream.
type Refused struct {
	Reason string // one of those above
	Text   string // both ends, the reason and its remedy
	ByPeer bool   // the peer has refused this daemon
	peer   string // the name of the refused peer, "" when it is not known
}

// Error returns the text.
func (r *Refused) Error() string { return r.Text }

// ProtocolError is the error of a message that no peer may send. When a Handler
// returns one, the stream is dropped, and the peer is counted, logged and
// excluded for a while.
type ProtocolError struct {
	Reason string // a short word, for a metric
	Err    error  // the error itself
}

// Error returns the reason and the error.
func (r *ProtocolError) Error() string {
	return fmt.Sprintf("protocol error (%s): %v", r.Reason, r.Err)
}

// Unwrap returns the error.
func (r *ProtocolError) Unwrap() error { return r.Err }

func protocolError(reason, format string, args ...any) error {
	return &ProtocolError{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// refuse returns nil when own accepts the greeting of a peer, or else the
// refusal. malformed is the error of decodeGreeting. peer is the address of the
// peer, and want the region where it should be, "" for any.
func refuse(own Hello, secrets Fingerprints, g *greeting, malformed error, peer, want string) *Refused {
	known := ""
	if malformed == nil && g.protocol == Version {
		known = g.hello.String()
		peer = known
	}
	no := func(reason, format string, args ...any) *Refused {
		text := fmt.Sprintf("%s refuses %s: ", own, peer) + fmt.Sprintf(format, args...)
		return &Refused{Reason: reason, Text: text, peer: known}
	}
	theirs := &g.hello.Member
	switch {
	case malformed != nil:
		return no(ReasonHello, "%v", malformed)
	case g.protocol < Version:
		return no(ReasonVersion, "it speaks version %d of the protocol, want %d: run a newer rld there", g.protocol, Version)
	case g.protocol > Version:
		return no(ReasonVersion, "it speaks version %d of the protocol, want %d: run the same rld on both", g.protocol, Version)
	case len(secrets.proven(g)) == 0:
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

// admitRegion returns the refusal of a peer whose region gets no streams, nil
// for one that does.
func (h *Host) admitRegion(own, theirs Hello) *Refused {
	if h.config.Admit == nil {
		return nil
	}
	if err := h.config.Admit(theirs.Member.Region); err != nil {
		return &Refused{Reason: ReasonRegion, peer: theirs.String(), Text: fmt.Sprintf("%s refuses %s: %v", own, theirs, err)}
	}
	return nil
}

// statusOf returns the status and the trailer that report the end of an
// accepted stream to its dialer.
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

// noReason is the initial trailer of a stream, in case gRPC ends the stream by
// itself.
func noReason() metadata.MD { return metadata.Pairs(reasonTrailer, "") }

// peerError converts the status of a peer: to a *Refused when it has a reason,
// else to its text. Both are bounded.
func peerError(err error, trailer metadata.MD) error {
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
		ReasonFull, ReasonSize, ReasonRate, ReasonItem, ReasonPacked, ReasonPanic, ReasonIdentity, ReasonTLS, ReasonRevoked, reasonReplaced:
	default:
		reason = reasonOther
	}
	return &Refused{Reason: reason, Text: text, ByPeer: true}
}

// printable returns the first bytes of text in printable form.
func printable(text string) string {
	if len(text) > maxText {
		text = text[:maxText] + "..."
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
