package telemetry

import (
	"time"

	"github.com/georld/rld/server/auth"
)

// CallerStats is a snapshot of the callers. A scrape reads it and does not keep
// it.
type CallerStats struct {
	// Tokens are the counts of tokens, whose number is bounded. Empty where
	// none are required.
	Tokens auth.Stats
	// Stale are the followed files: of tokens, of membership keys, and those of
	// listeners for certificates.
	Stale []StaleFile
	// Admin are the refused requests to the admin listener.
	Admin []Failure
	// Listeners are those with TLS.
	Listeners []ListenerStats
}

// StaleFile reports whether a file is invalid on disk.
type StaleFile struct {
	File  string
	Stale bool
}

// ListenerStats is the state of TLS on a listener.
type ListenerStats struct {
	Listener           string
	CertificateExpires time.Time
	Failed             []Failure
}

// Failure counts failed handshakes.
type Failure struct {
	Reason string
	Count  uint64
}

func newCallerCollector(read func() CallerStats) *collector {
	return newCollector(callerFamilies, func(w *writer) {
		s := read()
		for _, c := range s.Tokens.Admitted {
			put(w, "token_calls_total", c.Calls, c.Token)
		}
		for _, c := range s.Tokens.Refused {
			put(w, "refused_calls_total", c.Calls, c.Reason.String(), c.Token)
		}
		for _, f := range s.Admin {
			put(w, "refused_admin_requests_total", f.Count, f.Reason)
		}
		for _, f := range s.Stale {
			stale := 0
			if f.Stale {
				stale = 1
			}
			put(w, "credentials_stale", stale, f.File)
		}
		for _, l := range s.Listeners {
			w.float("listener_certificate_expiry_timestamp_seconds", float64(l.CertificateExpires.Unix()), l.Listener)
			for _, f := range l.Failed {
				put(w, "tls_handshake_failures_total", f.Count, l.Listener, f.Reason)
			}
		}
	})
}
