// Package bench is the command rld bench: load on a running daemon, or on a
// gateway in front of it, and how long its answers take.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/cmd/rld/caller"
	"github.com/georld/rld/internal/load"
)

// The protocols of the calls.
const (
	protocolRLS     = "rls"
	protocolCheck   = "check"
	protocolStream  = "stream"
	protocolForward = "forward-auth"
)

var protocols = []string{protocolRLS, protocolCheck, protocolStream, protocolForward}

// The arrivals of calls.
const (
	arrivalsConstant = "constant"
	arrivalsPoisson  = "poisson"
)

// The forms of the result.
const (
	formTable = "table"
	formJSON  = "json"
)

// Bounds of the flags.
const (
	maxRate        = 1_000_000
	maxZipf        = 10
	maxInFlight    = 1 << 16
	maxConnections = 1 << 8
	maxRounds      = 1_000
	maxLength      = 24 * time.Hour
	maxTimeout     = time.Minute
)

// options holds the flags.
type options struct {
	target, compare string
	protocol        string
	rate            float64
	arrivals        string
	seed            uint64
	keys            int
	zipf            float64
	length, warm    time.Duration
	timeout         time.Duration
	inFlight        int
	connections     int
	rounds          int
	form            string
	credentials     caller.Credentials

	domain      string
	descriptors []string
	gateway     string
	method      string
	path        string
	headers     []string
	denyStatus  []int

	request request // of the flags above
}

// New returns the command. fail makes an error with the exit code of a failure
// while running.
func New(out, progress io.Writer, fail func(error) error) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "bench --target TARGET --rate RATE --domain DOMAIN KEY=VALUE...",
		Short: "Put load on a running daemon and measure its answers",
		Long: "Call a daemon at a rate and print how long its answers take. The rate does not depend on\n" +
			"the answers (an open loop): each call is due at an instant, and its latency counts from\n" +
			"there, however late it could be sent. So a daemon that stalls shows in the percentiles with\n" +
			"every call that was due meanwhile. A call without an answer counts with --timeout at least.\n\n" +
			"The KEY=VALUE arguments are one descriptor, and each --descriptor adds another. {key} in a\n" +
			"value stands for one of --keys keys. The calls are charged, as those of gateways are.\n\n" +
			"With --protocol forward-auth the target is a URL. With --gateway NAME the calls ask the\n" +
			"daemon as a gateway does, and without it they are those of a client: to the gateway itself.\n\n" +
			"With --compare, both targets are measured in turn, for --for each in each round, and the\n" +
			"result is the medians of the rounds and their ratios. Ctrl-C ends the load and prints what\n" +
			"was measured. The exit code is 0 when calls were answered, 1 when none was (in one of the\n" +
			"rounds), 2 for wrong usage.",
		Example: "  rld bench --target 127.0.0.1:8081 --rate 2000 --domain edge 'user_id={key}'\n" +
			"  rld bench --target 127.0.0.1:8081 --protocol stream --rate 20000 --keys 100000 --zipf 1.1 \\\n" +
			"    --arrivals poisson --for 30s --domain edge 'user_id={key}'\n" +
			"  rld bench --target http://127.0.0.1:8080 --protocol forward-auth --rate 1000 \\\n" +
			"    --gateway edge --header 'X-Api-Key: {key}' --path /v1/orders\n" +
			"  rld bench --target 10.0.0.1:8081 --compare 10.0.0.2:8081 --rate 2000 --domain edge 'user_id={key}'",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(args, cmd.Flags().Changed); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			// The second signal ends the process.
			defer context.AfterFunc(ctx, stop)()
			return fail(o.run(ctx, out, progress))
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.target, "target", "", "address to call: host:port, unix:PATH, or a URL for forward-auth (required)")
	f.StringVar(&o.compare, "compare", "", "another address, which is measured in turn with the target")
	f.StringVar(&o.protocol, "protocol", protocolRLS, "how to call: "+strings.Join(protocols, ", "))
	f.Float64Var(&o.rate, "rate", 0, "calls a second (required)")
	f.StringVar(&o.arrivals, "arrivals", arrivalsConstant, "constant, or poisson for calls that come independently of each other")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the arrivals and of the keys")
	f.IntVar(&o.keys, "keys", 1_000, "number of keys")
	f.Float64Var(&o.zipf, "zipf", 0, "exponent of Zipf's law by which keys are chosen, 0 to 10; 0 chooses each as often")
	f.DurationVar(&o.length, "for", 10*time.Second, "how long to measure")
	f.DurationVar(&o.warm, "warm", time.Second, "how long to call before, without measuring")
	f.DurationVar(&o.timeout, "timeout", 2*time.Second, "how long a call waits for its answer")
	f.IntVar(&o.inFlight, "in-flight", 256, "how many calls may wait for their answers; with more, calls are sent late")
	f.IntVar(&o.connections, "connections", 2, "gRPC connections; forward-auth has one for each call in flight")
	f.IntVar(&o.rounds, "rounds", 7, "rounds of --compare")
	f.StringVarP(&o.form, "output", "o", formTable, "form of the result: table or json")
	f.StringVar(&o.domain, "domain", "", "domain of the calls (required but for forward-auth)")
	f.StringArrayVar(&o.descriptors, "descriptor", nil, "one more descriptor, KEY=VALUE,KEY=VALUE")
	f.StringVar(&o.gateway, "gateway", "", "name of the mapping that forward-auth asks (gateways in the settings); for one with\n"+
		"target: path use --target http://HOST"+gatewayPath+"NAME instead")
	f.StringVar(&o.method, "method", "GET", "method of the client's request (forward-auth)")
	f.StringVar(&o.path, "path", "/", "path of the client's request (forward-auth)")
	f.StringArrayVar(&o.headers, "header", nil, "header of the client's request, NAME: VALUE (forward-auth)")
	f.IntSliceVar(&o.denyStatus, "deny-status", []int{429, 403}, "statuses of a denial (forward-auth)")
	o.credentials.AddFlags(f)
}

