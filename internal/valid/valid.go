// Package valid checks the texts and addresses by which daemons announce
// themselves. Its errors name the text and a correct form.
package valid

import (
	"fmt"
	"net"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// Text is a text with bounds on its length, in bytes.
type Text struct {
	Name        string // for errors: "region"
	Value       string
	Least, Most int
}

// Texts returns an error that names the first text that is too short, too long
// or not printable UTF-8. Such texts are safe in logs and tables.
func Texts(all ...Text) error {
	for _, t := range all {
		if n := len(t.Value); n < t.Least || n > t.Most {
			return fmt.Errorf("%s of %d bytes, must be %d to %d", t.Name, n, t.Least, t.Most)
		}
		if !utf8.ValidString(t.Value) {
			return fmt.Errorf("%s %q is not UTF-8", t.Name, t.Value)
		}
		for _, r := range t.Value {
			if !unicode.IsPrint(r) {
				return fmt.Errorf("%s %q holds what cannot be printed", t.Name, t.Value)
			}
		}
	}
	return nil
}

// Address returns an error unless addr is host:port with a port that can be
// dialed. The name is for the error.
func Address(name, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" {
		return fmt.Errorf("%s %q is not host:port", name, addr)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("%s %q: the port must be a number from 1 to 65535", name, addr)
	}
	return nil
}
