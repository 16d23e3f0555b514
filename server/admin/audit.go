package admin

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/georld/rld/internal/loglimit"
	"github.com/georld/rld/server/admin/api"
	"github.com/georld/rld/server/auth"
)

// Audit logs commands: what changes the state of a daemon or of its cluster, or
// reveals keys. A refused request is counted, and logged once a minute for each
// reason and route. It is safe for concurrent use. A nil Audit does nothing.
type Audit struct {
	log   *slog.Logger
	lines loglimit.Limiter
	count [reasons]atomic.Uint64
}

// NewAudit returns an Audit that logs to log.
func NewAudit(log *slog.Logger) *Audit { return &Audit{log: log} }

// Refused calls f for each reason with the number of refused requests.
func (a *Audit) Refused(f func(reason string, n uint64)) {
	for r := range reasons {
		f(r.String(), a.count[r].Load())
	}
}

// entry is what the audit log has of a request.
type entry struct {
	route string
	body  any // as it was decoded, nil before
}

type entryKey struct{}

// begin returns a request with an entry.
func begin(r *http.Request, route string, need auth.Role) *http.Request {
	if need == auth.View {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), entryKey{}, &entry{route: route}))
}

func entryOf(r *http.Request) *entry {
	if e, ok := r.Context().Value(entryKey{}).(*entry); ok {
		return e
	}
	return &entry{}
}

// maxAudited bounds each text of a request in the log, in bytes.
const maxAudited = 200

// about returns what a command is about, and its reason.
func about(body any) (subject, why string, dry bool) {
	switch q := body.(type) {
	case *api.InitRequest:
		return strings.Join(q.Without, ","), "", q.DryRun
	case *api.RecoverRequest:
		return q.Daemon, q.Reason, q.DryRun
	case *api.ResumeRequest:
		return q.Region, q.Reason, q.DryRun
	case *api.ChangeRequest:
		return q.Name, q.Reason, q.DryRun
	case *api.LimitsRequest:
		return strings.Trim(strings.Join([]string{q.Domain, q.Rule, q.Key, q.Version}, " "), " "), q.Reason, q.DryRun
	}
	return "", "", false
}

// group is the group "audit" of a line: who, from where, what and why.
func group(r *http.Request, s sender, result string, more ...any) slog.Attr {
	e := entryOf(r)
	if e.route == "" {
		e.route = r.Method + " " + r.URL.Path
	}
	subject, why, dry := about(e.body)
	if s.name == "" {
		s.name = "nobody"
	}
	fields := []any{
		"who", s.name, "from", r.RemoteAddr, "role", s.role.String(), "what", clip(e.route), "about", clip(subject),
		"dry_run", dry, "result", result, "why", clip(why),
	}
	return slog.Group("audit", append(fields, more...)...)
}

func clip(s string) string {
	if len(s) > maxAudited {
		return strings.ToValidUTF8(s[:maxAudited], "") + "..."
	}
	return s
}

// done logs a command that was executed, or that failed.
func (a *Audit) done(r *http.Request, s sender, status int) {
	if a == nil {
		return
	}
	result := "done"
	if status != http.StatusOK {
		result = "failed"
	}
	a.log.Info("a command of an operator", "event", "audit", group(r, s, result, "status", status))
}

// refused counts a refused request, and logs it.
func (a *Audit) refused(r *http.Request, s sender, need auth.Role, why *refusal) {
	if a == nil {
		return
	}
	a.count[why.reason].Add(1)
	if a.lines.Due(why.reason.String()+" "+need.String(), time.Now(), time.Minute) {
		level := slog.LevelWarn
		if why.reason == reasonNoCredentials {
			level = slog.LevelInfo // rld asks so first, and then at the socket
		}
		a.log.Log(r.Context(), level, "a request to the admin listener was refused; further ones are only counted for a minute", "event", "audit",
			group(r, s, "refused", "status", why.status, "needs", need.String(), "reason", why.reason.String(), "problem", why.Error()))
	}
}

// statusWriter notes the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader notes the status.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the writer below, for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