// check checks the flags and reads the request. Its error is one of usage.
func (o *options) check(args []string, changed func(string) bool) error {
	if err := o.checkLoad(); err != nil {
		return err
	}
	switch {
	case o.inFlight < 1 || o.inFlight > maxInFlight:
		return fmt.Errorf("--in-flight %d: want 1 to %d", o.inFlight, maxInFlight)
	case o.connections < 1 || o.connections > maxConnections:
		return fmt.Errorf("--connections %d: want 1 to %d", o.connections, maxConnections)
	case o.rounds < 1 || o.rounds > maxRounds:
		return fmt.Errorf("--rounds %d: want 1 to %d", o.rounds, maxRounds)
	case o.form != formTable && o.form != formJSON:
		return fmt.Errorf("-o %s: want table or json", o.form)
	case changed("rounds") && o.compare == "":
		return errors.New("--rounds is for --compare: use --for to measure for longer")
	}
	if err := o.credentials.Check(); err != nil {
		return err
	}
	if o.target == "" {
		return errors.New("no target: use --target with the address of a daemon, such as 127.0.0.1:8081")
	}
	for _, addr := range o.targets() {
		if _, err := o.parse(addr); err != nil {
			return err
		}
	}
	if err := o.checkProtocol(args, changed); err != nil {
		return err
	}
	var err error
	if o.request, err = o.newRequest(args); err != nil {
		return err
	}
	if !o.request.varies() {
		if changed("keys") && o.keys > 1 || o.zipf > 0 {
			return fmt.Errorf("%d keys, and all calls would have the same one: use {key} in a value, as in user_id={key}", o.keys)
		}
		o.keys = 1
	}
	return nil
}

// checkLoad checks the flags of the rate and of the keys.
func (o *options) checkLoad() error {
	switch {
	case !(o.rate > 0):
		return fmt.Errorf("--rate %v makes no calls: use a number of calls a second, such as --rate 1000", o.rate)
	case o.rate > maxRate:
		return fmt.Errorf("--rate %v: want at most %d calls a second", o.rate, maxRate)
	case o.arrivals != arrivalsConstant && o.arrivals != arrivalsPoisson:
		return fmt.Errorf("--arrivals %q: want constant or poisson", o.arrivals)
	case o.keys < 1 || o.keys > load.MaxKeys:
		return fmt.Errorf("--keys %d: want 1 to %d", o.keys, load.MaxKeys)
	case !(o.zipf >= 0 && o.zipf <= maxZipf):
		return fmt.Errorf("--zipf %v: want an exponent from 0 (each key as often) to %d", o.zipf, maxZipf)
	case o.length <= 0 || o.length > maxLength:
		return fmt.Errorf("--for %s: want more than 0 and at most %s", o.length, maxLength)
	case o.warm < 0 || o.warm > maxLength:
		return fmt.Errorf("--warm %s: want 0 to %s", o.warm, maxLength)
	case o.timeout <= 0 || o.timeout > maxTimeout:
		return fmt.Errorf("--timeout %s: want more than 0 and at most %s", o.timeout, maxTimeout)
	case o.rate*o.length.Seconds() < 1:
		return fmt.Errorf("--rate %v for %s makes no call: use a longer --for", o.rate, o.length)
	}
	return nil
}

// checkProtocol refuses flags that the protocol does not have.
func (o *options) checkProtocol(args []string, changed func(string) bool) error {
	if !slices.Contains(protocols, o.protocol) {
		return fmt.Errorf("unknown protocol %q: use one of %s", o.protocol, strings.Join(protocols, ", "))
	}
	others := []string{"gateway", "method", "path", "header", "deny-status"}
	if o.protocol == protocolForward {
		others = []string{"domain", "descriptor", "connections"}
		if len(args) > 0 {
			return fmt.Errorf("%q: forward-auth has no descriptors, since the mapping makes them: use --header and --path", args[0])
		}
	}
	for _, name := range others {
		if changed(name) {
			return fmt.Errorf("--%s is not for --protocol %s", name, o.protocol)
		}
	}
	return nil
}

// targets returns the addresses to measure.
func (o *options) targets() []string {
	if o.compare == "" {
		return []string{o.target}
	}
	return []string{o.target, o.compare}
}
