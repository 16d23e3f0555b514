package caller

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// Credentials are the files that a caller shows and trusts.
type Credentials struct {
	// CA holds the authorities that sign the certificate of the daemon; "" is
	// plain text. Cert and Key are the caller's own, "" for none.
	CA, Cert, Key string
	// Token is a file with the token of the caller, "" for none.
	Token string
}

// AddFlags adds the flags of the credentials.
func (c *Credentials) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&c.CA, "tls-ca", "", "PEM file with the authority of the daemon's certificate; calls with TLS")
	f.StringVar(&c.Cert, "tls-cert", "", "PEM file with a certificate of the caller")
	f.StringVar(&c.Key, "tls-key", "", "PEM file with its private key")
	f.StringVar(&c.Token, "token-file", "", "file with the token of the caller")
}

// Check returns the fault of flags that do not fit each other.
func (c *Credentials) Check() error {
	switch {
	case (c.Cert == "") != (c.Key == ""):
		return errors.New("--tls-cert and --tls-key need each other")
	case c.Cert != "" && c.CA == "":
		return errors.New("--tls-cert needs --tls-ca")
	}
	return nil
}

// DialOptions reads the files.
func (c *Credentials) DialOptions() ([]grpc.DialOption, error) {
	transport := insecure.NewCredentials()
	config, err := c.TLS()
	if err != nil {
		return nil, err
	}
	if config != nil {
		transport = credentials.NewTLS(config)
	}
	out := []grpc.DialOption{grpc.WithTransportCredentials(transport)}
	token, err := c.Bearer()
	if err != nil || token == "" {
		return out, err
	}
	return append(out, grpc.WithPerRPCCredentials(bearer(token))), nil
}

// Bearer returns the token of the file, "" without one.
func (c *Credentials) Bearer() (string, error) {
	if c.Token == "" {
		return "", nil
	}
	token, err := os.ReadFile(c.Token)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	text := string(bytes.TrimSpace(token))
	if text == "" || len(text) > 1<<10 || bytes.ContainsAny([]byte(text), " \r\n\t\x00") {
		return "", fmt.Errorf("--token-file: %s does not hold one token", c.Token)
	}
	return text, nil
}

// TLS reads the files of TLS. It returns nil for plain text.
func (c *Credentials) TLS() (*tls.Config, error) {
	if c.CA == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, fmt.Errorf("--tls-ca: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--tls-ca: %s holds no certificate in PEM", c.CA)
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// bearer is a token as the metadata of calls. It goes over plain text, too: the
// daemon may be on this machine.
type bearer string

// GetRequestMetadata returns the field of the token.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity reports that it does not.
func (bearer) RequireTransportSecurity() bool { return false }
