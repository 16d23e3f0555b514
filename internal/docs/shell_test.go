//go:build unix

package docs

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestShell runs every command of every shell block of README.md,
// CONTRIBUTING.md, docs/ and deploy/, page by page, in a folder that looks like
// a clean clone after make build. A command fails the test when its exit code
// is not 0. testdata/shell.txt lists the exceptions.
//
// The documented addresses are replaced by free ones, so that a daemon of the
// machine is neither needed nor disturbed: in the text of a command, by the
// environment (RLD_HTTP_ADDR and so on), and by the rld command of the folder,
// which adds the flags for rld check and rld demo.
//
// A block behind such a block that is marked output is what its last command
// prints: see checkOutput.
func TestShell(t *testing.T) {
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s here", tool)
		}
	}
	excepted := readExceptions(t)
	program := filepath.Join(t.TempDir(), "rld")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "./cmd/rld")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, p := range pages(t) {
		checkSpans(t, p, program)
		commands, outputs := shellCommands(t, p)
		for _, c := range commands {
			if e := exceptionOf(p, c, excepted); e != nil {
				e.used = true
			}
		}
		if len(commands) == 0 {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			runPage(t, p, commands, outputs, excepted, program)
		})
	}
	for _, e := range excepted {
		if !e.used {
			t.Errorf("testdata/shell.txt: %s has no command that begins with %s", e.page, e.command)
		}
	}
}

var (
	rldSpan      = regexp.MustCompile("`(?:bin/)?rld((?: [a-z]+(?:-[a-z]+)*)+)")
	groupCommand = regexp.MustCompile(`(?s)Usage:\n  rld((?: [a-z-]+)*).*Available Commands:`)
)

// checkSpans fails for a command that a text names between backquotes and that
// rld does not have.
func checkSpans(t *testing.T, p page, program string) {
	t.Helper()
	seen := make(map[string]bool)
	for _, found := range rldSpan.FindAllStringSubmatch(p.text, -1) {
		words := strings.Fields(found[1])
		if seen[found[1]] {
			continue
		}
		seen[found[1]] = true
		out, err := exec.Command(program, append(words, "--help")...).CombinedOutput()
		group := groupCommand.FindSubmatch(out)
		if err != nil || group != nil && len(strings.Fields(string(group[1]))) < len(words) {
			t.Errorf("%s: there is no command rld%s", p.name, found[1])
		}
	}
}

// exception is a command that is not simply run.
type exception struct {
	page, command string // the command begins with it
	how           string // skip, background or an exit code
	reason        string
	used          bool
}

// readExceptions reads testdata/shell.txt.
func readExceptions(t *testing.T) []*exception {
	t.Helper()
	data, err := os.ReadFile("testdata/shell.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []*exception
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		parts := strings.Split(line, " | ")
		if len(parts) != 4 {
			t.Fatalf("testdata/shell.txt: want PAGE | COMMAND | HOW | REASON: %s", line)
		}
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		out = append(out, &exception{page: parts[0], command: parts[1], how: parts[2], reason: parts[3]})
	}
	return out
}

