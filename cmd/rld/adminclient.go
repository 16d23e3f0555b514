package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/cmd/rld/caller"
	"github.com/georld/rld/config"
	"github.com/georld/rld/server/admin/api"
)

// adminClient queries the admin listener that its flags select.
type adminClient struct {
	addr    string
	timeout time.Duration
	form    formFlag
	shows   caller.Credentials
	from    string // the address that sent us to the socket addr, "" for none
}

// maxAdminAnswer bounds an answer in bytes. That of a cluster of ten thousand
// daemons is half of it.
const maxAdminAnswer = 8 << 20

// adminVariable is where a daemon reads its own admin address from too.
const adminVariable = "RLD_ADMIN_ADDR"

// addFlags adds what every command has that asks the admin listener.
func (a *adminClient) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&a.addr, "admin", config.Default().Admin.Addr,
		"admin address of the daemon, `host:port` or unix:PATH ("+adminVariable+")")
	f.DurationVar(&a.timeout, "timeout", 2*time.Second, "how long to wait for the answer")
	a.shows.AddFlags(f)
	f.Lookup("token-file").Usage = "file with the token of an operator (" + tokenVariable + ")"
	f.Lookup("tls-cert").Usage = "PEM file with a certificate of an operator"
	addFormFlag(f, &a.form, formTable, "answer")
}

// tokenVariable is where commands get the path of the token from.
const tokenVariable = "RLD_TOKEN_FILE"

// socketPath returns the path of an address unix:PATH.
func socketPath(addr string) (path string, ok bool) { return strings.CutPrefix(addr, "unix:") }

// settle takes the address from the environment when no flag has it. Its
// error is one of usage.
func (a *adminClient) settle(cmd *cobra.Command, environ []string) error {
	origin := "--admin"
	if !cmd.Flags().Changed("admin") {
		for _, e := range environ {
			if v, ok := strings.CutPrefix(e, adminVariable+"="); ok && v != "" {
				a.addr, origin = v, adminVariable
			}
		}
	}
	if a.shows.Token == "" {
		for _, e := range environ {
			if v, ok := strings.CutPrefix(e, tokenVariable+"="); ok {
				a.shows.Token = v
			}
		}
	}
	if err := a.shows.Check(); err != nil {
		return err
	}
	// It becomes the host of a URL.
	path, unix := socketPath(a.addr)
	if unix && path == "" || !unix && (strings.ContainsAny(a.addr, "/?#@ ") || !isAddr(a.addr)) {
		return fmt.Errorf("%s: %q is neither host:port such as %s nor unix:PATH", origin, a.addr, config.Default().Admin.Addr)
	}
	if a.timeout <= 0 {
		return fmt.Errorf("--timeout %s leaves no time: use 2s", a.timeout)
	}
	return nil
}

// ask reads the JSON of a page into an answer; with a body it is a command. The
// error is one line and names the next step.
func (a *adminClient) ask(ctx context.Context, page url.URL, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	status, text, err := a.fetch(ctx, page, body)
	if other, ok := errors.AsType[*elsewhere](err); ok {
		here := *a
		here.addr, here.from = "unix:"+other.socket, other.from
		if status, text, err = here.fetch(ctx, page, body); err != nil {
			// The daemon is there: only its socket is not for us.
			return &refusal{fmt.Sprintf("%s (%s: %s)", other.text, other.socket, printable(innermost(err.Error())))}
		}
	}
	path := page.Path
	var failure api.Failure
	switch {
	case err != nil:
		return a.explain(err)
	case status != http.StatusOK && json.Unmarshal(text, &failure) == nil && failure.Error != "":
		return &refusal{cut(printable(failure.Error), maxRefusal)}
	case status == http.StatusNotFound:
		return fmt.Errorf("%s has no %s: it is not the admin address of a daemon, or of an older one; "+
			"set another with --admin", a.addr, path)
	case status != http.StatusOK:
		return fmt.Errorf("%s answers %d to %s: %s", a.addr, status, path, firstLine(text))
	case len(text) > maxAdminAnswer:
		return fmt.Errorf("the answer of %s to %s is larger than %d bytes, which no daemon's is", a.addr, path,
			maxAdminAnswer)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return a.notRLD(path, err)
	}
	return nil
}

// refusal is the error of a daemon that refuses a request.
type refusal struct{ text string }

func (e *refusal) Error() string { return e.text }

// noAnswer is the error of a request that was sent and had no answer in time.
type noAnswer struct{ text string }

func (e *noAnswer) Error() string { return e.text }

// elsewhere is the answer of a daemon that takes a command at its unix socket.
type elsewhere struct{ socket, from, text string }

func (e *elsewhere) Error() string { return e.text }

// transport returns the way to the daemon. A proxy of the environment is for
// the web.
func (a *adminClient) transport(page *url.URL) (*http.Transport, error) {
	t := &http.Transport{
		DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10,
		// A daemon that refuses a command does not read its body.
		ExpectContinueTimeout: a.timeout,
	}
	page.Scheme, page.Host = "http", a.addr
	if path, ok := socketPath(a.addr); ok {
		page.Host = "localhost"
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
		return t, nil
	}
	var err error
	if t.TLSClientConfig, err = a.shows.TLS(); t.TLSClientConfig != nil {
		page.Scheme = "https"
	}
	return t, err
}

