package keyring

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/georld/rld/config"
	"github.com/georld/rld/gossip/swim"
)

// Keys of a test, and their fingerprints.
const (
	one   = "MDEyMzQ1Njc4OWFiY2RlZg=="
	two   = "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
	three = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
)

func name(t *testing.T, key string) string {
	t.Helper()
	k, err := config.ParseKeys("key", []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return swim.Fingerprint(k.Keys[0])
}

// put writes a file into a new folder.
func put(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

// content returns a file, and checks its mode, and that nothing is beside it.
func content(t *testing.T, path string, mode os.FileMode) string {
	t.Helper()
	data, err := os.ReadFile(path)
	info, serr := os.Stat(path)
	all, derr := os.ReadDir(filepath.Dir(path))
	if err := errors.Join(err, serr, derr); err != nil {
		t.Fatal(err)
	}
	if info.Mode() != mode || len(all) != 1 {
		t.Errorf("the mode is %v, want %v, and the folder has %v", info.Mode(), mode, all)
	}
	return string(data)
}

// call runs the command and returns its output and warnings. Neither these nor
// the error contain a key.
func call(t *testing.T, args ...string) (out, warnings string, err error) {
	t.Helper()
	var o, w bytes.Buffer
	cmd := New(&o, func(err error) error { return err })
	cmd.SetArgs(args)
	cmd.SetOut(&o)
	cmd.SetErr(&w)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.Execute()
	shown := o.String() + w.String()
	if err != nil {
		shown += err.Error()
	}
	for _, key := range []string{one, two, three} {
		if strings.Contains(shown, key) {
			t.Errorf("%v prints a key: %s", args, shown)
		}
	}
	return o.String(), w.String(), err
}

// Each change writes exactly the lines that it should, and keeps comments and
// the mode.
func TestChanges(t *testing.T) {
	a, b := name(t, one), name(t, two)
	for _, tc := range []struct {
		args         string // FILE and FROM are paths
		mode         os.FileMode
		before, want string
		out          string
	}{
		{"add FILE --from FROM", 0o600, one + "\n", one + "\n" + three + "\n", "added key " + name(t, three)},
		{"add FILE --from FROM", 0o400, one, one + "\n" + three + "\n", "rld keyring use FILE " + name(t, three)},
		{"use FILE " + b, 0o640, "# ours\n" + one + " # May\n" + two + " # June", "# ours\n" + two + " # June\n" + one + " # May\n", "rld keyring remove FILE " + a},
		{"use FILE " + b, 0o600, one + "\r\n\r\n" + two + "\r\n" + three + "\r\n", two + "\r\n" + one + "\r\n\r\n" + three + "\r\n", b + " (encrypts)"},
		{"remove FILE " + b, 0o600, one + "\n" + two + "\n", one + "\n", "removed key " + b},
		{"remove FILE " + b, 0o440, one + "\n# x\n" + two + "\n" + three + "\n", one + "\n# x\n" + three + "\n", "removed key " + b},
	} {
		path, from := put(t, tc.before, tc.mode), put(t, three, 0o600)
		fill := strings.NewReplacer("FILE", path, "FROM", from).Replace
		out, _, err := call(t, strings.Fields(fill(tc.args))...)
		if err != nil || !strings.Contains(out, fill(tc.out)) {
			t.Errorf("%s: %v, %q, want %q", tc.args, err, out, fill(tc.out))
		}
		if got := content(t, path, tc.mode); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.args, got, tc.want)
		}
	}
}

