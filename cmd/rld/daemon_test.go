package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// patience is how long a daemon may take until a script's condition holds. It
// is an upper bound for a slow machine: the scripts wait no longer than
// necessary.
const patience = 30 * time.Second

// daemonKey is where a script keeps its daemon.
type daemonKey struct{}

// daemonProcess is the daemon of a script.
type daemonProcess struct {
	cmd *exec.Cmd
	log io.Closer // our end of its standard error
	// ended gets the end of the process once its log is read.
	ended chan error
	gone  bool // that was taken

	mu    sync.Mutex
	news  *sync.Cond // a line came, the process ended, or time is up
	lines []string   // of the log, that no logs command has taken
	over  bool       // no line will come
	late  bool
}

func daemonOf(ts *testscript.TestScript) *daemonProcess {
	d := ts.Value(daemonKey{}).(*daemonProcess)
	if d.cmd == nil {
		ts.Fatalf("no daemon was started: serve comes first")
	}
	return d
}

func cmdServe(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("for a daemon that must not start, use exits")
	}
	d := ts.Value(daemonKey{}).(*daemonProcess)
	if d.cmd != nil && !d.gone {
		ts.Fatalf("a daemon is running already")
	}
	self, err := os.Executable()
	ts.Check(err)
	banner, err := os.Create(ts.MkAbs("banner"))
	ts.Check(err)
	defer banner.Close()
	d.cmd = exec.Command(self)
	// The test binary is rld when it is called so. Later flags win.
	d.cmd.Args = append([]string{
		"rld", "serve", "--grpc-addr=127.0.0.1:0", "--http-addr=127.0.0.1:0",
		"--admin-addr=127.0.0.1:0", "--log-format=json",
	}, args...)
	d.cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "GOCOVERDIR", "RLD_ADMIN_INSECURE", "RLD_LIMITS"} {
		d.cmd.Env = append(d.cmd.Env, name+"="+ts.Getenv(name))
	}
	d.cmd.Stdout = banner
	log, err := d.cmd.StderrPipe()
	ts.Check(err)
	d.log = log
	ts.Check(d.cmd.Start())
	d.news = sync.NewCond(&d.mu)
	d.lines, d.over, d.gone, d.ended = nil, false, false, make(chan error, 1)
	go d.follow(log)
	ts.Defer(func() {
		if !d.gone {
			_ = d.cmd.Process.Kill() // it may have ended meanwhile
			<-d.ended
			d.gone = true
		}
	})
	d.addresses(ts, d.waitFor(ts, `"msg":"serving"`))
}

// follow reads the log to its end, then waits for the process.
func (d *daemonProcess) follow(log io.Reader) {
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		d.mu.Lock()
		d.lines = append(d.lines, lines.Text())
		d.news.Broadcast()
		d.mu.Unlock()
	}
	err := d.cmd.Wait()
	d.mu.Lock()
	d.over = true
	d.news.Broadcast()
	d.mu.Unlock()
	d.ended <- err
}

// addresses sets the addresses of the daemon's listeners, which it reads from
// the log.
func (d *daemonProcess) addresses(ts *testscript.TestScript, line string) {
	var at struct{ GRPC, HTTP, Admin string }
	ts.Check(json.Unmarshal([]byte(line), &at))
	ts.Setenv("GRPC", at.GRPC)
	ts.Setenv("HTTP", at.HTTP)
	ts.Setenv("ADMIN", at.Admin)
}

func cmdLogs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: logs PATTERN")
	}
	ts.Logf("%s", daemonOf(ts).waitFor(ts, args[0]))
}

// waitFor takes lines from the log up to the one that matches.
func (d *daemonProcess) waitFor(ts *testscript.TestScript, pattern string) string {
	re, err := regexp.Compile(pattern)
	ts.Check(err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.late = false
	timer := time.AfterFunc(patience, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.late = true
		d.news.Broadcast()
	})
	defer timer.Stop()
	var passed []string
	for {
		for len(d.lines) > 0 {
			line := d.lines[0]
			d.lines = d.lines[1:]
			if re.MatchString(line) {
				return line
			}
			passed = append(passed, line)
		}
		if d.over || d.late {
			ts.Fatalf("no line of the log matches %s:\n%s", pattern, strings.Join(passed, "\n"))
		}
		d.news.Wait()
	}
}

func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"HUP": syscall.SIGHUP, "TERM": syscall.SIGTERM, "INT": syscall.SIGINT}
	if neg || len(args) != 1 || signals[args[0]] == 0 {
		ts.Fatalf("usage: signal HUP|TERM|INT")
	}
	ts.Check(daemonOf(ts).cmd.Process.Signal(signals[args[0]]))
}

// cmdDeafen stops reading the log, as a pager that is closed does.
func cmdDeafen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: deafen")
	}
	ts.Check(daemonOf(ts).log.Close())
}

func cmdStopped(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 0 {
		ts.Fatalf("usage: [!] stopped")
	}
	d := daemonOf(ts)
	select {
	case err := <-d.ended:
		d.gone = true
		if (err != nil) != neg {
			ts.Fatalf("the daemon ended with %v:\n%s", err, strings.Join(d.lines, "\n"))
		}
	case <-time.After(patience):
		ts.Fatalf("the daemon did not end")
	}
}
