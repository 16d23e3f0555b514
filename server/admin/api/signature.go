package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// SignatureHeader is the header of a command from another machine: it proves
// that the sender has the secret of the cluster.
const SignatureHeader = "Rld-Signature"

// SocketHeader is the header of an answer 401 to a request from the machine of
// the daemon: the path of the unix socket that takes it.
const SocketHeader = "Rld-Admin-Socket"

// AddrHeader is the header of a request that follows a SocketHeader: the
// address that sent it there. A daemon with another address refuses the
// request. So a process that listens at the address of a daemon that is down
// sends no command to another daemon.
const AddrHeader = "Rld-Admin-Addr"

// signatureAge is how far the clocks of sender and receiver may differ. Within
// it a signed command can be repeated by anyone who has seen it.
const signatureAge = time.Minute

// Sign returns the value of SignatureHeader for a command.
func Sign(secret []byte, path string, body []byte, now time.Time) string {
	at := strconv.FormatInt(now.Unix(), 10)
	return at + " " + hex.EncodeToString(signature(secret, at, path, body))
}

// Verify returns an error unless Sign made the value with the same secret, path
// and body, at about the time now.
func Verify(secret []byte, value, path string, body []byte, now time.Time) error {
	at, sum, _ := strings.Cut(value, " ")
	seconds, errTime := strconv.ParseInt(at, 10, 64)
	got, errSum := hex.DecodeString(sum)
	if errTime != nil || errSum != nil {
		return errors.New("the signature of the command is malformed")
	}
	if !hmac.Equal(got, signature(secret, at, path, body)) {
		return errors.New("the signature of the command is wrong: use the secret of this cluster (--cluster-secret-file)")
	}
	if age := now.Sub(time.Unix(seconds, 0)); age.Abs() > signatureAge {
		return fmt.Errorf("the command was signed %s ago, by the clock of this machine: correct the clocks, or repeat it", age)
	}
	return nil
}

func signature(secret []byte, at, path string, body []byte) []byte {
	h := hmac.New(sha256.New, secret)
	fmt.Fprintf(h, "rld command\x00%s\x00%s\x00%s", at, path, body)
	return h.Sum(nil)
}
