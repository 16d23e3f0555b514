// Package secured calls and sets up the daemons of the bench that have TLS or
// tokens.
package secured

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/georld/rld/server/auth"
)

// A target with one of these prefixes is called with TLS, or with the token of
// the bench.
const (
	OverTLS   = "tls:"
	WithToken = "token:"
)

// benchToken is a token for the tests of its cost, and no secret.
const benchToken = "rld_for-the-bench-that-has-as-many-characters-as-others"

// Addr returns the address of a target.
func Addr(target string) string {
	return strings.TrimPrefix(strings.TrimPrefix(target, OverTLS), WithToken)
}

// DialOptions returns how to call a target.
func DialOptions(target string) []grpc.DialOption {
	switch {
	case strings.HasPrefix(target, OverTLS):
		// The certificate is the bench's own, and verifying it costs the client
		// once.
		c := &tls.Config{InsecureSkipVerify: true}
		return []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(c))}
	case strings.HasPrefix(target, WithToken):
		return []grpc.DialOption{
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(perCall{}),
		}
	}
	return []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
}

// perCall sends the token with each call.
type perCall struct{}

// GetRequestMetadata returns the field of the token.
func (perCall) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + benchToken}, nil
}

// RequireTransportSecurity reports that plain text will do.
func (perCall) RequireTransportSecurity() bool { return false }

// Certificate returns a certificate for 127.0.0.1 and its key, in PEM.
func Certificate() (cert, key string, err error) {
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &secret.PublicKey, secret)
	if err != nil {
		return "", "", err
	}
	text, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		return "", "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})), nil
}

// Tokens returns a tokens file with the token of the bench, for a domain.
func Tokens(domain string) string {
	sum := auth.Hash(benchToken)
	return "tokens:\n  - {name: bench, sha256: \"" + hex.EncodeToString(sum[:]) + "\", domains: [" + domain + "], rate: 1000000}\n"
}