// fetch returns the body of the page, at most one byte more than the bound. The
// error is an *elsewhere if the daemon takes the request at its socket only.
func (a *adminClient) fetch(ctx context.Context, page url.URL, body any) (status int, text []byte, err error) {
	transport, err := a.transport(&page)
	if err != nil {
		return 0, nil, &refusal{err.Error()}
	}
	token, err := a.shows.Bearer()
	if err != nil {
		return 0, nil, &refusal{err.Error()}
	}
	method, content := http.MethodGet, io.Reader(http.NoBody)
	header := http.Header{"Accept": {"application/json"}}
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		method, content = http.MethodPost, bytes.NewReader(data)
		header.Set("Content-Type", "application/json")
		header.Set("Expect", "100-continue")
	}
	if a.from != "" {
		header.Set(api.AddrHeader, a.from)
	}
	dialed := ""
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) { dialed = i.Conn.RemoteAddr().String() },
	})
	req, err := http.NewRequestWithContext(ctx, method, page.String(), content)
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	req.Header = header
	// A daemon takes no names but its own, since pages can bind names to it.
	req.Host = "localhost"
	client := http.Client{
		// No daemon is asked that the one named by --admin would send us to.
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(io.LimitReader(answer.Body, maxAdminAnswer+1))
	socket := answer.Header.Get(api.SocketHeader)
	if err == nil && answer.StatusCode == http.StatusUnauthorized && token == "" && a.shows.Cert == "" && filepath.IsAbs(socket) {
		var failure api.Failure
		_ = json.Unmarshal(text, &failure) // without a text there is only the path
		return 0, nil, &elsewhere{socket, dialed, cut(printable(failure.Error), maxRefusal)}
	}
	return answer.StatusCode, text, err
}

// explain returns the cause of a missing answer, and the next step.
func (a *adminClient) explain(err error) error {
	var op *net.OpError
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return &noAnswer{fmt.Sprintf("no answer from %s in %s: is it a daemon's admin address?", a.addr, a.timeout)}
	case errors.As(err, &op) && op.Op == "dial":
		return fmt.Errorf("cannot reach a daemon at %s: start one with rld serve, "+
			"or set the address of its admin listener with --admin (%s)", a.addr, printable(innermost(op.Error())))
	}
	return fmt.Errorf("%s does not answer as a daemon's admin listener does: set its address with --admin (%s)",
		a.addr, shortened(printable(err.Error())))
}

// notRLD is for an answer that is none of a daemon's.
func (a *adminClient) notRLD(path string, why error) error {
	return fmt.Errorf("the answer of %s to %s is not that of a daemon: set its address with --admin (%s)",
		a.addr, path, shortened(printable(why.Error())))
}

// firstLine returns the first line of an answer that is not JSON.
func firstLine(body []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	if line == "" {
		return "without a word"
	}
	return shortened(printable(line))
}

// maxRefusal bounds the text of a refusal in characters. Its end is the remedy.
const maxRefusal = 1_000

// shortened keeps what came from elsewhere on a line.
func shortened(s string) string { return cut(s, 200) }

// cut returns at most so many characters of a text, and marks what is missing.
func cut(s string, most int) string {
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return s
}

// indented writes v as JSON for programs.
func indented(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// query is a page of the admin listener with an answer A.
type query[A any] struct {
	path string
	// request returns the query of the page and its body for the arguments of
	// the command. A body makes it a command. The error is one of usage. Nil
	// means that there is neither.
	request func(args []string) (values url.Values, body any, err error)
	// lacks names a part that the answer of every daemon has and this one has
	// not, "" for none. Nil means that any answer is one.
	lacks func(*A) string
	// text formats the answer for people.
	text func(*A) string
	// verdict returns the error of a command whose answer was printed. Nil
	// means that there is none.
	verdict func(*A) error
	// failed is the exit code without an answer, 0 for exitNoneOf.
	failed int
}

// unless returns the text of a missing part, "" for one that is there.
func unless(has bool, part string) string {
	if has {
		return ""
	}
	return "no " + part
}

// ask returns the answer of a daemon. An error of usage is none of
// exitError.
func (q query[A]) ask(ctx context.Context, a *adminClient, args []string) (*A, error) {
	page, body := url.URL{Path: q.path}, any(nil)
	if q.request != nil {
		values, content, err := q.request(args)
		if err != nil {
			return nil, err
		}
		page.RawQuery, body = values.Encode(), content
	}
	answer := new(A)
	err := a.ask(ctx, page, body, answer)
	if err == nil && q.lacks != nil {
		if part := q.lacks(answer); part != "" {
			err = a.notRLD(q.path, errors.New(part))
		}
	}
	return answer, exitWith(cmp.Or(q.failed, exitNoneOf), err)
}

// print asks and prints the answer in the selected form.
func (q query[A]) print(ctx context.Context, w io.Writer, a *adminClient, args []string) error {
	answer, err := q.ask(ctx, a, args)
	if err != nil {
		return err
	}
	if a.form.json {
		err = indented(w, answer)
	} else {
		_, err = io.WriteString(w, q.text(answer))
	}
	if err != nil || q.verdict == nil {
		return exitWith(cmp.Or(q.failed, exitNoneOf), err)
	}
	return exitWith(exitNo, q.verdict(answer))
}

// command makes cmd ask and print the answer.
func (q query[A]) command(p process, cmd *cobra.Command) *cobra.Command {
	var a adminClient
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.settle(cmd, p.environ); err != nil {
			return err
		}
		return q.print(cmd.Context(), p.out, &a, args)
	}
	a.addFlags(cmd)
	return cmd
}
