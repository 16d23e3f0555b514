package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"rld": main, "ratelimit": main})
}

// TestScripts runs testdata/script. Beside testscript's own commands a script
// has:
//
//	exits CODE CMD ARG...  run a command that must end with this exit code
//	serve ARG...           start `rld serve ARG...` on free ports, wait until it
//	                       serves, and set $GRPC, $HTTP and $ADMIN to its
//	                       addresses; its output is in the file banner
//	logs PATTERN           wait until a line that it logged since the last
//	                       logs matches
//	deafen                 stop reading its log, and close the pipe
//	signal NAME            send it HUP, TERM or INT
//	[!] stopped            wait for its end, which must be in order or not
//	taken NAME             hold a port and set $NAME to its address
//	hold                   begin an HTTP call to the daemon and never end it
//	get URL                print the status and the body of an answer
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Values[daemonKey{}] = &daemonProcess{}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":   cmdExits,
			"serve":   cmdServe,
			"logs":    cmdLogs,
			"deafen":  cmdDeafen,
			"signal":  cmdSignal,
			"stopped": cmdStopped,
			"taken":   cmdTaken,
			"hold":    cmdHold,
			"get":     cmdGet,
		},
	})
}

func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE CMD ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func cmdTaken(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: taken NAME")
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { lis.Close() })
	ts.Setenv(args[0], lis.Addr().String())
}

func cmdGet(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: get URL")
	}
	answer, err := http.Get(args[0])
	ts.Check(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%d\n%s", answer.StatusCode, body)
}

// cmdHold sends a question without its last bytes. That the daemon wants to
// read it shows that the call has begun.
func cmdHold(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: hold")
	}
	conn, err := net.Dial("tcp", ts.Getenv("HTTP"))
	ts.Check(err)
	ts.Defer(func() { conn.Close() })
	ts.Check(conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, "POST /v1/check HTTP/1.1\r\nHost: rld\r\nContent-Length: 99\r\n"+
		"Content-Type: application/json\r\nExpect: 100-continue\r\n\r\n")
	ts.Check(err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	ts.Check(err)
	if !strings.HasPrefix(line, "HTTP/1.1 100 ") {
		ts.Fatalf("the daemon does not wait for the question: %s", line)
	}
}