// namedFile is a block of YAML that begins with the name of its file. The
// commands of the page find it in their folder.
var namedFile = regexp.MustCompile("(?ms)^```yaml\n(# ([a-z0-9-]+\\.yaml)\n.*?)^```")

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```(?:\n\n```output\n(.*?)^```)?")

// shellCommands returns the commands of a page in their order. A command ends
// with the first line after which bash has nothing open. outputs has the output
// that a block which is marked output shows, by the number of the last command
// of the block before it.
func shellCommands(t *testing.T, p page) (out []string, outputs map[int]string) {
	t.Helper()
	outputs = make(map[int]string)
	for _, block := range shellBlock.FindAllStringSubmatch(p.text, -1) {
		command := ""
		for line := range strings.Lines(block[1]) {
			command += line
			if trimmed := strings.TrimSpace(command); trimmed == "" || strings.HasPrefix(trimmed, "#") {
				command = ""
				continue
			}
			if complete(t, command) {
				out = append(out, strings.TrimSpace(command))
				command = ""
			}
		}
		if command != "" {
			t.Errorf("%s: a command that does not end: %s", p.name, command)
		}
		if block[2] != "" {
			outputs[len(out)-1] = block[2]
		}
	}
	return out, outputs
}

// checkOutput compares the output of a command with the one that a page shows.
// Its lines are in the output in this order; a line ... stands for any lines,
// and ... in a line for any text.
func checkOutput(t *testing.T, p page, command, shown, got string) {
	t.Helper()
	pattern := strings.Builder{}
	pattern.WriteString(`(?s)^`)
	for line := range strings.Lines(shown) {
		if line == "...\n" {
			pattern.WriteString(`(?:.*\n)?`)
			continue
		}
		parts := strings.Split(strings.TrimRight(line, "\n"), "...")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(strings.TrimSpace(parts[i]))
			if i == 0 {
				parts[i] = strings.Repeat(" ", len(line)-len(strings.TrimLeft(line, " "))) + parts[i]
			}
		}
		pattern.WriteString(strings.Join(parts, `[^\n]*`) + ` *\n`)
	}
	if !regexp.MustCompile(pattern.String() + `$`).MatchString(strings.TrimRight(got, " \n") + "\n") {
		t.Errorf("%s: %s\nthe page shows\n%s\nthe output is\n%s", p.name, command, shown, got)
	}
}

func complete(t *testing.T, command string) bool {
	t.Helper()
	if strings.HasSuffix(strings.TrimRight(command, "\n"), `\`) {
		return false
	}
	out, err := exec.Command("bash", "-nc", command).CombinedOutput()
	return err == nil && len(out) == 0
}

// readyFunction waits until the daemon on the documented addresses is ready and
// until its cluster, if it has one, is connected and its strict voters vote.
const readyFunction = `last=
ready() {
	for i in {1..300}; do
		curl -sf "http://$RLD_ADMIN_ADDR/readyz" && rld netcheck && ! rld strict status | grep -q '^!' && return
		sleep 0.1
	done >/dev/null 2>&1
	echo the daemon is not ready
	return 1
}
`

// earlyFunction waits until enough of the minute is left for the commands up to
// the next daemon, so that limits per minute count them in one window.
const earlyFunction = `early() { while (( 10#$(date +%S) > 50 )); do sleep 0.2; done; }
`

var (
	// inContainer begins a command of Compose that is run here as it is behind.
	inContainer = regexp.MustCompile(`^docker compose exec \w+ /usr/local/bin/`)
	// portVariable is a variable of envoyproxy/ratelimit that has its effect
	// without the RLD_ variable of the test alone.
	portVariable = regexp.MustCompile(`\bPORT=18080\b`)
)

// runPage runs the commands of a page in one shell. outputs are those that the
// page shows, by the number of the command.
func runPage(t *testing.T, p page, commands []string, outputs map[int]string, excepted []*exception, program string) {
	t.Helper()
	at := freeAddresses(t)
	folder := clone(t, program, at)
	for _, file := range namedFile.FindAllStringSubmatch(p.text, -1) {
		if err := os.WriteFile(filepath.Join(folder, file[2]), []byte(file[1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var script strings.Builder
	script.WriteString(readyFunction + earlyFunction)
	for i, command := range commands {
		want, how := "0", ""
		if e := exceptionOf(p, command, excepted); e != nil {
			how = e.how
		}
		text := command
		for documented, free := range at {
			text = strings.ReplaceAll(text, documented, free)
		}
		text = inContainer.ReplaceAllString(text, "")
		text = portVariable.ReplaceAllStringFunc(text, func(v string) string {
			_, port, _ := net.SplitHostPort(at["127.0.0.1:"+strings.TrimPrefix(v, "PORT=")])
			return "RLD_HTTP_ADDR= PORT=" + port
		})
		switch how {
		case "skip":
			continue
		case "background":
			// One daemon at a time has the addresses.
			head, comment, _ := strings.Cut(text, " #")
			text = "kill -TERM $last 2>/dev/null; wait\n" + head + " >background.log 2>&1 & last=$!\n#" + comment + "\nready"
			if len(outputs) > 0 {
				text += "; early"
			}
		case "":
		default:
			want = how
		}
		fmt.Fprintf(&script, "exec >out.%d 2>&1\n%s\ncode=$?; echo \"$code %s\" >code.%d\n", i, text, want, i)
	}
	script.WriteString("exec >/dev/null 2>&1; kill -TERM $last; wait\n")
	said := runScript(t, folder, script.String(), at)
	for i, command := range commands {
		if e := exceptionOf(p, command, excepted); e != nil && e.how == "skip" {
			continue
		}
		code, err := os.ReadFile(filepath.Join(folder, fmt.Sprintf("code.%d", i)))
		if got, want, _ := strings.Cut(strings.TrimSpace(string(code)), " "); err != nil || got != want {
			out, _ := os.ReadFile(filepath.Join(folder, fmt.Sprintf("out.%d", i)))
			log, _ := os.ReadFile(filepath.Join(folder, "background.log"))
			t.Errorf("%s: exit code %q, want %s\n%s\n%s\nthe daemon: %s\nthe shell: %s", p.name, got, want, command, out, tail(log), said)
		}
		if shown := outputs[i]; shown != "" {
			out, _ := os.ReadFile(filepath.Join(folder, fmt.Sprintf("out.%d", i)))
			checkOutput(t, p, command, shown, string(out))
		}
	}
}

func exceptionOf(p page, command string, excepted []*exception) *exception {
	i := slices.IndexFunc(excepted, func(e *exception) bool {
		return e.page == p.name && strings.HasPrefix(command, e.command)
	})
	if i < 0 {
		return nil
	}
	return excepted[i]
}

func tail(log []byte) []byte { return log[max(0, len(log)-2_000):] }

// runScript runs a script, ends all processes that it started and returns the
// output of the shell itself.
func runScript(t *testing.T, folder, script string, at map[string]string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "RLD_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "PATH="+filepath.Join(folder, "tools")+":"+os.Getenv("PATH"), "GOFLAGS=-trimpath",
		"RLD_HTTP_ADDR="+at["127.0.0.1:8080"], "RLD_GRPC_ADDR="+at["127.0.0.1:8081"], "RLD_ADMIN_ADDR="+at["127.0.0.1:6070"])
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil && ctx.Err() != nil {
		t.Errorf("not done in time: %v\n%s", ctx.Err(), out.Bytes())
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the rest of the group, if any
	return out.String()
}

// freeAddresses returns a free address for each documented one.
func freeAddresses(t *testing.T) map[string]string {
	t.Helper()
	at := make(map[string]string)
	for _, documented := range []string{"127.0.0.1:8080", "127.0.0.1:8081", "127.0.0.1:6070", "127.0.0.1:18080", "127.0.0.1:19090"} {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer lis.Close()
		at[documented] = lis.Addr().String()
	}
	return at
}

// clone returns a folder that looks like a clean clone after make build. Its
// files are links, so that commands can write beside them and not into the
// repository. tools holds what stands in for rld and make.
func clone(t *testing.T, program string, at map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	from, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "bin" || e.Name() == ".git" {
			continue
		}
		if err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(folder, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	rld := "#!/bin/sh\ncase ${1-} in\n" +
		"check) shift; exec " + program + " check --addr " + at["127.0.0.1:8081"] + " \"$@\" ;;\n" +
		"demo) shift; exec " + program + " demo --grpc-addr " + at["127.0.0.1:8081"] + " --http-addr " + at["127.0.0.1:8080"] +
		" --admin-addr " + at["127.0.0.1:6070"] + " \"$@\" ;;\n*) exec " + program + " \"$@\" ;;\nesac\n"
	make := "#!/bin/sh\ncase ${1-} in\nrun) exec rld demo ;;\nbuild) ;;\n*) echo \"make $1 is not run here\"; exit 1 ;;\nesac\n"
	for name, text := range map[string]string{"tools/rld": rld, "tools/make": make, "bin/rld": rld} {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestExceptions: the exceptions are of a known kind, and each has a reason.
func TestExceptions(t *testing.T) {
	for _, e := range readExceptions(t) {
		_, err := strconv.Atoi(e.how)
		if e.how != "skip" && e.how != "background" && err != nil || e.reason == "" {
			t.Errorf("testdata/shell.txt: %s | %s: want skip, background or an exit code, and a reason", e.page, e.command)
		}
	}
}

// TestBlocksAreMarked: every block of a page has a language or is an output,
// and commands stand in blocks that are run.
func TestBlocksAreMarked(t *testing.T) {
	for _, p := range pages(t) {
		open := false
		for i, line := range strings.Split(p.text, "\n") {
			language, found := strings.CutPrefix(line, "```")
			if !found {
				if !open && strings.HasPrefix(line, "    ") && regexp.MustCompile(`^\s+(bin/)?(rld|make|curl|go) `).MatchString(line) {
					t.Errorf("%s:%d: a command outside of a block that is marked sh", p.name, i+1)
				}
				continue
			}
			if open = !open; open && !slices.Contains([]string{"", "sh", "output", "yaml", "json", "text", "go", "csv", "console"}, language) {
				t.Errorf("%s:%d: a block of an unknown language: %s", p.name, i+1, language)
			}
		}
	}
}
