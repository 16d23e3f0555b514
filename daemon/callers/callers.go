// Package callers holds the tokens and the TLS of the listeners for callers,
// and reloads their files.
package callers

import (
	"context"
	"crypto/tls"
	"log"
	"log/slog"
	"slices"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/georld/rld/config"
	"github.com/georld/rld/daemon/follow"
	"github.com/georld/rld/server/auth"
	"github.com/georld/rld/telemetry"
)

// Callers are the credentials of the listeners of a daemon. It is safe for
// concurrent use.
type Callers struct {
	log               *slog.Logger
	tokens, operators *tokensFile // nil without a file
	grpc, http, admin *listener   // nil for plain text
}

// Open reads the files that the settings name. The error names the invalid
// one.
func Open(c *config.Config, log *slog.Logger) (*Callers, error) {
	all := &Callers{log: log}
	var err error
	if c.Auth.TokensFile != "" {
		if all.tokens, err = openTokens(config.OfCallers, c.Auth.TokensFile, log); err != nil {
			return nil, err
		}
	}
	if c.Admin.TokensFile != "" {
		if all.operators, err = openTokens(config.OfOperators, c.Admin.TokensFile, log); err != nil {
			return nil, err
		}
	}
	tokens := all.tokens != nil
	if all.grpc, err = newListener("grpc", c.GRPC.TLS, tokens, log); err != nil {
		return nil, err
	}
	if all.http, err = newListener("http", c.HTTP.TLS, tokens, log); err != nil {
		return nil, err
	}
	if all.admin, err = newListener("admin", c.Admin.TLS.Server(), all.operators != nil, log); err != nil {
		return nil, err
	}
	return all, nil
}

// files returns the followed files of tokens.
func (c *Callers) files() []*tokensFile {
	return slices.DeleteFunc([]*tokensFile{c.tokens, c.operators}, func(f *tokensFile) bool { return f == nil })
}

// listeners returns those with TLS.
func (c *Callers) listeners() []*listener {
	return slices.DeleteFunc([]*listener{c.grpc, c.http, c.admin}, func(l *listener) bool { return l == nil })
}

// Authorizer returns that of the tokens, nil where none are required.
func (c *Callers) Authorizer() *auth.Authorizer {
	if c.tokens == nil {
		return nil
	}
	return c.tokens.authorizer
}

// Operators returns the tokens of operators, nil where there are none.
func (c *Callers) Operators() *auth.Authorizer {
	if c.operators == nil {
		return nil
	}
	return c.operators.authorizer
}

// GRPC returns the credentials of the gRPC server, nil for plain text. Its unix
// socket stays in plain text.
func (c *Callers) GRPC() credentials.TransportCredentials {
	if c.grpc == nil {
		return nil
	}
	return grpcCredentials{credentials.NewTLS(c.grpc.config("h2")), c.grpc}
}

// HTTP returns the configuration of TLS on HTTP, nil for plain text.
func (c *Callers) HTTP() *tls.Config {
	if c.http == nil {
		return nil
	}
	return c.http.config("h2", "http/1.1")
}

// Admin returns the configuration of TLS on the admin listener, nil for plain
// text.
func (c *Callers) Admin() *tls.Config {
	if c.admin == nil {
		return nil
	}
	return c.admin.config("h2", "http/1.1")
}

// HTTPLog returns the logger of the errors of the HTTP server. It counts failed
// handshakes, and names them once in a while. AdminLog is that of the admin
// listener.
func (c *Callers) HTTPLog() *log.Logger  { return log.New(&serverLog{c.http, c.log}, "", 0) }
func (c *Callers) AdminLog() *log.Logger { return log.New(&serverLog{c.admin, c.log}, "", 0) }

// Run follows the files until ctx ends, and reads them once every poll.
func (c *Callers) Run(ctx context.Context, poll time.Duration) {
	follow.Every(ctx, poll, func() { c.look(false) })
}

// Reload reads the files now.
func (c *Callers) Reload() { c.look(true) }

func (c *Callers) look(now bool) {
	for _, f := range c.files() {
		f.Look(now)
	}
	for _, l := range c.listeners() {
		l.store.Reload()
	}
}

// Stats returns the state for metrics.
func (c *Callers) Stats() telemetry.CallerStats {
	var s telemetry.CallerStats
	if c.tokens != nil {
		s.Tokens = c.tokens.authorizer.Stats()
		s.Stale = append(s.Stale, telemetry.StaleFile{File: "tokens", Stale: c.tokens.Fault() != nil})
	}
	if c.operators != nil {
		s.Stale = append(s.Stale, telemetry.StaleFile{File: "admin_tokens", Stale: c.operators.Fault() != nil})
	}
	for _, l := range c.listeners() {
		s.Stale = append(s.Stale, telemetry.StaleFile{File: l.name, Stale: l.store.Fault() != nil})
		s.Listeners = append(s.Listeners, telemetry.ListenerStats{
			Listener: l.name, CertificateExpires: l.store.Current().NotAfter, Failed: l.failures(),
		})
	}
	return s
}
