// Package caller has the part of rld that is for callers: it makes tokens, and
// calls with them and over TLS.
package caller

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/georld/rld/server/auth"
)

// NewTokenNew returns the command rld token new. fail makes an error with the
// exit code of a failure while running.
func NewTokenNew(out io.Writer, fail func(error) error) *cobra.Command {
	t := auth.Token{}
	var verb, role string
	cmd := &cobra.Command{
		Use:   "new --name NAME --domain DOMAIN | --role ROLE",
		Short: "Make a token for a caller or an operator",
		Long: "Make a random token and print it with its entry for the tokens file (auth.tokens_file).\n" +
			"The entry holds the hash alone: the token is shown once, is stored nowhere, and belongs to\n" +
			"the caller, who sends it as authorization: Bearer TOKEN. A daemon reads a changed tokens\n" +
			"file by itself.\n\n" +
			"With --role it is the token of an operator, for admin.tokens_file: view reads what reveals no\n" +
			"keys, operate changes limits, drains regions and reveals keys, and admin decides who is in the\n" +
			"cluster. The commands of rld send it with --token-file.",
		Example: "  rld token new --name checkout --domain shop --domain cart --rate 500\n" +
			"  rld token new --name dashboard --domain '*' --verb read\n" +
			"  rld token new --name ann --role operate",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var ok bool
			if role != "" {
				if t.Role, ok = auth.ParseRole(role); !ok {
					return fmt.Errorf("--role %q is neither view nor operate nor admin", role)
				}
				for _, name := range []string{"domain", "verb", "rate"} {
					if cmd.Flags().Changed(name) {
						return fmt.Errorf("--%s is for callers, and --role for operators: give one of them", name)
					}
				}
			}
			if t.Verb, ok = auth.ParseVerb(verb); !ok {
				return fmt.Errorf("--verb %q is neither check nor read", verb)
			}
			if err := check(&t); err != nil {
				return err
			}
			token, sum := auth.New()
			t.SHA256 = sum
			_, err := fmt.Fprintf(out, "token: %s\nentry of the tokens file, below tokens:\n  - %s\n", token, entry(&t))
			return fail(err)
		},
	}
	f := cmd.Flags()
	f.StringVar(&t.Name, "name", "", "name of the token in logs and metrics (required)")
	f.StringArrayVar(&t.Domains, "domain", nil, "domain that it may call, repeated for several, '*' for all (required without --role)")
	f.StringVar(&verb, "verb", auth.Check.String(), "check, or read for peeks only")
	f.StringVar(&role, "role", "", "view, operate or admin, for an operator")
	f.Float64Var(&t.Rate, "rate", 0, "calls per second that it may make; 0 for no bound")
	return cmd
}

// check returns the fault of a token that a tokens file would not take.
func check(t *auth.Token) error {
	switch {
	case t.Name == "":
		return errors.New("no name: use --name NAME")
	case !auth.ValidName(t.Name):
		return fmt.Errorf("--name %q is not 1 to 63 letters, digits, dots, underscores and dashes", t.Name)
	case t.Role != auth.None:
		return nil
	case len(t.Domains) == 0:
		return errors.New("no domain: use --domain DOMAIN, or --domain '*' for all; an operator has a --role instead")
	case t.Rate != 0 && !auth.ValidRate(t.Rate):
		return fmt.Errorf("--rate %v is not a number of calls per second from 0.001 to 1000000", t.Rate)
	}
	for _, d := range t.Domains {
		if !auth.ValidDomain(d) {
			return fmt.Errorf("--domain %q is neither a domain nor '*'; there are no other wildcards", d)
		}
	}
	return nil
}

// entry returns a token as a tokens file has it.
func entry(t *auth.Token) string {
	if t.Role != auth.None {
		return fmt.Sprintf("{name: %q, sha256: %q, role: %s}", t.Name, hex.EncodeToString(t.SHA256[:]), t.Role)
	}
	domains := make([]string, len(t.Domains))
	for i, d := range t.Domains {
		domains[i] = strconv.Quote(d) // it may look like a number
	}
	out := fmt.Sprintf("{name: %q, sha256: %q, domains: [%s], verb: %s", t.Name, hex.EncodeToString(t.SHA256[:]),
		strings.Join(domains, ", "), t.Verb)
	if t.Rate > 0 {
		out += ", rate: " + strconv.FormatFloat(t.Rate, 'f', -1, 64)
	}
	return out + "}"
}
