package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/georld/rld/cmd/rld/caller"
	"github.com/georld/rld/config"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/server"
)

// checkOptions holds the flags of `rld check`.
type checkOptions struct {
	addr        string
	timeout     time.Duration
	domain      string
	descriptors []string
	hits        hits
	peek        bool
	form        formFlag
	credentials caller.Credentials
}

func newCheck(p process) *cobra.Command {
	o := checkOptions{hits: 1}
	cmd := &cobra.Command{
		Use:   "check --domain DOMAIN KEY=VALUE...",
		Short: "Ask a running daemon to decide a request",
		Long: "Ask a running daemon to decide a request, as a gateway does, and charge it. The\n" +
			"KEY=VALUE arguments are one descriptor, in their order; each --descriptor adds another,\n" +
			"and all are admitted or none is. The exit code is 0 when the request is admitted, 1 when\n" +
			"it is denied, 2 when there is no answer, also for wrong usage.",
		Example: "  rld check --domain edge tier=free user_id=abc endpoint=/login\n" +
			"  rld check --domain edge --descriptor org=acme --descriptor org=acme,key=k1 --hits 5\n" +
			"  rld check --domain edge --peek -o json org=acme",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			question, err := o.question(args)
			if err == nil {
				err = o.check()
			}
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), p, question)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.addr, "addr", config.Default().GRPC.Addr,
		"gRPC address of the daemon: host:port or unix:PATH")
	f.DurationVar(&o.timeout, "timeout", 2*time.Second, "how long to wait for the answer")
	o.addFlags(cmd, "hits that each descriptor is charged")
	f.BoolVar(&o.peek, "peek", false, "charge nothing")
	o.credentials.AddFlags(f)
	addFormFlag(f, &o.form, formTable, "answer")
	return cmd
}

// addFlags adds the flags of the question.
func (o *checkOptions) addFlags(cmd *cobra.Command, hits string) {
	f := cmd.Flags()
	f.StringVar(&o.domain, "domain", "", "domain of the request (required)")
	f.StringArrayVar(&o.descriptors, "descriptor", nil, "one more descriptor, KEY=VALUE,KEY=VALUE")
	f.Var(&o.hits, "hits", hits)
}

// check checks the flags beside the question. Its error is one of usage.
func (o *checkOptions) check() error {
	switch {
	case o.hits == 0:
		return errors.New("--hits 0 asks for nothing: use --peek to ask without a charge")
	case o.timeout <= 0:
		return fmt.Errorf("--timeout %s leaves no time: use 2s", o.timeout)
	case !isAddr(o.addr):
		return fmt.Errorf("%q is neither host:port nor unix:PATH", o.addr)
	}
	return o.credentials.Check()
}

// question makes a request of the arguments. Its error is one of usage.
func (o *checkOptions) question(args []string) (*rldv1.CheckRequest, error) {
	if o.domain == "" {
		return nil, errors.New("no domain: use --domain DOMAIN, as in the file of limits")
	}
	if !utf8.ValidString(o.domain) {
		return nil, fmt.Errorf("the domain %+q is not UTF-8", o.domain)
	}
	q := &rldv1.CheckRequest{Domain: o.domain, Hits: uint64(o.hits), Peek: o.peek}
	all := make([][]string, 0, len(o.descriptors)+1)
	if len(args) > 0 {
		all = append(all, args)
	}
	for _, d := range o.descriptors {
		all = append(all, strings.Split(d, ","))
	}
	if len(all) == 0 {
		return nil, errors.New("nothing to ask about: use KEY=VALUE, as in the file of limits")
	}
	for _, entries := range all {
		d := &rldv1.Descriptor{}
		for _, text := range entries {
			e, err := newEntry(text)
			if err != nil {
				return nil, err
			}
			d.Entries = append(d.Entries, e)
		}
		q.Descriptors = append(q.Descriptors, d)
	}
	return q, nil
}

// newEntry makes an entry of KEY=VALUE.
func newEntry(text string) (*rldv1.Entry, error) {
	key, value, ok := strings.Cut(text, "=")
	switch {
	case !ok || key == "":
		return nil, fmt.Errorf("%q is no KEY=VALUE", text)
	case !utf8.ValidString(key):
		return nil, fmt.Errorf("the key %+q is not UTF-8", key)
	case !utf8.ValidString(value):
		return nil, fmt.Errorf("the value of %q is not UTF-8", key)
	}
	return &rldv1.Entry{Key: key, Value: value}, nil
}

// isAddr reports whether --addr is one of the forms it takes.
func isAddr(addr string) bool {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return path != ""
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// run asks and prints the answer.
func (o *checkOptions) run(ctx context.Context, p process, q *rldv1.CheckRequest) error {
	answer, err := o.ask(ctx, q)
	if err != nil {
		return exitWith(exitNoneOf, err)
	}
	write := writeTable
	if o.form.json {
		write = writeJSON
	}
	if err := write(p.out, q, answer); err != nil {
		return exitWith(exitNoneOf, err)
	}
	switch answer.GetCode() {
	case rldv1.Code_ALLOWED:
		return nil
	case rldv1.Code_DENIED:
		return &exitError{code: exitNo}
	}
	return exitWith(exitNoneOf, fmt.Errorf("the answer of %s has no verdict", o.addr))
}

func (o *checkOptions) ask(ctx context.Context, q *rldv1.CheckRequest) (*rldv1.CheckResponse, error) {
	options, err := o.credentials.DialOptions()
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(o.addr, options...)
	if err != nil {
		return nil, fmt.Errorf("%q is no address of a daemon: use host:port or unix:PATH: %w", o.addr, err)
	}
	defer conn.Close() // one question, and it is answered
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	answer, err := rldv1.NewRateLimiterClient(conn).Check(ctx, q)
	if err != nil {
		return nil, o.explain(err)
	}
	if len(answer.GetStatuses()) != len(q.GetDescriptors()) {
		return nil, fmt.Errorf("%s answered %d of %d descriptors: is it another version of rld?",
			o.addr, len(answer.GetStatuses()), len(q.GetDescriptors()))
	}
	return answer, nil
}

// explain returns the cause of a missing answer and the next step, in one line.
func (o *checkOptions) explain(err error) error {
	s := status.Convert(err)
	switch s.Code() {
	case codes.Unavailable:
		if s.Message() == server.ErrWitness.Error() {
			return fmt.Errorf("the daemon at %s answers no calls: %s", o.addr, s.Message())
		}
		return fmt.Errorf("cannot reach a daemon at %s: start one with rld serve, "+
			"or set its address with --addr (%s)", o.addr, innermost(s.Message()))
	case codes.DeadlineExceeded:
		return fmt.Errorf("no answer from %s in %s: is it a daemon's gRPC address?", o.addr, o.timeout)
	case codes.Unimplemented:
		return fmt.Errorf("%s speaks gRPC and is no rld daemon: set its address with --addr", o.addr)
	case codes.InvalidArgument:
		return fmt.Errorf("the daemon cannot read the question: %s", s.Message())
	case codes.Unauthenticated, codes.PermissionDenied:
		return fmt.Errorf("the daemon at %s refuses this caller: %s (%s)", o.addr, s.Message(), s.Code())
	}
	return fmt.Errorf("the daemon at %s failed: %s (%s)", o.addr, s.Message(), s.Code())
}

// innermost returns the last cause in gRPC's description of a failed
// connection: `connection error: desc = "transport: ... connection refused"`.
func innermost(message string) string {
	if i := strings.LastIndex(message, ": "); i >= 0 {
		message = message[i+2:]
	}
	return strings.Trim(message, `"`)
}
