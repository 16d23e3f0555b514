// Package cert is the command rld cert: it makes a certificate authority and
// the certificates with which daemons prove their names to each other, for
// clusters without a PKI of their own.
package cert

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/internal/certs"
)

// maxDays bounds the validity.
const maxDays = 36_500

// New returns the command. It writes to out, and refused converts the errors of
// commands that changed nothing or not all.
func New(out io.Writer, refused func(error) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cert",
		Short: "Make the certificates with which daemons prove their names to each other",
		Long: "Make a certificate authority, and one certificate for each daemon, in a folder. The\n" +
			"certificate of a daemon names its region and its name. Daemons with such certificates\n" +
			"refuse all peers that cannot prove theirs. A PKI of your own does as well: it needs the\n" +
			"URI spiffe://rld/REGION/NAME, or the DNS name NAME.REGION.rld, as a subject alternative\n" +
			"name, and both uses, serverAuth and clientAuth.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, sub := range []*cobra.Command{newInit(out), newIssue(out), newRenew(out), newShow(out)} {
		run := sub.RunE
		sub.RunE = func(cmd *cobra.Command, args []string) error { return refused(run(cmd, args)) }
		cmd.AddCommand(sub)
	}
	return cmd
}

// options are the flags of the commands.
type options struct {
	dir   string
	days  int
	force bool
}

func (o *options) add(cmd *cobra.Command, days int) {
	cmd.Flags().StringVar(&o.dir, "dir", "certs", "folder of the authority and of the daemons' certificates")
	cmd.Flags().IntVar(&o.days, "days", days, "days for which a certificate is valid")
}

// validity returns for how long certificates are valid.
func (o *options) validity() (time.Duration, error) {
	if o.days < 1 || o.days > maxDays {
		return 0, fmt.Errorf("--days %d: want 1 to %d", o.days, maxDays)
	}
	return time.Duration(o.days) * day, nil
}

func newInit(out io.Writer) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make the authority that signs the certificates of all daemons",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			validity, err := o.validity()
			if err != nil {
				return err
			}
			certPath, keyPath := filepath.Join(o.dir, authorityCert), filepath.Join(o.dir, authorityKey)
			if err := errors.Join(missing(certPath, o.force), missing(keyPath, o.force)); err != nil {
				return err
			}
			if err := os.MkdirAll(o.dir, 0o700); err != nil {
				return err
			}
			cert, key, until, err := makeAuthority(time.Now(), validity)
			if err != nil {
				return err
			}
			if err := errors.Join(write(keyPath, key), write(certPath, cert)); err != nil {
				return err
			}
			_, err = fmt.Fprintf(out, "made %s and %s, valid until %s\n"+
				"Keep %s away from the daemons, and a copy of it: it signs for all of them.\n"+
				"Next: rld cert issue --dir %s REGION/NAME ...\n", certPath, keyPath, shown(until), keyPath, o.dir)
			return err
		},
	}
	o.add(cmd, 3650)
	cmd.Flags().BoolVar(&o.force, "force", false, "replace an authority: no certificate of the former one is trusted then")
	return cmd
}

func newIssue(out io.Writer) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "issue REGION/NAME...",
		Short: "Make the certificates of daemons",
		Long: "Make the key and the certificate of each daemon, in the folder REGION/NAME with a copy of\n" +
			"ca.crt. The names are those of the settings region and name. If one is there already,\n" +
			"nothing is made.",
		Example: "  rld cert issue us-east/us-0 us-east/us-1 eu-west/eu-0",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			validity, err := o.validity()
			if err != nil {
				return err
			}
			return o.issue(out, args, validity)
		},
	}
	o.add(cmd, 365)
	cmd.Flags().BoolVar(&o.force, "force", false, "replace certificates and keys that are there")
	return cmd
}

func (o *options) issue(out io.Writer, args []string, validity time.Duration) error {
	a, err := openAuthority(o.dir)
	if err != nil {
		return err
	}
	var names []certs.Name
	var faults []error
	for _, arg := range args {
		region, daemon, _ := strings.Cut(arg, "/")
		name := certs.Name{Region: region, Daemon: daemon}
		if err := name.Check(); err != nil {
			faults = append(faults, fmt.Errorf("%q: %w; want REGION/NAME", arg, err))
			continue
		}
		for _, file := range []string{daemonCert, daemonKey} {
			faults = append(faults, missing(filepath.Join(o.folder(name), file), o.force))
		}
		names = append(names, name)
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	for _, name := range names {
		until, err := o.issueOne(a, name, validity)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "made %s for %s, valid until %s\n", o.folder(name), name, shown(until))
	}
	_, err = fmt.Fprintf(out, "Next: copy each folder to its daemon, and set peer.tls.cert, peer.tls.key and peer.tls.ca to\n"+
		"its %s, %s and %s. Renew before the end with rld cert renew --dir %s.\n", daemonCert, daemonKey, authorityCert, o.dir)
	return err
}

