package xds

import (
	"crypto/sha256"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	// maxFaultBytes bounds the text of a NACK.
	maxFaultBytes = 4_096
	// maxVersionBytes bounds the version and the nonce of a response, which
	// requests repeat.
	maxVersionBytes = 4_096
	// refusedAgain is the pause before the NACK of a response that equals the
	// last one that was refused: a server may answer a NACK with the same
	// response at once.
	refusedAgain = time.Second
	// invalidArgument is the code of gRPC for a NACK.
	invalidArgument = 3
)

// Config describes a Subscription.
type Config struct {
	// NodeID and Metadata identify the client to the server, which may have
	// other limits for each node.
	NodeID   string
	Metadata map[string]string
	// BackoffMin and BackoffMax are the shortest and the longest time between
	// the end of a stream and the next one.
	BackoffMin, BackoffMax time.Duration
	// Apply puts a set in force. After an error the former one stays, and the
	// server gets the text of the error.
	Apply func(*Set) error
	// Random draws the jitter of pauses.
	Random *rand.Rand
}

// Subscription is the client's state of the protocol, over all streams. It does
// no I/O. It is not safe for concurrent use.
type Subscription struct {
	cfg     Config
	set     *Set // in force, nil for none
	overlay *Overlay
	version string // of the last accepted response of this stream
	// refused is the last response if it was refused, with its hash and the
	// text of its NACK, and as long as that holds; nil otherwise.
	refused     *discovery.DiscoveryResponse
	refusedHash [sha256.Size]byte
	fault       string
	answers     int // of the server on this stream
	ended       int // streams that ended without an answer, in a row
}

// New returns a subscription without limits.
func New(c Config) *Subscription { return &Subscription{cfg: c} }

// Reply is what a response results in.
type Reply struct {
	// Request is the ACK or the NACK, to send after the time Wait. If another
	// response comes before, it is dropped.
	Request *discovery.DiscoveryRequest
	Wait    time.Duration
	// Set is the set that was put in force, nil if the response was refused or
	// has the limits that are in force.
	Set *Set
	// Fault is the text of the NACK, "" for an ACK.
	Fault string
}

// Begin returns the first request of a new stream. It names no version, so that
// a server that started anew, and counts its versions from the beginning again,
// sends its limits in any case.
func (s *Subscription) Begin() *discovery.DiscoveryRequest {
	s.version, s.answers = "", 0
	return s.request("")
}

// Receive handles a response.
func (s *Subscription) Receive(r *discovery.DiscoveryResponse) Reply {
	s.answers++
	hash := hashOf(r)
	if s.refused != nil && hash == s.refusedHash {
		n := s.nack(r, s.fault)
		n.Wait = s.jitter(refusedAgain)
		return n
	}
	set, err := s.accept(r)
	if err != nil {
		s.refused, s.refusedHash, s.fault = r, hash, cut(err.Error(), maxFaultBytes)
		return s.nack(r, s.fault)
	}
	s.refused, s.fault = nil, ""
	s.version = r.GetVersionInfo()
	return Reply{Request: s.request(r.GetNonce()), Set: set}
}

// accept puts the limits of a response in force. It returns nil if they are in
// force already, and no others were refused since.
func (s *Subscription) accept(r *discovery.DiscoveryResponse) (*Set, error) {
	if err := checkLengths(r); err != nil {
		return nil, err
	}
	set, err := newSet(r, s.overlay)
	if err != nil {
		return nil, err
	}
	if s.set != nil && s.set.sum == set.sum && s.refused == nil {
		return nil, nil
	}
	if err := s.cfg.Apply(set); err != nil {
		return nil, err
	}
	s.set = set
	return set, nil
}

// Restore puts the limits of a response of an earlier process in force.
func (s *Subscription) Restore(r *discovery.DiscoveryResponse) error {
	_, err := s.accept(r)
	return err
}

// Set returns the set in force, nil for none.
func (s *Subscription) Set() *Set { return s.set }

// Fault returns why the last response was refused, "" if it was accepted.
func (s *Subscription) Fault() string { return s.fault }

// Overlay makes another overlay add its fields from now on, and puts the limits
// with them in force: those that were refused last, if they load now, else
// those in force. After an error the former overlay stays.
func (s *Subscription) Overlay(o *Overlay) error {
	was := s.overlay
	s.overlay = o
	if s.refused != nil {
		if _, err := s.accept(s.refused); err == nil {
			s.refused, s.fault = nil, ""
			return nil
		}
	}
	if s.set == nil {
		return nil
	}
	set, err := newSet(s.set.Response, o)
	if err == nil {
		err = s.cfg.Apply(set)
	}
	if err != nil {
		s.overlay = was
		return err
	}
	s.set = set
	return nil
}

// End notes the end of a stream, or of an attempt to open one, and returns the
// pause before the next one.
func (s *Subscription) End() time.Duration {
	if s.answers > 0 {
		s.ended = 0
	}
	s.answers = 0
	pause := s.cfg.BackoffMin
	for range s.ended {
		if pause = 2 * pause; pause >= s.cfg.BackoffMax {
			break
		}
	}
	s.ended++
	return s.jitter(min(pause, s.cfg.BackoffMax))
}

// jitter returns between a half and one and a half of a time, so that the
// daemons of a cluster do not return to a server at the same moment.
func (s *Subscription) jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(s.cfg.Random.Int64N(int64(d)+1))
}

func (s *Subscription) nack(r *discovery.DiscoveryResponse, fault string) Reply {
	nonce := r.GetNonce()
	if len(nonce) > maxVersionBytes {
		nonce = ""
	}
	n := s.request(nonce)
	n.ErrorDetail = &status.Status{Code: invalidArgument, Message: fault}
	return Reply{Request: n, Fault: fault}
}

func (s *Subscription) request(nonce string) *discovery.DiscoveryRequest {
	fields := make(map[string]*structpb.Value, len(s.cfg.Metadata))
	for _, k := range slices.Sorted(maps.Keys(s.cfg.Metadata)) {
		fields[k] = structpb.NewStringValue(s.cfg.Metadata[k])
	}
	return &discovery.DiscoveryRequest{
		Node:          &core.Node{Id: s.cfg.NodeID, Metadata: &structpb.Struct{Fields: fields}, UserAgentName: "rld"},
		TypeUrl:       TypeURL,
		VersionInfo:   s.version,
		ResponseNonce: nonce,
	}
}
