package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Command is what an operator may say about rights.
type Command string

// The commands. Each is at /v1/rights/ and its name.
const (
	RetireRegion Command = "retire-region"
	ReturnRegion Command = "return-region"
	RetireDaemon Command = "retire-daemon"
)

// Commands lists them.
func Commands() []Command { return []Command{RetireRegion, ReturnRegion, RetireDaemon} }

// CommandRequest is the body of a command.
type CommandRequest struct {
	// Name is that of the region or of the daemon.
	Name string `json:"name"`
}

// CommandAnswer says what a command has come to.
type CommandAnswer struct {
	// Proposed is the epoch that was proposed.
	Proposed EpochState `json:"proposed"`
	// Next says what happens now, for people.
	Next string `json:"next"`
}

// maxCommandBytes bounds the body of a command.
const maxCommandBytes = 4 << 10

// command serves one command. It is taken from this machine alone, and from no
// page that a browser shows: what it changes is not undone by saying it again.
func command(c Command, do func(Command, string) (CommandAnswer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := fromHere(r); err != nil {
			fail(w, http.StatusForbidden, err)
			return
		}
		name, err := commandName(w, r)
		if err != nil {
			fail(w, http.StatusBadRequest, err)
			return
		}
		if do == nil {
			fail(w, http.StatusConflict, errors.New(
				"this daemon holds no rights: it has no region, or no rights.dir"))
			return
		}
		answer, err := do(c, name)
		if err != nil {
			fail(w, http.StatusConflict, err)
			return
		}
		writeJSON(w, answer)
	}
}

// fromHere returns an error unless a request comes from this machine and not
// from a page of a browser, by whatever name that reached us.
func fromHere(r *http.Request) error {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return errors.New("commands are taken from the machine of the daemon alone: say it there")
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err != nil && host != "localhost" {
		return fmt.Errorf("the name %q is not that of this machine: say an address, such as 127.0.0.1", clip(host))
	}
	if r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
		return errors.New("commands are not taken from browsers")
	}
	return nil
}

// commandName reads the body of a command.
func commandName(w http.ResponseWriter, r *http.Request) (string, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return "", errors.New(`want {"name": "..."} as application/json`)
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCommandBytes))
	d.DisallowUnknownFields()
	var q CommandRequest
	if err := d.Decode(&q); err != nil {
		return "", fmt.Errorf(`want {"name": "..."}: %w`, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return "", errors.New(`want {"name": "..."} and nothing after it`)
	}
	if q.Name == "" {
		return "", errors.New(`the name is empty: want {"name": "..."}`)
	}
	return q.Name, nil
}