// folder returns the folder of a daemon.
func (o *options) folder(name certs.Name) string {
	return filepath.Join(o.dir, name.Region, name.Daemon)
}

func (o *options) issueOne(a *authority, name certs.Name, validity time.Duration) (time.Time, error) {
	dir := o.folder(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return time.Time{}, err
	}
	k, key, err := newKey()
	if err != nil {
		return time.Time{}, err
	}
	cert, until, err := a.sign(name, k.Public(), time.Now(), validity)
	if err != nil {
		return time.Time{}, err
	}
	return until, errors.Join(write(filepath.Join(dir, authorityCert), a.all), write(filepath.Join(dir, daemonKey), key),
		write(filepath.Join(dir, daemonCert), cert))
}

func newRenew(out io.Writer) *cobra.Command {
	var o options
	var within int
	cmd := &cobra.Command{
		Use:   "renew [REGION/NAME...]",
		Short: "Make new certificates for the keys that daemons have",
		Long: "Make a new certificate, for the same key and name, of each daemon in the folder that has\n" +
			"less than --within days left, or of those that are named. Daemons take up changed files by\n" +
			"themselves within 30 s, without a restart.",
		RunE: func(_ *cobra.Command, args []string) error {
			validity, err := o.validity()
			if err != nil {
				return err
			}
			return o.renew(out, args, validity, time.Duration(within)*day)
		},
	}
	o.add(cmd, 365)
	cmd.Flags().IntVar(&within, "within", 120, "days before its end from which a certificate is renewed, if none is named")
	return cmd
}

func (o *options) renew(out io.Writer, args []string, validity, within time.Duration) error {
	a, err := openAuthority(o.dir)
	if err != nil {
		return err
	}
	var folders []string
	for _, arg := range args {
		folders = append(folders, filepath.Join(o.dir, filepath.FromSlash(arg)))
	}
	if len(args) == 0 {
		found, err := filepath.Glob(filepath.Join(o.dir, "*", "*", daemonCert))
		if err != nil {
			return err
		}
		for _, path := range found {
			folders = append(folders, filepath.Dir(path))
		}
		if len(folders) == 0 {
			return fmt.Errorf("%s has no certificate of a daemon: make one with rld cert issue", o.dir)
		}
	}
	var faults []error
	renewed := 0
	for _, dir := range folders {
		until, done, err := a.renewOne(dir, validity, within, len(args) > 0)
		switch {
		case err != nil:
			faults = append(faults, err)
		case done:
			renewed++
			fmt.Fprintf(out, "renewed %s, valid until %s\n", filepath.Join(dir, daemonCert), shown(until))
		default:
			fmt.Fprintf(out, "kept %s, valid until %s\n", filepath.Join(dir, daemonCert), shown(until))
		}
	}
	if renewed > 0 {
		fmt.Fprintf(out, "Next: copy %s and %s to each of these daemons. They take them up by themselves.\n", daemonCert, authorityCert)
	}
	return errors.Join(faults...)
}

// renewOne makes a new certificate in a daemon's folder, if it is due or must.
func (a *authority) renewOne(dir string, validity, within time.Duration, must bool) (until time.Time, done bool, err error) {
	path := filepath.Join(dir, daemonCert)
	set, err := certs.Read(certs.Files{Cert: path, Key: filepath.Join(dir, daemonKey)})
	if err != nil {
		return time.Time{}, false, err
	}
	if len(set.Names) != 1 {
		return time.Time{}, false, fmt.Errorf("%s names %d daemons, want one: make it with rld cert issue", path, len(set.Names))
	}
	if !must && time.Until(set.NotAfter) > within {
		return set.NotAfter, false, nil
	}
	cert, until, err := a.sign(set.Names[0], set.Cert.Leaf.PublicKey, time.Now(), validity)
	if err != nil {
		return time.Time{}, false, err
	}
	return until, true, errors.Join(write(filepath.Join(dir, authorityCert), a.all), write(path, cert))
}

func newShow(out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "show FILE...",
		Short: "Show the names and the validity of certificates",
		Long: "Show the certificates in files: the daemons that each names, who signed it and how long it\n" +
			"is valid. The exit code is 1 if one is not valid now.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var faults []error
			for _, path := range args {
				text, err := show(path, time.Now())
				if _, werr := io.WriteString(out, text); werr != nil {
					return werr
				}
				faults = append(faults, err)
			}
			return errors.Join(slices.DeleteFunc(faults, func(err error) bool { return err == nil })...)
		},
	}
}
