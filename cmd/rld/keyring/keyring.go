// Package keyring is the command rld keyring: it makes the file of membership
// keys (swim.keys_file) and changes it in the steps of a rotation.
package keyring

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/georld/rld/config"
	"github.com/georld/rld/gossip/swim"
)

// New returns the command. It writes to out, and refused converts the errors of
// commands that changed nothing.
func New(out io.Writer, refused func(error) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keyring",
		Short: "Make and rotate the keys that encrypt the membership of a region",
		Long: "Make the file of membership keys (swim.keys_file), and rotate its keys while all daemons\n" +
			"run. The first key encrypts, all of them decrypt. Keys are named by fingerprints, which\n" +
			"reveal nothing; the keys themselves are never printed. To replace a key: add one, use it,\n" +
			"and remove the former one. After each step copy the file to all daemons of the region and\n" +
			"wait until rld status of each shows it. Daemons read the changed file by themselves.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				// The argument is not printed: it may be a key.
				return fmt.Errorf("unknown command for %q: want new, add, use, remove or list", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, sub := range []*cobra.Command{newNew(out), newAdd(out), newUse(out), newRemove(out), newList(out)} {
		run := sub.RunE
		sub.RunE = func(cmd *cobra.Command, args []string) error { return refused(run(cmd, args)) }
		cmd.AddCommand(sub)
	}
	return cmd
}

func newNew(out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:     "new FILE",
		Short:   "Make a file with one new key",
		Example: "  rld keyring new swim-keys",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			text, fingerprint := fresh()
			if err := create(args[0], []byte(text+"\n")); err != nil {
				return err
			}
			_, err := fmt.Fprintf(out, "made %s with key %s\n"+
				"Next: copy %s to all daemons of the region, and set swim.keys_file of each to its copy.\n", args[0], fingerprint, args[0])
			return err
		},
	}
}

func newAdd(out io.Writer) *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "add FILE",
		Short: "Add a key that decrypts and does not encrypt yet",
		Long: "Add a new key at the end of a file: daemons that read it decrypt with the key, and encrypt\n" +
			"with the first one as before.",
		Example: "  rld keyring add swim-keys\n" +
			"  rld keyring add swim-keys --from other-keys",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := open(cmd.ErrOrStderr(), args[0])
			if err != nil {
				return err
			}
			text, fingerprint := fresh()
			if from != "" {
				if text, fingerprint, err = single(cmd.ErrOrStderr(), from); err != nil {
					return err
				}
			}
			if r.find(fingerprint) >= 0 {
				return fmt.Errorf("%s has the key %s already, and nothing was written: want another key", r.at(r.find(fingerprint)), fingerprint)
			}
			if err := r.write(r.with(text)); err != nil {
				return err
			}
			_, err = fmt.Fprintf(out, "added key %s to %s: it decrypts, and %s encrypts as before\n%s  rld keyring use %s %s\n",
				fingerprint, r.path, r.name(0), next(r.path, fingerprint+" among its membership keys"), r.path, fingerprint)
			return err
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "file with the one key to add, instead of a new one")
	return cmd
}

func newUse(out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "use FILE KEY",
		Short: "Encrypt with a key, which all daemons must have",
		Long: "Move a key to the beginning of a file: daemons that read it encrypt with the key, and decrypt\n" +
			"with all. A daemon that does not have the key yet loses the others until it has. KEY is a\n" +
			"fingerprint, as rld keyring list prints it.",
		Example: "  rld keyring use swim-keys 5e6f7a8b",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, i, err := openKey(cmd.ErrOrStderr(), args)
			if err != nil {
				return err
			}
			if i == 0 {
				return fmt.Errorf("%s: the key %s encrypts already, and nothing was written", r.at(0), r.name(0))
			}
			if err := r.write(r.first(i)); err != nil {
				return err
			}
			_, err = fmt.Fprintf(out, "key %s encrypts in %s, and %s decrypts\n%s  rld keyring remove %s %s\n",
				r.name(i), r.path, r.name(0), next(r.path, r.name(i)+" (encrypts)"), r.path, r.name(0))
			return err
		},
	}
}