// Wrong input is named with its place and with what would be right, and changes
// nothing.
func TestKeyringRefused(t *testing.T) {
	a, b := name(t, one), name(t, two)
	eight := strings.Repeat("#", 16)
	for i := range 8 {
		eight += "\n" + encode(append([]byte("0123456789abcde"), 'A'+byte(i)))
	}
	for _, tc := range []struct {
		args string
		mode os.FileMode
		file string
		err  string
	}{
		{"new FILE", 0o600, one, "FILE is there already, and nothing was written"},
		{"add FILE --from FROM", 0o600, three, "FILE:1 has the key " + name(t, three) + " already"},
		{"add FILE --from FILE", 0o600, one + "\n" + two, "--from FILE: holds 2 keys, want one"},
		{"add FILE --from nowhere", 0o600, one, "nowhere: no such file"},
		{"add FILE", 0o600, eight, "FILE:10: more than 8 keys: take old ones out; nothing was written"},
		{"add FILE", 0o600, one + "\n" + strings.Repeat("#", 16<<10-len(one)-2), "FILE: is 16429 bytes long: take comments out"},
		{"add FILE", 0o660, one, "FILE: is writable by others (mode 0660): chmod 0600 it"},
		{"add FILE", 0o600, "", "FILE: holds no key"},
		{"add FILE", 0o600, one + "\n" + two[:9], "FILE:2: is no base64"},
		{"use FILE " + b, 0o600, one + "\n" + one, "FILE:2: the key of line 1 again"},
		{"use FILE " + a, 0o600, one + "\n" + two, "FILE:1: the key " + a + " encrypts already"},
		{"use FILE " + b, 0o600, one, "FILE has no key " + b + ", and nothing was written: it has " + a},
		{"use FILE " + two, 0o600, one + "\n" + two, "no fingerprint: want 8 hexadecimal digits"},
		{"use FILE " + strings.ToUpper(b[:7]) + "x", 0o600, one + "\n" + two, "no fingerprint: want 8 hexadecimal digits"},
		{"remove FILE " + a, 0o600, one + "\n" + two, "use another one first with rld keyring use FILE " + b},
		{"remove FILE " + a, 0o600, "\n" + one, "FILE:2: " + a + " is the only key"},
		{"list FILE", 0o622, one, "FILE: is writable by others"},
		{"list .", 0o600, one, ".: is a folder"},
		{"list", 0o600, one, "accepts 1 arg"},
		{"rotate FILE", 0o600, one, "want new, add, use, remove or list"},
	} {
		path, from := put(t, tc.file, tc.mode), put(t, three, 0o600)
		fill := strings.NewReplacer("FILE", path, "FROM", from).Replace
		_, _, err := call(t, strings.Fields(fill(tc.args))...)
		if err == nil || !strings.Contains(err.Error(), fill(tc.err)) {
			t.Errorf("%s: %v, want %s", tc.args, err, fill(tc.err))
		}
		if got := content(t, path, tc.mode); got != tc.file {
			t.Errorf("%s: wrote %q", tc.args, got)
		}
	}
}

// A symbolic link is refused by changes, and its target stays.
func TestLinks(t *testing.T) {
	path := put(t, one, 0o600)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"add", link}, {"use", link, name(t, one)}, {"remove", link, name(t, one)}} {
		if _, _, err := call(t, args...); err == nil || !strings.Contains(err.Error(), "name the file itself, "+path) {
			t.Errorf("%v: %v", args, err)
		}
	}
	if _, _, err := call(t, "new", link); err == nil {
		t.Error("new wrote through a link")
	}
	if got := content(t, path, 0o600); got != one {
		t.Errorf("wrote %q", got)
	}
	if out, _, err := call(t, "list", link); err != nil || out != link+":1: "+name(t, one)+", 16 bytes, encrypts and decrypts\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// A new file is for its owner alone, and each key is another one. A file that
// all can read gives a warning.
func TestNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	if _, _, err := call(t, "new", path); err != nil {
		t.Fatal(err)
	}
	first := content(t, path, 0o600)
	if _, _, err := call(t, "add", path); err != nil {
		t.Fatal(err)
	}
	k, err := config.ParseKeys(path, []byte(content(t, path, 0o600)))
	if err != nil || len(k.Keys) != 2 || len(k.Keys[0]) != keyBytes || !strings.HasPrefix(string(k.Data), first) {
		t.Errorf("%d keys, %v", len(k.Keys), err)
	}
	if _, warnings, err := call(t, "list", put(t, one, 0o644)); err != nil || !strings.Contains(warnings, "readable by everybody (mode 0644)") {
		t.Errorf("%q, %v", warnings, err)
	}
}