func newRemove(out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "remove FILE KEY",
		Short: "Remove a key that no daemon encrypts with",
		Long: "Remove a key from a file: daemons that read it refuse all that is encrypted with the key. The\n" +
			"first key is refused, since it encrypts. KEY is a fingerprint, as rld keyring list prints it.",
		Example: "  rld keyring remove swim-keys 1a2b3c4d",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, i, err := openKey(cmd.ErrOrStderr(), args)
			switch {
			case err != nil:
				return err
			case len(r.Keys) == 1:
				return fmt.Errorf("%s: %s is the only key, and nothing was written: add another one with rld keyring add %s",
					r.at(0), r.name(0), r.path)
			case i == 0:
				return fmt.Errorf("%s: the key %s encrypts, and nothing was written: use another one first with rld keyring use %s %s",
					r.at(0), r.name(0), r.path, r.name(1))
			}
			if err := r.write(r.without(i)); err != nil {
				return err
			}
			_, err = fmt.Fprintf(out, "removed key %s from %s\nNext: copy %s to all daemons of the region. "+
				"When rld status of none of them shows %s,\nthey refuse members that have this key alone.\n", r.name(i), r.path, r.path, r.name(i))
			return err
		},
	}
}

func newList(out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "list FILE",
		Short: "List the fingerprints of the keys of a file",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := read(cmd.ErrOrStderr(), args[0])
			if err != nil {
				return err
			}
			does := "encrypts and decrypts"
			for i, k := range r.Keys {
				if _, err := fmt.Fprintf(out, "%s: %s, %d bytes, %s\n", r.at(i), r.name(i), len(k), does); err != nil {
					return err
				}
				does = "decrypts"
			}
			return nil
		},
	}
}

// next returns the step between two commands. shown is what rld status shows
// then.
func next(path, shown string) string {
	return fmt.Sprintf("Next: copy %s to all daemons of the region. When rld status of each shows\n%s, run\n", path, shown)
}

// openKey reads the file and finds the key that the arguments name.
func openKey(warn io.Writer, args []string) (r *ring, key int, err error) {
	if !fingerprint(args[1]) { // it may be a key: do not print it
		return nil, 0, errors.New("the second argument is no fingerprint: want 8 hexadecimal digits, as rld keyring list prints them")
	}
	if r, err = open(warn, args[0]); err != nil {
		return nil, 0, err
	}
	if key = r.find(args[1]); key >= 0 {
		return r, key, nil
	}
	var have []string
	for i := range r.Keys {
		have = append(have, r.name(i))
	}
	return nil, 0, fmt.Errorf("%s has no key %s, and nothing was written: it has %s", r.path, args[1], strings.Join(have, ", "))
}

// fingerprint reports whether a text has the form of one.
func fingerprint(text string) bool {
	return len(text) == len(swim.Fingerprint(nil)) && strings.Trim(text, "0123456789abcdef") == ""
}

// single returns the key of a file with one, as text, and its fingerprint.
func single(warn io.Writer, path string) (text, name string, err error) {
	r, err := read(warn, path)
	if err != nil {
		return "", "", err
	}
	if len(r.Keys) != 1 {
		return "", "", fmt.Errorf("--from %s: holds %d keys, want one", path, len(r.Keys))
	}
	return encode(r.Keys[0]), r.name(0), nil
}

// read reads a file, and writes warnings about its permissions.
func read(warn io.Writer, path string) (*ring, error) {
	k, warnings, err := config.ReadKeys(path)
	for _, w := range warnings {
		fmt.Fprintf(warn, "warning: %s\n", w)
	}
	return &ring{Keyring: k, path: path}, err
}
